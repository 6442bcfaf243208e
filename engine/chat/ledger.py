"""The input ledger: every message handed to the agent, and what became of it (RULES-replies A1).

An input is written, then seen; it is answering while a reply that consumes it is in flight, and resolved when
that reply was DELIVERED, not when it arrived. What nobody confirmed is judged by the drop check after the
turn it was folded into ended in any way. The ledger is bounded; an evicted id leaves a tombstone, so an echo
of it is late and never unknown. The ledger also owns the quotes of inputs that have no live turn (A4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from turnkeeper.engine import commands
from turnkeeper.engine.chat import memory
from turnkeeper.engine.chat.state import FOLD_SOURCES, ChatState, Input, Tombstone, TurnEntry
from turnkeeper.engine.chat.tables import DROP, Drop, DropFacts
from turnkeeper.engine.ids import channel_at, delivery_key, turn_at
from turnkeeper.engine.protocol import Draft, Quote, QuoteGiven, QuoteSettled, QuoteWanted, Read
from turnkeeper.engine.signals import (
    FoldSuspected,
    InputAcked,
    InputCancelled,
    InputDropped,
    InputSeen,
    InputSuperseded,
    InputUnconfirmed,
    LimitReached,
    QuoteReleased,
    QuoteReserved,
    QuoteSpent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "acknowledge",
    "cancel_all",
    "consume",
    "drop_due_ms",
    "fail",
    "fail_after_all",
    "give_quote",
    "judge_due",
    "merge",
    "resolve_merged",
    "see",
    "settle_quote",
    "turn_ended",
    "write",
]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]
OPEN_STATES = frozenset({"written", "seen", "answering", "fold-suspected"})


def put(draft: ChatDraft, entry: Input) -> None:
    """Store an input in its place."""
    draft.set(ledger={**draft.state.ledger, entry.turn_id: entry})


def write(draft: ChatDraft, entry: Input) -> None:
    """Enter an input at the end of the ledger, and keep the ledger inside its bound."""
    rest = {key: kept for key, kept in draft.state.ledger.items() if key != entry.turn_id}
    stone = draft.state.tombstones.get(entry.turn_id)
    if stone is not None:
        # It comes back: what was quoted before it left is not quoted again, unless what has the quote fails.
        entry = replace(entry, quote=Quote("spent", _late_reply(draft.state, entry.turn_id))) if stone.quoted else entry
        draft.set(tombstones=draft.state.tombstones.drop(entry.turn_id))
    draft.set(ledger={**rest, entry.turn_id: entry})
    while len(draft.state.ledger) > draft.at.policy.limits.ledger:
        leaving = _next_to_leave(draft.state, entry.turn_id)
        if leaving is None:
            return
        _evict(draft, leaving)


def _late_reply(state: ChatState, turn_id: str) -> str:
    """Return the late reply to this input that is in flight; empty: none is."""
    flights = ((key, out) for key, out in state.outbound.items() if out.outcome == "in flight" and not out.turn_id)
    return next((key for key, out in flights if out.echoed == turn_id), "")


def see(draft: ChatDraft, turn_id: str) -> None:
    """The agent read this input: by `input_seen`, or by naming it in a guarded call."""
    entry = draft.state.ledger.get(turn_id)
    if entry is None or entry.state not in {"written", "fold-suspected"}:
        return
    put(draft, replace(entry, state="seen", seen=True, check_ms=None))
    draft.signal(InputSeen(chat=draft.state.chat, turn_id=turn_id))
    _primary_was_seen(draft, entry)
    turn = draft.state.turns.get(turn_id)
    if turn is not None and turn.status == "open":
        draft.tell(turn_at(draft.state.chat, turn_id), Read())


def _primary_was_seen(draft: ChatDraft, entry: Input) -> None:
    if entry.source == "primary":
        draft.set(seen_primary_tick=max(draft.state.seen_primary_tick, entry.tick))


def consume(draft: ChatDraft, delivery: str, ids: Iterable[str]) -> tuple[str, ...]:
    """A reply in flight consumes these: they are answering. Returns those that its delivery acknowledges."""
    taken: list[str] = []
    for turn_id in dict.fromkeys(ids):
        entry = draft.state.ledger.get(turn_id)
        if entry is not None and entry.state in {"seen", "answering"}:
            put(draft, replace(entry, state="answering", answering=(*entry.answering, delivery)))
            taken.append(turn_id)
    return tuple(taken)


def merge(draft: ChatDraft, ids: Iterable[str], turn_id: str) -> None:
    """Inputs named together with one open turn are merged into it: they get no separate answer."""
    for other in dict.fromkeys(ids):
        entry = draft.state.ledger.get(other)
        if entry is not None and other != turn_id and not entry.is_turn:
            put(draft, replace(entry, merged=turn_id))


def acknowledge(draft: ChatDraft, ids: Iterable[str], *, doubt: str = "") -> None:
    """The reply that consumes these was delivered, or may have been (`doubt` names it): they are resolved."""
    for turn_id in ids:
        entry = draft.state.ledger.get(turn_id)
        if entry is not None and _resolved(draft, entry, doubt):
            draft.signal(InputAcked(chat=draft.state.chat, turn_id=turn_id))
            _primary_was_seen(draft, entry)


def resolve_merged(draft: ChatDraft, turn_id: str, *, doubt: str = "", counts: bool = True) -> None:
    """The turn delivered something, or may have: what was merged into it gets no separate answer.

    With `counts` False nothing new was delivered: what is in doubt stays so.
    """
    for entry in tuple(draft.state.ledger.values()):
        if entry.merged == turn_id and not entry.answering and (counts or not entry.doubt):
            _resolved(draft, entry, doubt)


def resolve(draft: ChatDraft, turn_id: str, *, doubt: str = "") -> None:
    """An input needs no (more) answer: its own turn settled, or a late reply answered it."""
    entry = draft.state.ledger.get(turn_id)
    if entry is not None:
        _resolved(draft, entry, doubt)


def _resolved(draft: ChatDraft, entry: Input, doubt: str) -> bool:
    """Resolve an open input, or take the doubt from one that is resolved; says whether it was open."""
    was_open = entry.state in OPEN_STATES
    if was_open:
        put(draft, replace(entry, state="resolved", answering=(), check_ms=None, doubt=doubt))
        draft.count("inputs", "resolved")
    elif entry.doubt and not doubt:
        put(draft, replace(entry, doubt=""))
    return was_open


def fail(draft: ChatDraft, delivery: str, ids: Iterable[str]) -> None:
    """The reply that consumes these failed: they are seen again, or cancelled if the user stopped the agent."""
    for turn_id in ids:
        entry = draft.state.ledger.get(turn_id)
        if entry is None or delivery not in entry.answering:
            continue
        left = tuple(key for key in entry.answering if key != delivery)
        if left:
            put(draft, replace(entry, answering=left))
        else:
            _unanswered(draft, entry)


def fail_after_all(draft: ChatDraft, delivery: str) -> None:
    """What may have been delivered was not: what it alone resolved is seen again, as if it had failed at once."""
    for entry in tuple(draft.state.ledger.values()):
        if entry.doubt == delivery:
            _unanswered(draft, entry)


def _unanswered(draft: ChatDraft, entry: Input) -> None:
    if entry.cancelled:
        _cancel(draft, entry)
    else:
        put(draft, replace(entry, state="seen", answering=(), doubt=""))


def cancel_all(draft: ChatDraft) -> None:
    """The user stopped the agent: what it has not answered is off; what it is answering, if that fails."""
    for entry in tuple(draft.state.ledger.values()):
        if entry.state in {"written", "seen"}:
            _cancel(draft, entry)
        elif entry.state == "answering" or entry.doubt:
            put(draft, replace(entry, cancelled=True))


def _cancel(draft: ChatDraft, entry: Input) -> None:
    put(draft, replace(entry, state="cancelled", answering=(), check_ms=None, doubt=""))
    draft.count("inputs", "cancelled")
    draft.signal(InputCancelled(chat=draft.state.chat, turn_id=entry.turn_id))


def turn_ended(draft: ChatDraft, turn: TurnEntry, quote: Quote) -> None:
    """A turn settled: its input is resolved, its quote comes back, and its unseen folds will be judged."""
    own = draft.state.ledger.get(turn.turn_id)
    if own is not None:
        put(draft, replace(own, quote=quote))
        resolve(draft, turn.turn_id)
    policy = draft.at.policy if turn.policy is None else turn.policy
    check_ms = draft.at.now_ms + policy.timers.drop_confirm_ms
    for entry in tuple(draft.state.ledger.values()):
        if entry.into == turn.turn_id and entry.state == "written" and not entry.is_turn:
            put(draft, replace(entry, check_ms=check_ms))


def drop_due_ms(state: ChatState) -> int | None:
    """Return when the next drop check is due."""
    checks = [e.check_ms for e in state.ledger.values() if e.check_ms is not None and e.state == "written"]
    return min(checks, default=None)


def judge_due(draft: ChatDraft) -> None:
    """Judge every input whose drop check is due (table DROP)."""
    now = draft.at.now_ms
    for entry in tuple(draft.state.ledger.values()):
        if entry.state == "written" and entry.check_ms is not None and entry.check_ms <= now:
            _judge(draft, entry)


def _judge(draft: ChatDraft, entry: Input) -> None:
    state = draft.state
    source: Literal["autosteer", "edit-fold", "inject", "system"] = (
        entry.source if entry.source in {"autosteer", "edit-fold", "inject"} else "system"  # type: ignore[assignment]
    )
    decision = DROP.decide(
        DropFacts(
            source,
            superseded=state.seen_primary_tick > entry.tick,
            contract=state.contract_tick > entry.tick,
            redelivered=_identity(entry) in state.redelivered,
        )
    )
    draft.decided(decision)
    turn_id, chat = entry.turn_id, state.chat
    match decision.verdict:
        case Drop.UNCONFIRMED:
            put(draft, replace(entry, state="resolved", check_ms=None))
            draft.count("inputs", "unconfirmed")
            draft.signal(InputUnconfirmed(chat=chat, turn_id=turn_id), decision)
        case Drop.SUPERSEDED:
            put(draft, replace(entry, state="superseded", check_ms=None))
            draft.count("inputs", "superseded")
            draft.signal(InputSuperseded(chat=chat, turn_id=turn_id), decision)
        case Drop.SUSPECTED:
            put(draft, replace(entry, state="fold-suspected", check_ms=None))
            draft.count("inputs", "fold-suspected")
            draft.signal(FoldSuspected(chat=chat, turn_id=turn_id), decision)
        case Drop.REDELIVER | Drop.DROPPED:
            put(draft, replace(entry, state="dropped", check_ms=None))
            draft.count("inputs", "dropped")
            draft.signal(InputDropped(chat=chat, turn_id=turn_id, source=entry.source), decision)
            if decision.verdict is Drop.REDELIVER:
                _redeliver(draft, entry)


def _identity(entry: Input) -> str:
    """Return what a redelivery happens once for: the message in its channel, else the input itself."""
    if entry.message is None:
        return delivery_key("input", entry.turn_id)
    return delivery_key("message", str(entry.channel), entry.message)


def _redeliver(draft: ChatDraft, entry: Input) -> None:
    limits = draft.at.policy.limits
    limit = ("tombstones", max(limits.tombstones, limits.ledger))
    draft.set(redelivered=memory.kept(draft, draft.state.redelivered, _identity(entry), entry.turn_id, limit))
    draft.command(
        commands.Redeliver(chat=draft.state.chat, turn_id=entry.turn_id, channel=entry.channel, message=entry.message)
    )


LEAVING: tuple[tuple[str, ...], ...] = (
    ("resolved",),
    ("dropped",),
    ("superseded",),
    ("cancelled",),
    ("fold-suspected",),
    ("written",),
    ("seen",),
)
"""The order in which inputs leave a full ledger; in one state the oldest first."""


def _next_to_leave(state: ChatState, entered: str) -> Input | None:
    """Choose what leaves: never a live primary, never one that is being answered, never the one that just came."""
    live = {entered, *(key for key, turn in state.turns.items() if turn.status != "settled")}
    for states in LEAVING:
        for entry in state.ledger.values():
            if entry.state in states and entry.turn_id not in live:
                return entry
    return None


def _evict(draft: ChatDraft, entry: Input) -> None:
    draft.signal(LimitReached(chat=draft.state.chat, turn_id=entry.turn_id, limit="ledger"))
    if entry.state == "written":
        # It leaves before its time: told now, so that nothing is forgotten untold.
        _leave_unread(draft, entry)
    rest = {key: kept for key, kept in draft.state.ledger.items() if key != entry.turn_id}
    stone = Tombstone(entry.source, entry.channel, entry.is_turn, quoted=entry.quote.state != "free")
    limit = ("tombstones", draft.at.policy.limits.tombstones)
    draft.set(ledger=rest, tombstones=memory.kept(draft, draft.state.tombstones, entry.turn_id, stone, limit))


def _leave_unread(draft: ChatDraft, entry: Input) -> None:
    """An unread input leaves: a fold is dropped and handed over again, any other was never confirmed."""
    chat, turn_id = draft.state.chat, entry.turn_id
    if entry.source not in FOLD_SOURCES:
        draft.count("inputs", "unconfirmed")
        draft.signal(InputUnconfirmed(chat=chat, turn_id=turn_id))
        return
    draft.count("inputs", "dropped")
    draft.signal(InputDropped(chat=chat, turn_id=turn_id, source=entry.source))
    if entry.source == "autosteer" and _identity(entry) not in draft.state.redelivered:
        _redeliver(draft, entry)


def give_quote(draft: ChatDraft, wanted: QuoteWanted) -> None:
    """Give the quote of an input that has no live turn, if it is unspent and in its own channel."""
    state = draft.state
    entry = state.ledger.get(wanted.turn_id)
    given = QuoteGiven(wanted.delivery)
    if entry is not None and entry.message is not None and entry.channel == wanted.channel:
        mine = entry.quote.state == "reserved" and entry.quote.by == wanted.delivery
        if entry.quote.state == "free" or mine:
            put(draft, replace(entry, quote=Quote("reserved", wanted.delivery)))
            draft.count("quotes", "reserved")
            draft.signal(QuoteReserved(chat=state.chat, delivery=wanted.delivery, turn_id=wanted.turn_id))
            given = QuoteGiven(wanted.delivery, entry.message, entry.participant)
    draft.tell(channel_at(state.chat, wanted.channel), given)


def settle_quote(draft: ChatDraft, told: QuoteSettled) -> None:
    """Spend the quote of an input without a live turn, or give it back."""
    entry = draft.state.ledger.get(told.turn_id)
    if entry is None or entry.quote.by != told.delivery:
        return
    chat = draft.state.chat
    if told.spent:
        put(draft, replace(entry, quote=Quote("spent", told.delivery)))
        draft.count("quotes", "spent")
        draft.signal(QuoteSpent(chat=chat, delivery=told.delivery, turn_id=told.turn_id))
    else:
        put(draft, replace(entry, quote=Quote()))
        draft.count("quotes", "released")
        draft.signal(QuoteReleased(chat=chat, delivery=told.delivery, turn_id=told.turn_id))
