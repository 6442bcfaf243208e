"""Receipts: what is known of a delivery that left, and the one look-up that everybody asks.

A delivery with a receipt is never sent again, across restarts too (RULES-replies A8). The channel keeps
receipts of what it sent; a transcript keeps its own. Both answer with a `Standing`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from turnkeeper.engine.horizon import Horizon
from turnkeeper.engine.ids import MessageId

__all__ = ["Receipt", "Receipts", "Standing", "standing_of"]


class Standing(StrEnum):
    """What a look-up says of an answer; only `NONE` permits a blind send (RULES-transcript R39)."""

    SENT = "sent"
    SUPPRESSED = "suppressed"
    UNKNOWN = "unknown"
    MAYBE = "maybe"
    NONE = "none"


class Receipt(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The end of one delivery."""

    outcome: Literal["sent", "failed", "unknown"]
    at_ms: int
    messages: tuple[MessageId, ...] = ()
    text_digest: str = ""
    reason: str = ""
    attempt: int = 1
    """The last attempt; a delivery that failed goes on counting from here."""


Receipts = Horizon[Receipt]
"""A channel's receipts by delivery, at most `limits.receipts`."""


def standing_of(receipts: Receipts, delivery: str) -> Standing:
    """Decide what may be said of a delivery before it is sent (again)."""
    receipt = receipts.get(delivery)
    if receipt is None or receipt.outcome == "failed":
        return Standing.NONE
    return Standing.SENT if receipt.outcome == "sent" else Standing.UNKNOWN
