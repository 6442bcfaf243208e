"""A chat platform in memory: what users see, and how it fails. A host's gateway calls it as it calls the real one.

Whether a call fails is decided by the seed, the channel, the text and how often that was said before: the same
story makes the same failures, and so does a shorter story.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

__all__ = ["Bubble", "ChatFailure", "FakeChat", "Forbidden", "QuoteGone", "TimedOut", "TooManyRequests"]


class ChatFailure(Exception):
    """Base of what the platform says instead of an answer."""


class TimedOut(ChatFailure):
    """No answer came: it may have arrived, or not."""


class TooManyRequests(ChatFailure):
    """Refused for now; nothing arrived."""

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(f"retry after {retry_after_ms} ms")
        self.retry_after_ms = retry_after_ms


class QuoteGone(ChatFailure):
    """The quoted message was deleted; nothing arrived."""


class Forbidden(ChatFailure):
    """Refused for good; nothing arrived."""


class Bubble(msgspec.Struct):
    """What users see of one message."""

    channel: str
    message: int
    text: str
    reply_to: str | None = None
    files: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


FAULTS = (
    (80, "lost answer"),
    (150, "lost request"),
    (210, "rate limit"),
    (250, "quote gone"),
    (290, "forbidden"),
)
"""Below so many in a thousand, in this order."""
PATIENT_AFTER = 3
"""The same words fail no more often than that."""


class FakeChat:
    """The platform.

    Args:
        seed: decides what fails.
        faults: False: nothing does.

    """

    def __init__(self, seed: int = 0, *, faults: bool = True) -> None:
        self.bubbles: list[Bubble] = []
        """In the order in which users saw them."""
        self._seed = seed
        self._faults = faults
        self._said: dict[tuple[str, str, str], int] = {}

    def send(self, channel: str, text: str, *, reply_to: int | str | None = None, files: tuple[str, ...] = ()) -> int:
        """Show a message and return its id.

        Raises:
            ChatFailure: one of its kinds; after `TimedOut` it may be there.

        """
        fault = self._fault("send", channel, text)
        if fault == "quote gone" and reply_to is None:
            fault = ""
        self._refuse(fault)
        message = 50_001 + len(self.bubbles)
        quoted = None if reply_to is None else str(reply_to)
        self.bubbles.append(Bubble(channel, message, text, quoted, files))
        if fault == "lost answer":
            raise TimedOut("no answer")
        return message

    def edit(self, channel: str, message: int | str, text: str) -> None:
        """Change a message; raises as `send`."""
        fault = self._fault("edit", channel, text)
        self._refuse("" if fault == "quote gone" else fault)
        for bubble in self.bubbles:
            if (bubble.channel, str(bubble.message)) == (channel, str(message)):
                bubble.text = text
        if fault == "lost answer":
            raise TimedOut("no answer")

    def react(self, channel: str, message: int | str, mark: str) -> None:
        """Put a mark on a message; raises as `send`."""
        fault = self._fault("react", channel, f"{message} {mark}")
        self._refuse("" if fault == "quote gone" else fault)
        for bubble in self.bubbles:
            if (bubble.channel, str(bubble.message)) == (channel, str(message)):
                bubble.marks = (*bubble.marks, mark)

    def _fault(self, how: str, channel: str, text: str) -> str:
        key = (how, channel, text)
        said = self._said[key] = self._said.get(key, 0) + 1
        if not self._faults or said > PATIENT_AFTER:
            return ""
        drawn = crc32(f"{self._seed}|{how}|{channel}|{text}|{said}".encode("utf-8", "surrogatepass")) % 1000
        return next((fault for below, fault in FAULTS if drawn < below), "")

    @staticmethod
    def _refuse(fault: str) -> None:
        match fault:
            case "lost request":
                raise TimedOut("no answer")
            case "rate limit":
                raise TooManyRequests(3000)
            case "quote gone":
                raise QuoteGone("the message to reply to is not there")
            case "forbidden":
                raise Forbidden("the bot was blocked")
            case _:
                return
