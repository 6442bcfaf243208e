"""What a turn's owner knows: its pair, its quote, what is in flight, its record, and what would end it."""

from __future__ import annotations

from typing import Literal

import msgspec

from turnkeeper.engine.commands import Outcome
from turnkeeper.engine.config import Policy
from turnkeeper.engine.ids import Address, ChannelRef
from turnkeeper.engine.protocol import Answers, Quote

__all__ = [
    "Captured",
    "Consumption",
    "EndCause",
    "Flight",
    "Kept",
    "Phase",
    "Reply",
    "TurnState",
    "answers_of",
    "open_turn",
]

Phase = Literal["open", "closing", "settling", "settled"]
"""open: nothing decided · closing: refused or failed, waiting for what is in flight · settling: its fallback
or rescue is out · settled: the terminal was told; it lives on while something of it is unknown or in flight."""

EndCause = Literal["stop", "quiet", "idle", "hard"]
"""What ends a turn, in order of precedence."""


class Flight(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A delivery that blocks the end: the turn's own, or one of another owner that names it."""

    text: str
    interim: bool = False
    own: bool = True
    files: tuple[str, ...] = ()
    channel: ChannelRef | None = None
    row: str = ""
    folded_from: str = ""
    fold_source: str = ""
    stands_in: bool = False


class Reply(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A recorded reply; `known` False while its outcome is unknown."""

    delivery: str
    flight: Flight
    known: bool = True
    gone: bool = False
    """It stays unknown: nobody remembers the delivery any more."""


class Consumption(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A delivered non-interim reply of another owner that names this turn."""

    delivery: str
    flight: Flight
    known: bool = True
    gone: bool = False


class Kept(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The turn's failed final reply; a failed interim never replaces it."""

    delivery: str
    flight: Flight
    permanent: bool


class Captured(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The Stop text of the cycle."""

    text: str
    at_ms: int
    stop_id: int
    channel: ChannelRef | None = None
    attributed: bool = True
    """False: several turns could own it; only a ceiling uses it."""
    worked: bool = False
    """The agent went on working since."""


class TurnState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Everything the owner of a turn knows."""

    chat: str
    turn_id: str
    policy: Policy
    opened_ms: int
    active_ms: int
    """Last activity: the idle ceiling counts from here."""
    quiet_from_ms: int
    """Last activity or settlement: the quiet window counts from here."""
    source: str = "primary"
    answers: Answers = Answers()
    addressed: bool = False
    speech: ChannelRef | None = None
    phase: Phase = "open"
    seen: bool = False
    quote: Quote = Quote()
    flights: dict[str, Flight] = {}
    replies: tuple[Reply, ...] = ()
    consumed: tuple[Consumption, ...] = ()
    kept: Kept | None = None
    stop: Captured | None = None
    questions: tuple[str, ...] = ()
    question_ms: int = 0
    """When the first of the open questions was asked."""
    paused_ms: int = 0
    """Time that questions held the hard ceiling."""
    ending: EndCause | None = None
    """The end that is due and waits for what is in flight."""
    ending_ms: int = 0
    grace_until_ms: int = 0
    """The agent's own retry of a failed final is awaited until then."""
    grace_used: bool = False
    interrupted_ms: int | None = None
    outcome: Outcome | None = None
    """What closing or settling will end as."""
    ended_by: EndCause | None = None
    speaks: str = ""
    """The fallback or rescue that is out, by delivery."""
    spoken: Flight | None = None
    """What that delivery says."""
    speech_outcome: Literal["", "sent", "failed", "unknown"] = ""
    rescued: bool = False
    """What was taken as unknown and failed was sent once more."""


def open_turn(address: Address, policy: Policy, now_ms: int) -> TurnState:
    """Return the state of a turn before its `Opened`."""
    return TurnState(address.chat, address.key, policy, now_ms, now_ms, now_ms)


def answers_of(state: TurnState) -> list[Reply | Consumption]:
    """List everything recorded that answers the turn: its own replies, then those that consume it."""
    return [*state.replies, *state.consumed]
