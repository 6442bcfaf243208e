"""A gateway beside python-telegram-bot: an update is confirmed when its event is in the journal, not before.

TELEGRAM_TOKEN=… python -m examples.embed_ptb        the duties that are named here: docs/EMBEDDING.md
"""

import asyncio
import os
from contextlib import suppress
from datetime import timedelta
from typing import Any, Literal

import httpx
from telegram import Bot, ReplyParameters, Update, error

from examples.agent import Agent
from turnkeeper import ChannelRef, Engine, commands, events

os.environ.setdefault(
    "PTB_TIMEDELTA", "true"
)  # retry_after is a timedelta, as it will be in the library's next version
MARKS = {"refused": "🤷"}
REASONS = {"replied not found": "quote_gone", "can't parse": "format", "not modified": "not_modified"}
CONFIG = {"timers": {"stop_grace_ms": 100}}


class Gateway:
    """Commands to calls of the Bot API."""

    def __init__(self, bot: Bot, agent: Agent) -> None:
        self.bot, self.agent = bot, agent
        self.previews: dict[str, int] = {}  # turn → the bubble that shows what its agent writes

    async def perform(self, command: commands.Command) -> events.Settled | None:
        match command:
            case commands.Send() | commands.Edit() | commands.Preview() | commands.React():
                try:
                    messages = await self.call(command)
                except error.TelegramError as problem:
                    return settled(command, problem)
                return events.Settled(command.chat, command.delivery, "sent", messages=messages)
            case commands.TurnSettled():
                stray = self.previews.pop(command.turn_id, None)
                if stray is not None and command.delivered == "yes":
                    with suppress(error.BadRequest):  # it was on its way when the answer left
                        await self.bot.delete_message(command.chat.removeprefix("tg-"), stray)
                self.agent.turn_over(command)
            case _:
                pass  # the others: duties 13 to 17
        return None

    async def call(self, command: commands.Settleable) -> tuple[int, ...]:
        """Do it; return what is visible now."""
        room, mode = int(command.channel.id), "HTML" if getattr(command, "format", "plain") == "rich" else None
        match command:
            case commands.Send(turn_id=str(turn), replaces_preview=True) | commands.Preview(turn_id=turn) if (
                turn in self.previews
            ):
                await self.bot.edit_message_text(command.text, room, self.previews[turn], parse_mode=mode)
                return (self.previews.pop(turn) if isinstance(command, commands.Send) else self.previews[turn],)
            case commands.Send() | commands.Preview():
                reply = None if command.quote is None else ReplyParameters(int(command.quote))
                sent = await self.bot.send_message(room, command.text, parse_mode=mode, reply_parameters=reply)
                if isinstance(command, commands.Preview):
                    self.previews[command.turn_id] = sent.message_id
                return (sent.message_id,)
            case commands.Edit():
                await self.bot.edit_message_text(command.text, room, int(command.message), parse_mode=mode)
                return (int(command.message),)
            case commands.React():
                await self.bot.set_message_reaction(room, int(command.message), MARKS[command.mark])
                return ()


def settled(command: commands.Settleable, problem: error.TelegramError) -> events.Settled:
    """Say what a refusal of the Bot API means; the table "What a platform says"."""

    def says(outcome: Literal["failed", "unknown"], reason: str, **more: Any) -> events.Settled:
        return events.Settled(command.chat, command.delivery, outcome, reason=reason, **more)

    said = str(problem).lower()
    match problem:
        case error.RetryAfter():
            wait = problem.retry_after if isinstance(problem.retry_after, timedelta) else timedelta(0)
            return says("failed", "rate_limited", retry_after_ms=wait // timedelta(milliseconds=1))
        case error.BadRequest() if reason := next((word for text, word in REASONS.items() if text in said), None):
            return says("failed", reason)
        case error.BadRequest() | error.Forbidden() | error.InvalidToken() | error.ChatMigrated():
            return says("failed", said, permanent=True)
        case error.NetworkError() if isinstance(problem.__cause__, httpx.ConnectError):
            return says("failed", "not connected")  # it never left
        case _:
            return says("unknown", said)


async def serve(bot: Bot, agent: Agent) -> None:
    """Poll and perform until cancelled."""
    agent.previews, offset = True, None
    async with bot, Engine(CONFIG, Gateway(bot, agent)) as engine:
        agent.start(engine)
        while True:
            for update in await bot.get_updates(offset, timeout=20, allowed_updates=["message"]):
                await hear(engine, agent, update)
                offset = update.update_id + 1  # confirmed with the next call: duty 1


async def hear(engine: Engine, agent: Agent, update: Update) -> None:
    """Tell the engine what came in, then hand it to the agent."""
    message = update.message
    if message is None or message.text is None or agent.knows(f"tg-{message.chat.id}-{message.message_id}"):
        return
    chat, room, ident = f"tg-{message.chat.id}", ChannelRef("tg", str(message.chat.id)), message.message_id
    event: events.Event = events.TurnOpened(chat, f"{chat}-{ident}", channel=room, message=ident)
    if agent.busy(chat):
        event = events.InputFolded(chat, f"{chat}-{ident}", "autosteer", channel=room, message=ident)
    await engine.post(event)
    agent.hand(chat, f"{chat}-{ident}", message.text)


if __name__ == "__main__":
    asyncio.run(serve(Bot(os.environ["TELEGRAM_TOKEN"]), Agent()))
