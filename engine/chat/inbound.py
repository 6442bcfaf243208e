"""What comes in: occurrences, the latest-inbound anchor, and the wakes they make (RULES-answers a, b, h).

One occurrence counts once: a resend inside the window has no effect at all. The anchor follows what was
delivered, in the order of delivery; a coalesced delivery is parked and moves it on acceptance, unless a newer
one came. A wake carries what the turn will be for: a message only if the delivery itself is one.
"""

from __future__ import annotations

import msgspec

from turnkeeper.engine.chat import directory, memory, wakes
from turnkeeper.engine.chat.answer_tables import (
    ANCHOR,
    COMMIT,
    OCCURRENCE,
    WAKE,
    Anchored,
    AnchorFacts,
    Carries,
    Commit,
    CommitFacts,
    OccurrenceFacts,
    Occurs,
    Said,
    WakeFacts,
)
from turnkeeper.engine.chat.state import Anchor, ChatState, Occurrence, Parked, Waking
from turnkeeper.engine.events import Accepted, Inbound
from turnkeeper.engine.ids import delivery_key
from turnkeeper.engine.protocol import Draft
from turnkeeper.engine.signals import AnchorCommitLate, AnchorMoved, DuplicateInbound

__all__ = ["event_key", "on_accepted", "on_inbound"]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]


def on_inbound(draft: ChatDraft, event: Inbound) -> None:
    """Take in a delivery: once, into the sequence, to the anchor, and as a wake."""
    key = _identity(event)
    known = _known(draft, key)
    decision = OCCURRENCE.decide(_occurrence_facts(draft.state, event, key, known))
    draft.decided(decision)
    match decision.verdict:
        case Occurs.DUPLICATE:
            draft.signal(DuplicateInbound(chat=draft.state.chat, event_id=event.event_id), decision)
        case Occurs.RETRACTION if known is not None:
            _retract(draft, key, known)
        case _:
            _deliver(draft, event, key, known)


def _deliver(draft: ChatDraft, event: Inbound, key: str, known: Occurrence | None) -> None:
    if known is not None:
        _mark_deleted(draft, key, known)
    else:
        _remember(draft, key, event)
    if event.channel is not None:
        directory.register_lazily(draft, event.channel, open_=event.lane == "channel")
    draft.set(delivered=draft.state.delivered + 1)
    _anchor(draft, event)
    _wake(draft, event)


def _identity(event: Inbound) -> str:
    """Return what makes an occurrence the same one (H1); empty: always new."""
    if event.event_id:
        return event_key(event.channel.server if event.channel is not None else None, event.event_id)
    if event.kind == "message" and event.message is not None and event.channel is not None:
        return delivery_key("message", str(event.channel), event.message)
    return ""


def event_key(server: str | None, event_id: str) -> str:
    """Return the structural key of an occurrence: its parts never run together, no server is no server's name."""
    return delivery_key("local", event_id) if server is None else delivery_key("event", server, event_id)


def _known(draft: ChatDraft, key: str) -> Occurrence | None:
    """Return the occurrence of this key, if it is inside the window."""
    known = draft.state.occurrences.get(key) if key else None
    window_ms = draft.at.policy.inbound.receipt_window_ms
    return known if known is not None and draft.at.now_ms - known.at_ms < window_ms else None


def _occurrence_facts(state: ChatState, event: Inbound, key: str, known: Occurrence | None) -> OccurrenceFacts:
    if known is None:
        return OccurrenceFacts(known=False, retracts=False, unread=False)
    pending = any(wake.occurrence == key for wake in state.wakes)
    retracts = event.kind == "deletion" and not known.deleted
    return OccurrenceFacts(known=True, retracts=retracts, unread=pending or known.tick > state.read_tick)


def _remember(draft: ChatDraft, key: str, event: Inbound) -> None:
    if not key:
        return
    deleted = event.kind == "deletion"
    entry = Occurrence(draft.at.now_ms, event.message, event.channel, tick=draft.state.tick, deleted=deleted)
    limit = ("occurrences", draft.at.policy.limits.occurrences)
    fresh = draft.state.occurrences.drop(key)
    draft.set(occurrences=memory.kept(draft, fresh, key, entry, limit))


