"""A gateway beside aiogram: updates one after the other, each held back until its event is in the journal.

TELEGRAM_TOKEN=… python -m examples.embed_aiogram        the duties that are named here: docs/EMBEDDING.md
"""

import asyncio
import os

from aiogram import Bot, Dispatcher, F, exceptions
from aiogram.types import Message, ReactionTypeEmoji, ReplyParameters

from examples.admission import admitted
from examples.agent import Agent
from turnkeeper import ChannelRef, Engine, commands, events

MARKS = {"refused": "🤷"}
CONFIG = {"timers": {"stop_grace_ms": 100}}


class Gateway:
    """Commands to calls of the Bot API. It shows no previews: embed_ptb.py does."""

    def __init__(self, bot: Bot, agent: Agent) -> None:
        self.bot, self.agent = bot, agent

    async def perform(self, command: commands.Command) -> events.Settled | None:
        match command:
            case commands.Send() | commands.Edit() | commands.React():
                try:
                    messages = await self.call(command)
                except exceptions.AiogramError as problem:
                    return settled(command, problem)
                return events.Settled(command.chat, command.delivery, "sent", messages=messages)
            case commands.TurnSettled():
                self.agent.turn_over(command)
            case _:
                pass  # the others: duties 13 to 17
        return None

    async def call(self, command: commands.Send | commands.Edit | commands.React) -> tuple[int, ...]:
        """Do it; return what is visible now."""
        room = int(command.channel.id)
        match command:
            case commands.Send():
                sent = await self.bot.send_message(
                    room,
                    command.text,
                    parse_mode="HTML" if command.format == "rich" else None,
                    reply_parameters=None if command.quote is None else ReplyParameters(message_id=int(command.quote)),
                )
                return (sent.message_id,)
            case commands.Edit():
                message = int(command.message)
                mode = "HTML" if command.format == "rich" else None
                await self.bot.edit_message_text(command.text, chat_id=room, message_id=message, parse_mode=mode)
                return (message,)
            case commands.React():
                mark = ReactionTypeEmoji(emoji=MARKS[command.mark])
                await self.bot.set_message_reaction(room, int(command.message), [mark])
                return ()


def settled(command: commands.Settleable, problem: exceptions.AiogramError) -> events.Settled:
    """Say what a refusal of the Bot API means; the table "What a platform says"."""
    said = str(problem).lower()

    def failed(reason: str, *, permanent: bool = False, retry_after_ms: int | None = None) -> events.Settled:
        return events.Settled(
            command.chat, command.delivery, "failed", reason=reason, permanent=permanent, retry_after_ms=retry_after_ms
        )

    match problem:
        case exceptions.TelegramRetryAfter():
            return failed("rate_limited", retry_after_ms=problem.retry_after * 1000)
        case exceptions.TelegramBadRequest() if "replied not found" in said:
            return failed("quote_gone")
        case exceptions.TelegramBadRequest() if "can't parse entities" in said:
            return failed("format")
        case exceptions.TelegramBadRequest() if "not modified" in said:
            return failed("not_modified")
        case exceptions.TelegramServerError() | exceptions.TelegramNetworkError() | exceptions.ClientDecodeError():
            return events.Settled(command.chat, command.delivery, "unknown", reason=said)  # it may have arrived
        case _:
            return failed(said, permanent=True)


async def serve(bot: Bot, agent: Agent) -> None:
    """Poll and perform until cancelled."""
    dispatcher = Dispatcher()
    async with bot, Engine(CONFIG, Gateway(bot, agent)) as engine:
        agent.start(engine)

        @dispatcher.message(F.text)
        async def hear(message: Message) -> None:
            """Tell the engine what came in, then hand it to the agent."""
            chat, room = f"tg-{message.chat.id}", ChannelRef("tg", str(message.chat.id))
            turn_id = f"{chat}-{message.message_id}"
            if agent.knows(turn_id):
                return
            event: events.Event = events.TurnOpened(chat, turn_id, channel=room, message=message.message_id)
            if agent.busy(chat):
                event = events.InputFolded(chat, turn_id, "autosteer", channel=room, message=message.message_id)
            await admitted(engine, event)
            agent.hand(chat, turn_id, message.text or "")

        # One update after the other; the library confirms one as soon as its handler returned, whatever it raised.
        await dispatcher.start_polling(bot, handle_as_tasks=False, handle_signals=False, close_bot_session=False)


if __name__ == "__main__":
    asyncio.run(serve(Bot(os.environ["TELEGRAM_TOKEN"]), Agent()))
