"""Three gateways that look right, and what the lab says of them: `python examples/lab_finds_a_bug.py`.

The careful one tells the engine what happened and does nothing of its own. The first naive one sends again after a
timeout, because "it failed": users read the same words twice. The second answers a deleted quote by sending without
it and keeps that to itself; the third forgets the quote altogether.
"""

from __future__ import annotations

import sys
import time
from functools import partial

from turnkeeper.engine.commands import Command, Edit, Preview, React, Send
from turnkeeper.engine.events import Settled
from turnkeeper.engine.lab import FakeChat, Forbidden, QuoteGone, TimedOut, TooManyRequests, Tried, try_gateway


class Careful:
    """Performs a command once, and tells what became of it."""

    def __init__(self, chat: FakeChat) -> None:
        self.chat = chat
        self.shown: dict[str, int] = {}

    def perform(self, command: Command, /) -> Settled | None:
        if not isinstance(command, Send | Edit | Preview | React):
            return None
        settled = partial(Settled, command.chat, command.delivery, attempt=command.attempt)
        try:
            messages = self.call(command)
        except TimedOut:
            return settled("unknown")
        except TooManyRequests as told:
            return settled("failed", reason="rate_limited", retry_after_ms=told.retry_after_ms)
        except QuoteGone:
            return settled("failed", reason="quote_gone")
        except Forbidden as told:
            return settled("failed", reason=str(told), permanent=True)
        return settled("sent", messages=messages)

    def call(self, command: Send | Edit | Preview | React) -> tuple[int, ...]:
        place = str(command.channel)
        match command:
            case Send():
                return (self.send(place, command),)
            case Edit():
                self.chat.edit(place, command.message, command.text)
            case React():
                self.chat.react(place, command.message, command.mark)
            case Preview() if (bubble := self.shown.get(command.turn_id)) is not None and command.quote is None:
                self.chat.edit(place, bubble, command.text)
                return (bubble,)
            case Preview():
                bubble = self.chat.send(place, command.text, reply_to=command.quote)
                self.shown[command.turn_id] = bubble
                return (bubble,)
        return ()

    def send(self, place: str, command: Send) -> int:
        return self.chat.send(place, command.text, reply_to=command.quote, files=command.files)


class SendsAgain(Careful):
    """After a timeout it tries once more: what looks like a failure may have arrived."""

    def send(self, place: str, command: Send) -> int:
        try:
            return super().send(place, command)
        except TimedOut:
            return super().send(place, command)


class HidesTheGoneQuote(Careful):
    """It sends without the quote, and says nothing of it."""

    def send(self, place: str, command: Send) -> int:
        try:
            return super().send(place, command)
        except QuoteGone:
            return self.chat.send(place, command.text, files=command.files)


class ForgetsTheQuote(Careful):
    def send(self, place: str, command: Send) -> int:
        return self.chat.send(place, command.text, files=command.files)


GATEWAYS = (Careful, SendsAgain, HidesTheGoneQuote, ForgetsTheQuote)


def main() -> int:
    for kind in GATEWAYS:
        began_s = time.monotonic()
        tried: Tried = try_gateway(kind, stories=150)
        print(f"== {kind.__name__}: {time.monotonic() - began_s:.1f} s")
        print(tried)
        if bool(tried.complaints) is (kind is Careful):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
