"""A gateway beside discord.py: no secret waiting on a 429, and a nonce against what the library repeats in secret.

DISCORD_TOKEN=… python -m examples.embed_discord        the duties that are named here: docs/EMBEDDING.md
"""

import asyncio
import os
from hashlib import blake2b

import aiohttp
import discord

from examples.admission import admitted
from examples.agent import Agent
from turnkeeper import ChannelRef, Engine, commands, events

MARKS = {"refused": "🤷"}
CONFIG = {"timers": {"stop_grace_ms": 100}}


class Gateway(discord.Client):
    """Commands to calls of Discord; messages to events."""

    def __init__(self, agent: Agent) -> None:
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__(intents=intents)
        self.http.max_ratelimit_timeout = 0.001  # more than that raises RateLimited: duty 11
        self.agent = agent
        self.engine: Engine | None = None
        self.one_by_one = asyncio.Lock()

    async def perform(self, command: commands.Command) -> events.Settled | None:
        match command:
            case commands.Send() | commands.Edit() | commands.React():
                try:
                    messages = await self.call(command)
                except (discord.DiscordException, aiohttp.ClientError, TimeoutError) as problem:
                    return settled(command, problem)
                return events.Settled(command.chat, command.delivery, "sent", messages=messages)
            case commands.TurnSettled():
                self.agent.turn_over(command)
            case _:
                pass  # the others: duties 13 to 17
        return None

    async def call(self, command: commands.Send | commands.Edit | commands.React) -> tuple[int, ...]:
        """Do it; return what is visible now."""
        room = self.get_partial_messageable(int(command.channel.id))
        match command:
            case commands.Send():
                # The library sends again after a 502 without saying so. Discord drops what has a known nonce.
                nonce = blake2b(command.delivery.encode(), digest_size=12).hexdigest()
                if command.quote is None:
                    sent = await room.send(command.text, nonce=nonce)
                else:
                    quote = discord.MessageReference(
                        message_id=int(command.quote), channel_id=room.id, fail_if_not_exists=True
                    )
                    sent = await room.send(command.text, nonce=nonce, reference=quote)
                return (sent.id,)
            case commands.Edit():
                await room.get_partial_message(int(command.message)).edit(content=command.text)
                return (int(command.message),)
            case commands.React():
                await room.get_partial_message(int(command.message)).add_reaction(MARKS[command.mark])
                return ()

    async def on_message(self, message: discord.Message) -> None:
        """Tell the engine what came in, then hand it to the agent; one by one, each event is a task of its own."""
        if message.author.bot or not message.content:
            return
        chat, room = f"dc-{message.channel.id}", ChannelRef("discord", str(message.channel.id))
        turn_id = f"{chat}-{message.id}"
        async with self.one_by_one:
            if self.engine is None or self.agent.knows(turn_id):
                return
            event: events.Event = events.TurnOpened(chat, turn_id, channel=room, message=message.id)
            if self.agent.busy(chat):
                event = events.InputFolded(chat, turn_id, "autosteer", channel=room, message=message.id)
            await admitted(self.engine, event)
            self.agent.hand(chat, turn_id, message.content)


def settled(command: commands.Settleable, problem: Exception) -> events.Settled:
    """Say what a refusal of Discord means; the table "What a platform says"."""

    def failed(reason: str, *, permanent: bool = False, retry_after_ms: int | None = None) -> events.Settled:
        return events.Settled(
            command.chat, command.delivery, "failed", reason=reason, permanent=permanent, retry_after_ms=retry_after_ms
        )

    match problem:
        case discord.RateLimited():
            return failed("rate_limited", retry_after_ms=int(problem.retry_after * 1000) + 1)
        case discord.HTTPException() if "message_reference" in problem.text:
            return failed("quote_gone")
        case discord.DiscordServerError():
            return events.Settled(command.chat, command.delivery, "unknown", reason=problem.text)
        case discord.HTTPException():
            return failed(problem.text, permanent=True)
        case aiohttp.ClientConnectorError():
            return failed("not connected")  # it never left
        case _:
            return events.Settled(command.chat, command.delivery, "unknown", reason=type(problem).__name__)


async def serve(token: str, agent: Agent) -> None:
    """Listen and perform until cancelled. What was missed while disconnected, Discord replays when it resumes."""
    gateway = Gateway(agent)
    async with gateway:
        await gateway.login(token)
        async with Engine(CONFIG, gateway) as engine:
            agent.start(engine)
            gateway.engine = engine
            await gateway.connect()


if __name__ == "__main__":
    asyncio.run(serve(os.environ["DISCORD_TOKEN"], Agent()))
