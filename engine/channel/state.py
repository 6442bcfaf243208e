"""What a channel's owner knows: what waits, what is out, the live preview, and its receipts."""

from __future__ import annotations

from typing import Literal

import msgspec

from turnkeeper.engine.commands import Purpose
from turnkeeper.engine.horizon import Horizon
from turnkeeper.engine.ids import Address, ChannelRef, MessageId
from turnkeeper.engine.receipts import Receipt

__all__ = ["ChannelState", "Item", "Mark", "Phase", "Preview", "open_channel"]

Phase = Literal["queued", "asking", "emitted", "handed", "reconciling", "waiting"]
"""queued: behind others · asking: for its quote · emitted: commanded, not handed over yet · handed: with the
host · reconciling: the host is asked whether it arrived · waiting: for its retry or a flood wait."""


class Item(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One send or edit on its way."""

    delivery: str
    text: str
    since_ms: int
    """When the phase began."""
    kind: Literal["send", "edit"] = "send"
    files: tuple[str, ...] = ()
    purpose: Purpose = "reply"
    turn_id: str | None = None
    owned: bool = False
    source: MessageId | None = None
    interim: bool = False
    quotes: bool = False
    message: MessageId | None = None
    queued_ms: int = 0
    phase: Phase = "queued"
    attempt: int = 0
    until_ms: int = 0
    """End of the wait for a retry."""
    waited_ms: int = 0
    """Time spent waiting in earlier phases; bounded by `delivery.queue_timeout_ms`."""
    failures: int = 0
    plain: bool = False
    quoteless: bool = False
    """The platform said that the quoted message is gone."""
    resent: bool = False
    resume_part: int | None = None
    made: tuple[MessageId, ...] = ()
    """Messages of the parts that arrived in earlier attempts."""
    quote: MessageId | None = None
    participant: str | None = None
    reserved: bool = False
    """The owner's quote is reserved for this delivery."""
    took: Preview | None = None
    """The preview that this final replaces."""


class Preview(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The live preview of the channel; one turn has it."""

    turn_id: str
    shown: bool = False
    """The first snapshot arrived: there is a bubble to edit."""
    flight: str = ""
    """The snapshot that is out, by delivery."""
    text: str = ""
    """The snapshot that waits for its quote."""
    quote: MessageId | None = None
    participant: str | None = None


class Mark(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A preview snapshot or a reaction that is out; neither waits in the queue nor is retried."""

    kind: Literal["preview", "react"]
    since_ms: int
    turn_id: str = ""
    reserved: bool = False
    attempt: int = 1
    handed: bool = False
    message: MessageId | None = None
    mark: str = ""


class ChannelState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Everything the owner of (chat, channel) knows."""

    chat: str
    ref: ChannelRef
    queue: tuple[Item, ...] = ()
    out: Item | None = None
    hold_until_ms: int = 0
    """A platform's flood wait holds the whole channel."""
    preview: Preview | None = None
    snapshots: dict[str, int] = {}
    """Snapshots shown, by turn; the count makes their keys and is capped."""
    loose: dict[str, Mark] = {}
    """Previews and reactions that are out, by delivery."""
    unknown: dict[str, Item] = {}
    """Sends taken as sent, without their text; a late settlement may still say what became of them."""
    receipts: Horizon[Receipt] = Horizon()


def open_channel(address: Address) -> ChannelState:
    """Return the state of a channel that was never used."""
    return ChannelState(address.chat, ChannelRef.parse(address.key))
