"""What a chat's owner knows: its inputs, turns, calls, deliveries, and what came in for it."""

from __future__ import annotations

from typing import Literal

import msgspec

from turnkeeper.engine.config import Policy
from turnkeeper.engine.horizon import Horizon
from turnkeeper.engine.ids import Address, ChannelRef, MessageId
from turnkeeper.engine.protocol import Answers, Quote, RewindPlan

__all__ = [
    "FOLD_SOURCES",
    "Anchor",
    "Call",
    "ChatState",
    "Input",
    "InputState",
    "LastRefused",
    "Occurrence",
    "Outbound",
    "Parked",
    "Registered",
    "ShedTurn",
    "Streaks",
    "Tombstone",
    "TurnEntry",
    "Unsticking",
    "Waking",
    "open_chat",
    "open_turns",
]

InputState = Literal["written", "seen", "answering", "resolved", "dropped", "superseded", "fold-suspected", "cancelled"]
"""How far an input has come."""
FOLD_SOURCES = frozenset({"autosteer", "edit-fold"})
"""The sources whose replies a proof may attribute to the turn they were folded into."""


class Input(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One message handed to the agent (RULES-replies A1)."""

    turn_id: str
    source: str
    written_ms: int
    tick: int
    """When it was written, in events of this chat: later inputs have larger ticks."""
    channel: ChannelRef | None = None
    message: MessageId | None = None
    participant: str | None = None
    into: str | None = None
    state: InputState = "written"
    seen: bool = False
    answering: tuple[str, ...] = ()
    """The deliveries in flight that consume it."""
    cancelled: bool = False
    """An interrupt came while it was being answered: it ends if that reply fails."""
    doubt: str = ""
    """Resolved by this delivery alone, of which nobody knows whether it arrived."""
    merged: str = ""
    """The turn that a guarded reply named together with it."""
    quote: Quote = Quote()
    is_turn: bool = False
    check_ms: int | None = None
    """When the drop check is due; None while the turn it was folded into goes on."""


class Tombstone(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What stays of an input that left the ledger: enough to know it when it is echoed."""

    source: str
    channel: ChannelRef | None = None
    is_turn: bool = False
    quoted: bool = False
    """Its quote was given: it has none if it comes back."""


class TurnEntry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the chat knows of a turn: whether it is open, and where its answers go."""

    turn_id: str
    source: str
    tick: int
    """Last started or continued; the largest is the live turn."""
    status: Literal["open", "closing", "settling", "settled"] = "open"
    answers: Answers = Answers()
    speech: ChannelRef | None = None
    policy: Policy | None = None
    """The policy it opened with; gone when it is settled."""
    addressed: bool = False
    preview: ChannelRef | None = None
    """Where its preview is shown."""
    interrupted: bool = False
    in_flight: int = 0
    """Replies of its own that are out."""
    replies: int = 0
    """Replies of its own that were delivered, or may have been."""
    late_fold: str = ""
    """The source of a fold into it whose late reply was delivered."""
    outcome: str = ""
    speaks: str = ""
    """Its fallback or rescue, by delivery."""


class Call(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool call by id, with its outcome."""

    digest: str
    """Of its arguments: the same id with others is a misuse."""
    delivery: str = ""
    error: str = ""
    message: MessageId | None = None
    outcome: Literal["in flight", "sent", "failed", "unknown", "refused"] = "in flight"
    replay_of: str = ""


class Outbound(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A delivery of this chat: where it is, who waits for it, and what it answers."""

    channel: ChannelRef
    tick: int
    calls: tuple[str, ...] = ()
    """The call that made it, then those that joined it."""
    kind: Literal["reply", "edit", "speech", "report"] = "reply"
    turn_id: str = ""
    """The effective turn; empty for late, orphan and autonomous replies."""
    echoed: str = ""
    row: str = ""
    consumers: tuple[str, ...] = ()
    """Open turns that it consumes and does not own."""
    inputs: tuple[str, ...] = ()
    """Inputs that its delivery acknowledges."""
    interim: bool = False
    target: MessageId | None = None
    content: str = ""
    outcome: Literal["in flight", "sent", "failed", "unknown"] = "in flight"
    messages: tuple[MessageId, ...] = ()
    error: str = ""
    ended_ms: int = 0


class Registered(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A channel that the chat knows."""

    ref: ChannelRef
    open: bool = True
    inbound_only: bool = False
    note: str = ""
    lazy: bool = False
    """Something came from there; the host never said what it is."""


class Anchor(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The latest inbound message, with its place in the delivery sequence."""

    channel: ChannelRef
    message: MessageId
    seq: int


class Parked(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An anchor held back until its occurrence is accepted."""

    anchor: Anchor
    at_ms: int


class Occurrence(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Something that came in; a resend inside the window has no effect."""

    at_ms: int
    message: MessageId | None = None
    channel: ChannelRef | None = None
    tick: int = 0
    """When it was delivered: unread until a turn starts after it."""
    deleted: bool = False
    """It is a deletion, or one repeated its event id."""


class Waking(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A queued demand to run (RULES-answers b)."""

    reason: str
    tick: int
    channel: ChannelRef | None = None
    message: MessageId | None = None
    participant: str | None = None
    addressed: bool = False
    occurrence: str = ""
    """The coalesced delivery that made it, by (server, event id): its retraction withdraws the wake."""
    parked: bool = False
    """Made while quiesced."""


class Streaks(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Refusals and failures in a row, and the budgets of the rewinds they cause (RULES-answers f)."""

    refusals: int = 0
    failures: int = 0
    sheds: int = 0
    """Rewinds in this episode, of every cause."""
    auto_rewinds: int = 0
    breaker_rewinds: int = 0
    episode: int = 0
    """The consolidated marker that rewinds share; a new one after a completion."""


class ShedTurn(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A refused or failed turn whose rewind was asked for: its retry's wake carries this."""

    turn_id: str
    answers: Answers
    addressed: bool
    plan: RewindPlan
    mark: str
    """Of the policy that the turn opened with, should nothing be left to remove."""


class Unsticking(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An operator's forced rewind loop."""

    cap: int
    rewinds: int = 0
    report_to: ChannelRef | None = None
    started: int = 0
    """The tick of the command; part of the report's key."""


class LastRefused(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The last refused turn, for an unstick's kick-off (O1)."""

    answers: Answers
    addressed: bool = False
    turn_id: str = ""


class ChatState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Everything the owner of a chat knows."""

    chat: str
    home: ChannelRef | None = None
    ephemeral: bool = False
    tick: int = 0
    """Events of this chat so far."""
    ledger: dict[str, Input] = {}
    tombstones: Horizon[Tombstone] = Horizon()
    redelivered: Horizon[str] = Horizon()
    """Inputs that were handed over again, by (channel, message)."""
    turns: dict[str, TurnEntry] = {}
    calls: Horizon[Call] = Horizon()
    outbound: Horizon[Outbound] = Horizon()
    contents: Horizon[str] = Horizon()
    """The delivery that said this, by content digest."""
    contract_tick: int = 0
    """The last guarded call that used `consumed_turn_ids`."""
    seen_primary_tick: int = 0
    """The newest primary that was seen or acknowledged."""
    tokens: int | None = None
    """Of the call rate, in thousandths; None: the bucket is full."""
    tokens_ms: int = 0
    stop_id: int = 0
    channels: dict[str, Registered] = {}
    places: dict[str, bool] = {}
    """Every channel that was registered or sent to; bounded by `limits.channels_per_chat`."""
    anchor: Anchor | None = None
    delivered: int = 0
    """The delivery sequence: one more for each inbound delivery."""
    parked: Horizon[Parked] = Horizon()
    occurrences: Horizon[Occurrence] = Horizon()
    wakes: tuple[Waking, ...] = ()
    read_tick: int = 0
    """When a turn was last started or continued: what was delivered before was read."""
    quiesced: bool = False
    announced: ChannelRef | None = None
    """Where the agent was last told that its speech lands."""
    ever_announced: bool = False
    streaks: Streaks = Streaks()
    shed: tuple[ShedTurn, ...] = ()
    unsticking: Unsticking | None = None
    last_refused: LastRefused | None = None


def open_chat(address: Address) -> ChatState:
    """Return the state of a chat that nothing happened in."""
    return ChatState(address.chat)


def open_turns(state: ChatState) -> list[TurnEntry]:
    """List the open turns, oldest first: opened, and the terminal not decided."""
    return [entry for entry in state.turns.values() if entry.status == "open"]
