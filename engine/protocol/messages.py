"""The messages between owners: who tells whom what."""

from __future__ import annotations

from typing import Literal

import msgspec

from turnkeeper.engine.commands import Outcome, Purpose, RewindCause
from turnkeeper.engine.events import Event
from turnkeeper.engine.ids import ChannelRef, MessageId

__all__ = [
    "Active",
    "AgentLost",
    "Answers",
    "Assigned",
    "Consumed",
    "Corrected",
    "Decided",
    "Deliver",
    "DeliveryEnded",
    "Due",
    "FailedHere",
    "Handed",
    "Interrupt",
    "Message",
    "Opened",
    "PreviewEnd",
    "QuestionClosed",
    "QuestionPending",
    "Quote",
    "QuoteGiven",
    "QuoteSettled",
    "QuoteWanted",
    "Read",
    "Recorded",
    "Recover",
    "RefusedHere",
    "Retire",
    "RewindPlan",
    "Settlement",
    "Shed",
    "ShowMark",
    "ShowPreview",
    "SpeechShifted",
    "StopCaptured",
    "StopTaken",
    "TurnSettled",
]


class Told(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Base of the messages between owners."""


class Answers(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a turn answers: the pair (channel, message), set once when it opens (RULES-answers d)."""

    channel: ChannelRef | None = None
    message: MessageId | None = None
    participant: str | None = None


class Quote(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The one quote of an input (RULES-replies A4)."""

    state: Literal["free", "reserved", "spent"] = "free"
    by: str = ""
    """The delivery it is reserved for."""


# ---------------------------------------------------------------- the cell to any owner


class Due(Told, frozen=True, gc=False):
    """A deadline of the owner may have come; it is checked again against the state."""


class Recover(Told, frozen=True, gc=False):
    """The process restarted; silence clocks begin anew."""

    down_ms: int


class Handed(Told, frozen=True, gc=False):
    """The performer is about to hand this attempt to the host; it does so only on the verdict go."""

    delivery: str
    attempt: int


# ---------------------------------------------------------------- chat to turn


class Opened(Told, frozen=True, gc=False):
    """A turn begins."""

    source: str
    answers: Answers
    speech: ChannelRef | None
    quote: Quote
    addressed: bool = False


class Read(Told, frozen=True, gc=False):
    """The agent read the turn's own input."""


class Active(Told, frozen=True, gc=False):
    """The agent is working."""

    cause: str


class Assigned(Told, frozen=True, gc=False):
    """A reply is this turn's; it is in flight from now on."""

    delivery: str
    channel: ChannelRef
    text: str
    files: tuple[str, ...]
    interim: bool
    row: str
    """The row of the attribution table, for the metric."""
    folded_from: str = ""
    """The echoed fold, where the reply was attributed by proof."""
    fold_source: str = ""


class Consumed(Told, frozen=True, gc=False):
    """A reply of another owner names this turn; it is in flight for it from now on."""

    delivery: str
    text: str
    interim: bool
    stands_in: bool = False
    """No turn owns that reply, and this one is the first that it names."""
    files: tuple[str, ...] = ()
    channel: ChannelRef | None = None


class Recorded(Told, frozen=True, gc=False):
    """A delivery of this turn, or one that names it, ended."""

    delivery: str
    outcome: Literal["sent", "failed", "unknown"]
    permanent: bool = False


class Corrected(Told, frozen=True, gc=False):
    """What was taken as unknown, or as failed, is known now; `unknown`: nobody will ever say."""

    delivery: str
    outcome: Literal["sent", "failed", "unknown"]
    permanent: bool = False


class StopCaptured(Told, frozen=True, gc=False):
    """The agent's last message, for this turn or for one of several."""

    text: str
    channel: ChannelRef | None
    attributed: bool
    stop_id: int


class StopTaken(Told, frozen=True, gc=False):
    """Another candidate sent this Stop text."""

    stop_id: int


class QuestionPending(Told, frozen=True, gc=False):
    """The agent waits for the user."""

    call_id: str


class QuestionClosed(Told, frozen=True, gc=False):
    """The user answered."""

    call_id: str


class SpeechShifted(Told, frozen=True, gc=False):
    """Plain speech of this turn lands elsewhere now, or nowhere; what it answers does not change."""

    channel: ChannelRef | None


class Interrupt(Told, frozen=True, gc=False):
    """The user stopped the agent."""


class AgentLost(Told, frozen=True, gc=False):
    """The agent process is gone."""


class RewindPlan(Told, frozen=True, gc=False):
    """A rewind that the chat's budget allows."""

    cause: RewindCause
    attempt: int
    episode: int


class RefusedHere(Told, frozen=True, gc=False):
    """The model refused this turn."""

    category: str | None
    streak: int
    plan: RewindPlan | None


class FailedHere(Told, frozen=True, gc=False):
    """This turn failed."""

    error: str
    streak: int
    plan: RewindPlan | None


# ---------------------------------------------------------------- turn to chat


class Decided(Told, frozen=True, gc=False):
    """A fallback or rescue of the turn is released: it is no longer open."""

    turn_id: str
    delivery: str
    channel: ChannelRef
    outcome: Outcome
    text: str
    files: tuple[str, ...]
    stop_id: int = 0
    """The unattributed Stop text that it takes, if any."""


class TurnSettled(Told, frozen=True, gc=False):
    """The turn's one terminal; hands the chat what is left."""

    turn_id: str
    outcome: Outcome
    replies: int
    quote: Quote


class Shed(Told, frozen=True, gc=False):
    """What a refused or failed turn answered: the retry's wake carries it."""

    turn_id: str
    answers: Answers
    addressed: bool
    plan: RewindPlan | None
    refused: bool = True
    """False: it failed."""


# ---------------------------------------------------------------- to a channel


class Deliver(Told, frozen=True, gc=False):
    """Send this, or edit that, in order."""

    delivery: str
    text: str
    kind: Literal["send", "edit"] = "send"
    files: tuple[str, ...] = ()
    purpose: Purpose = "reply"
    turn_id: str | None = None
    """The effective turn; of a late reply the echoed input."""
    owned: bool = False
    """A turn that is not yet settled owns it: its preview is replaced or detached."""
    source: MessageId | None = None
    interim: bool = False
    quotes: bool = False
    """It may quote the input `turn_id`; the owner is asked when the send leaves."""
    message: MessageId | None = None
    """The bubble to edit."""


class ShowPreview(Told, frozen=True, gc=False):
    """Show a snapshot of a turn's answer."""

    turn_id: str
    text: str


class PreviewEnd(Told, frozen=True, gc=False):
    """The turn is over; its preview is detached."""

    turn_id: str


class Retire(Told, frozen=True, gc=False):
    """The chat uses more channels than it may remember; an idle one leaves, its receipts with it."""


class ShowMark(Told, frozen=True, gc=False):
    """Put the refusal mark on a message."""

    delivery: str
    message: MessageId
    mark: str


class QuoteGiven(Told, frozen=True, gc=False):
    """The owner's answer: the quote, or none."""

    delivery: str
    quote: MessageId | None = None
    participant: str | None = None


class Settlement(Told, frozen=True, gc=False):
    """A `settled` event, brought to the channel of its delivery."""

    delivery: str
    outcome: Literal["sent", "failed", "unknown"]
    attempt: int | None = None
    messages: tuple[MessageId, ...] = ()
    reason: str | None = None
    retry_after_ms: int | None = None
    permanent: bool = False
    parts_done: int | None = None


# ---------------------------------------------------------------- from a channel


class QuoteWanted(Told, frozen=True, gc=False):
    """A send leaves the queue: may it quote?"""

    delivery: str
    turn_id: str
    channel: ChannelRef


class QuoteSettled(Told, frozen=True, gc=False):
    """What became of the quote that this delivery may have; told before the channel's next send leaves."""

    delivery: str
    turn_id: str
    spent: bool


class DeliveryEnded(Told, frozen=True, gc=False):
    """A delivery ended, or what was unknown is known now (`corrects`)."""

    delivery: str
    channel: ChannelRef
    outcome: Literal["sent", "failed", "unknown"]
    messages: tuple[MessageId, ...] = ()
    reason: str = ""
    permanent: bool = False
    corrects: bool = False


Message = (
    Event
    | Due
    | Recover
    | Handed
    | Opened
    | Read
    | Active
    | Assigned
    | Consumed
    | Recorded
    | Corrected
    | StopCaptured
    | StopTaken
    | QuestionPending
    | QuestionClosed
    | SpeechShifted
    | Interrupt
    | AgentLost
    | RefusedHere
    | FailedHere
    | Decided
    | TurnSettled
    | Shed
    | Deliver
    | ShowPreview
    | PreviewEnd
    | Retire
    | ShowMark
    | QuoteGiven
    | Settlement
    | QuoteWanted
    | QuoteSettled
    | DeliveryEnded
)
"""Everything an owner may be told."""
