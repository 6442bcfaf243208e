"""Which turn a reply belongs to: decided once, by one table, used by everything after it (RULES-replies A3).

The echoed id is what the model wrote and is not to be trusted; what is trusted is the ledger. A fold's reply
belongs to the turn it was folded into only where `consumed_turn_ids` names the fold and exactly one open
turn. Text, time and "the only pending turn" never decide for a ledgered id.
"""

from __future__ import annotations

import msgspec

from turnkeeper.engine.chat.state import FOLD_SOURCES, ChatState, TurnEntry, open_turns
from turnkeeper.engine.chat.tables import ATTRIBUTION, AttributionFacts, Echo, Number, Owner
from turnkeeper.engine.ids import ChannelRef, MessageId
from turnkeeper.engine.table import Decision

__all__ = ["Attribution", "attribute", "channel_of", "counted", "message_of", "number", "place_of"]


class Attribution(msgspec.Struct, frozen=True, gc=False):
    """Who owns a reply, with everything that follows from it."""

    decision: Decision[Owner]
    echoed: str = ""
    """The ledgered or open id that was echoed; empty if it is none."""
    effective: TurnEntry | None = None
    """The turn that owns the reply; None: late, orphan, autonomous."""
    source: str = ""
    """Of the echoed input, where it is ledgered."""

    @property
    def late(self) -> bool:
        """It answers an input that is no open turn."""
        return self.decision.verdict is Owner.LATE

    @property
    def owner_id(self) -> str:
        """The id whose quote, channel and record count: the effective turn, or the echoed input when late."""
        return self.effective.turn_id if self.effective is not None else self.echoed if self.late else ""


def counted(state: ChatState) -> list[TurnEntry]:
    """List the open turns that count: a subagent's turn never does."""
    return [entry for entry in open_turns(state) if entry.source != "subagent"]


def attribute(state: ChatState, echoed: object, consumed: tuple[str, ...]) -> Attribution:
    """Decide the owner of a reply; pure and total, a late or orphan reply is a verdict."""
    open_ = counted(state)
    named = [entry for entry in open_ if entry.turn_id in consumed]
    echo, source = _echo(state, echoed)
    policy = named[0].policy if len(named) == 1 else None
    proof = policy.attribution.fold_proof if policy is not None else "consumed"
    facts = AttributionFacts(echo, echoed in consumed, number(len(named)), number(len(open_)), proof)
    decision = ATTRIBUTION.decide(facts)
    ident = echoed if isinstance(echoed, str) and echo is not Echo.NONE else ""
    match decision.verdict:
        case Owner.ECHOED:
            effective: TurnEntry | None = state.turns[ident]
        case Owner.CONSUMED:
            effective = named[0]
        case Owner.ONLY:
            effective = open_[0]
        case Owner.LATE | Owner.NOBODY:
            effective = None
    return Attribution(decision, ident, effective, source)


def _echo(state: ChatState, echoed: object) -> tuple[Echo, str]:
    """Say what the echoed id is, and the source of its input."""
    if not isinstance(echoed, str):
        return Echo.NONE, ""
    turn = state.turns.get(echoed)
    kept = state.ledger.get(echoed)
    known = kept or state.tombstones.get(echoed)
    source = known.source if known is not None else turn.source if turn is not None else ""
    if turn is not None and turn.status == "open":
        return Echo.OPEN, source
    if not source:
        return Echo.NONE, ""
    if source not in FOLD_SOURCES:
        return Echo.OTHER, source
    # Only what is ledgered can prove; an evicted id is late (A1).
    return (Echo.FOLD if kept is not None else Echo.FOLD_GONE), source


def number(count: int) -> Number:
    """Return none, one or several."""
    return Number.ZERO if count == 0 else Number.ONE if count == 1 else Number.MANY


def channel_of(state: ChatState, owner: Attribution, reply_in: ChannelRef | None) -> ChannelRef | None:
    """Decide where a reply is sent; never "the last one used"."""
    if owner.effective is not None:
        return place_of(owner.effective)
    if owner.late:
        known = state.ledger.get(owner.echoed) or state.tombstones.get(owner.echoed)
        turn = state.turns.get(owner.echoed)
        speech = turn.speech if turn is not None else None
        return (known.channel if known is not None else None) or speech or reply_in
    places = {str(place): place for place in map(place_of, counted(state))}
    if len(places) == 1:
        shared = next(iter(places.values()))
        if shared is not None:
            return shared
    return reply_in or (None if places else state.home)


def place_of(turn: TurnEntry) -> ChannelRef | None:
    """Return where a turn's answers go: the channel of its pair, else where its speech lands."""
    channel = turn.answers.channel
    return channel if channel is not None and channel.server is not None else turn.speech


def message_of(state: ChatState, owner: Attribution) -> MessageId | None:
    """Return the message that the reply answers, for the host's own status marks."""
    if owner.effective is not None:
        return owner.effective.answers.message
    entry = state.ledger.get(owner.echoed) if owner.late else None
    return entry.message if entry is not None else None
