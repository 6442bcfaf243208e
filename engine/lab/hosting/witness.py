"""Compares what a gateway was asked to do, what users saw of it, and what the gateway told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from turnkeeper.engine.commands import Send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnkeeper.engine.commands import Settleable
    from turnkeeper.engine.events import Settled
    from turnkeeper.engine.lab.hosting.fake import Bubble

__all__ = ["complaints"]


def complaints(command: Settleable, shown: list[Bubble], told: Settled | None) -> Iterator[str]:
    """Yield what a user, or the engine, could complain of after one `perform`.

    Args:
        command: what the gateway was asked to do.
        shown: the messages that appeared while it did.
        told: the settlement, made from an exception as the engine makes it; None: it will be posted later.

    """
    what = command.delivery
    yield from (
        f"shown twice: {what} made {count} messages that say {text!r}"
        for (text, _), count in Counter((bubble.text, bubble.files) for bubble in shown).items()
        if count > 1
    )
    for bubble in shown:
        if bubble.channel != str(command.channel):
            yield f"shown elsewhere: {what} is for {command.channel} and stands in {bubble.channel}"
    if told is not None:
        yield from _untrue(command, shown, told)
    if isinstance(command, Send) and shown:
        yield from _quotes(command, shown)


def _untrue(command: Settleable, shown: list[Bubble], told: Settled) -> Iterator[str]:
    what = command.delivery
    if (told.delivery, told.chat) != (what, command.chat):
        yield f"untrue: {what} was settled as {told.delivery} of {told.chat}"
    if told.outcome == "failed" and shown and not told.parts_done:
        yield f"untrue: {what} was told failed ({told.reason}), and users see it"
    if not isinstance(command, Send) or told.outcome != "sent":
        return
    if not shown:
        yield f"untrue: {what} was told sent, and nobody sees it"
    elif list(map(str, told.messages)) != [str(bubble.message) for bubble in shown]:
        yield f"untrue: {what} was told messages {list(told.messages)}, users see {[one.message for one in shown]}"


def _quotes(command: Send, shown: list[Bubble]) -> Iterator[str]:
    what, quote = command.delivery, None if command.quote is None else str(command.quote)
    if shown[0].reply_to != quote:
        kind = "quote dropped" if shown[0].reply_to is None else "quotes unasked"
        yield f"{kind}: {what} is to quote {quote}, and quotes {shown[0].reply_to}"
    if any(bubble.reply_to is not None for bubble in shown[1:]):
        yield f"quotes unasked: only the first part of {what} quotes"