def _mark_deleted(draft: ChatDraft, key: str, known: Occurrence) -> None:
    """Remember that a deletion repeated this event id: the next one is a resend."""
    limit = draft.at.policy.limits.occurrences
    draft.set(occurrences=draft.state.occurrences.put(key, replace(known, deleted=True), limit))


def _retract(draft: ChatDraft, key: str, known: Occurrence) -> None:
    """The create was not read yet: its wake is withdrawn, also the one that an edit of it took over (H10)."""
    _mark_deleted(draft, key, known)
    wakes.withdraw(draft, known.channel, known.message, key)


def _said(event: Inbound) -> Said:
    if event.kind == "message":
        return Said.MESSAGE
    return Said.FIRST_VIEW if event.kind == "edit" and event.first_view else Said.MARKER


def _anchor(draft: ChatDraft, event: Inbound) -> None:
    """Set or park the anchor (table ANCHOR); it needs a channel of a known server."""
    channel, message = directory.known_place(draft.state, event.channel), event.message
    named = channel is not None and message is not None
    assembled = event.delivery == "assembled"
    facts = AnchorFacts(_said(event), named, assembled, bool(event.event_id), draft.state.ephemeral)
    decision = ANCHOR.decide(facts)
    draft.decided(decision)
    if channel is None or message is None or decision.verdict is Anchored.KEEP:
        return
    anchor = Anchor(channel, message, draft.state.delivered)
    if decision.verdict is Anchored.SET:
        _move(draft, anchor)
    elif event.event_id:
        limit = ("parked", draft.at.policy.limits.parked)
        key = event_key(channel.server, event.event_id)
        held = Parked(anchor, draft.at.now_ms)
        draft.set(parked=memory.kept(draft, draft.state.parked.drop(key), key, held, limit))


def _move(draft: ChatDraft, anchor: Anchor) -> None:
    draft.set(anchor=anchor)
    draft.signal(AnchorMoved(chat=draft.state.chat, channel=anchor.channel, message=anchor.message))


def _wake(draft: ChatDraft, event: Inbound) -> None:
    """Queue the wake that this delivery makes, if it makes one (table WAKE)."""
    said = _said(event)
    named = event.channel is not None and event.message is not None
    live = event.delivery == "live"
    decision = WAKE.decide(WakeFacts(event.wakes, live, draft.state.ephemeral, said, named))
    draft.decided(decision)
    if decision.verdict is Carries.NOTHING:
        return
    pair = decision.verdict is Carries.PAIR
    replaced: tuple[Waking, ...] = ()
    if said is Said.FIRST_VIEW and pair:
        # Of the create it replaces (H9): somebody who was addressed stays addressed.
        replaced = wakes.withdraw(draft, event.channel, event.message)
    wakes.queue(
        draft,
        Waking(
            event.kind,
            draft.state.tick,
            channel=event.channel,
            message=event.message if pair else None,
            participant=_participant(event, replaced) if pair else None,
            addressed=event.addressed or any(wake.addressed for wake in replaced),
            occurrence=_identity(event) if event.event_id else "",
        ),
    )


def _participant(event: Inbound, replaced: tuple[Waking, ...]) -> str | None:
    """Return who wrote it; an edit that does not say so has the author of its create."""
    known = [wake.participant for wake in replaced if wake.participant is not None]
    return event.participant if event.participant is not None or not known else known[-1]


def on_accepted(draft: ChatDraft, event: Accepted) -> None:
    """Commit a parked anchor, if nothing newer was delivered (table COMMIT)."""
    state = draft.state
    key = event_key(event.server, event.event_id)
    held = state.parked.get(key)
    if held is not None and draft.at.now_ms - held.at_ms >= draft.at.policy.inbound.receipt_window_ms:
        held = None
    newer = held is not None and state.anchor is not None and state.anchor.seq > held.anchor.seq
    decision = COMMIT.decide(CommitFacts(event.ok, held is not None, newer))
    draft.decided(decision)
    if decision.verdict is Commit.NOTHING or held is None:
        return
    draft.set(parked=state.parked.drop(key))
    if decision.verdict is Commit.MOVED:
        draft.count("anchor_commits", "moved")
        _move(draft, held.anchor)
    else:
        draft.count("anchor_commits", "late")
        draft.signal(AnchorCommitLate(chat=state.chat, event_id=event.event_id), decision)
