"""What the end of a delivery means for the chat: ledger first, then acks, then the turns (RULES-replies A5).

The chat knows for each delivery who waits for it. It resolves or releases the inputs that the reply consumed,
answers the call that made it and the calls that joined it, and tells the turns, which record it and let the
ends act that waited for it. It also takes over what a settled turn leaves behind.
"""

from __future__ import annotations

import msgspec

from turnkeeper.engine import commands
from turnkeeper.engine.chat import calls, dedup, ledger, memory, rewinds
from turnkeeper.engine.chat.state import FOLD_SOURCES, Call, ChatState, Outbound, TurnEntry, open_turns
from turnkeeper.engine.events import Settled
from turnkeeper.engine.ids import channel_at, turn_at
from turnkeeper.engine.protocol import (
    Corrected,
    Decided,
    DeliveryEnded,
    Draft,
    PreviewEnd,
    Recorded,
    Recover,
    Settlement,
    StopTaken,
    TurnSettled,
)
from turnkeeper.engine.signals import LateReplyCorrelated, LimitReached

__all__ = ["on_decided", "on_delivery_ended", "on_recover", "on_settled", "on_turn_settled"]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]


def on_settled(draft: ChatDraft, event: Settled) -> None:
    """Bring a settlement to the channel of its delivery; without a clue, to every channel that has one out."""
    state = draft.state
    known = state.outbound.get(event.delivery)
    if known is not None:
        places = [known.channel]
    elif event.channel is not None:
        places = [event.channel]
    else:
        asked = [
            ref for turn in state.turns.values() for ref in (turn.preview, turn.answers.channel) if ref is not None
        ]
        places = list(dict.fromkeys([*asked, *(entry.ref for entry in state.channels.values())]))
    told = Settlement(
        event.delivery,
        event.outcome,
        event.attempt,
        event.messages,
        event.reason,
        event.retry_after_ms,
        event.permanent,
        event.parts_done,
    )
    for place in places:
        draft.tell(channel_at(state.chat, place), told)


def on_delivery_ended(draft: ChatDraft, told: DeliveryEnded) -> None:
    """Take in the end of a delivery, or the correction of one that was unknown."""
    entry = draft.state.outbound.get(told.delivery)
    if entry is None:
        return
    first = entry.outcome == "in flight"
    if not first and not told.corrects:
        return
    messages = told.messages or entry.messages
    ended = replace(
        entry,
        outcome=told.outcome,
        messages=messages,
        ended_ms=draft.at.now_ms,
        error=_error(told),
    )
    memory.put_outbound(draft, told.delivery, ended)
    _ledger(draft, told, ended)
    if first:
        _answer(draft, told, ended)
    else:
        _amend_calls(draft, told, ended)
    if ended.kind not in {"edit", "report"}:
        _count(draft, told, ended, was=entry.outcome)
        _tell_turns(draft, told, ended)


def _error(told: DeliveryEnded) -> str:
    if told.outcome == "unknown":
        return "unknown"
    return f"delivery failed: {told.reason or 'no reason given'}" if told.outcome == "failed" else ""


def _ledger(draft: ChatDraft, told: DeliveryEnded, ended: Outbound) -> None:
    """Resolve what was answered, or let it wait again."""
    if told.outcome == "failed":
        ledger.fail(draft, told.delivery, ended.inputs)
        ledger.fail_after_all(draft, told.delivery)
        return
    doubt = told.delivery if told.outcome == "unknown" else ""
    ledger.acknowledge(draft, ended.inputs, doubt=doubt)
    if ended.turn_id and not ended.interim:
        ledger.resolve_merged(draft, ended.turn_id, doubt=doubt)
    elif ended.echoed and not ended.turn_id and ended.kind == "reply":
        ledger.resolve(draft, ended.echoed, doubt=doubt)
        _late_fold_was_sent(draft, ended)


def _late_fold_was_sent(draft: ChatDraft, ended: Outbound) -> None:
    """Remember that a late fold reply went beside the turn it was folded into: the incident's first half."""
    entry = draft.state.ledger.get(ended.echoed)
    if entry is None or entry.into is None or entry.source not in FOLD_SOURCES:
        return
    turn = draft.state.turns.get(entry.into)
    if turn is not None:
        _put_turn(draft, replace(turn, late_fold=entry.source))


def _put_turn(draft: ChatDraft, entry: TurnEntry) -> None:
    draft.set(turns={**draft.state.turns, entry.turn_id: entry})


def _answer(draft: ChatDraft, told: DeliveryEnded, ended: Outbound) -> None:
    """Answer the call that made the delivery, then those that joined it."""
    message = ended.messages[0] if ended.messages else ended.target
    origin = calls.origin_of(told.delivery, ended)
    _amend_calls(draft, told, ended)
    for index, call_id in enumerate(ended.calls):
        joined = index > 0 or ended.kind == "speech"
        if told.outcome == "sent":
            calls.acknowledged(draft, call_id, message, replay_of=origin if joined else None)
        else:
            draft.command(commands.Ack(chat=draft.state.chat, call_id=call_id, ok=False, error=ended.error))


def _amend_calls(draft: ChatDraft, told: DeliveryEnded, ended: Outbound) -> None:
    """Let the remembered calls say what became of them."""
    message = ended.messages[0] if ended.messages else ended.target
    for call_id in dict.fromkeys(ended.calls):
        known = draft.state.calls.get(call_id)
        if known is not None:
            done: Call = replace(known, outcome=told.outcome, message=message, error=ended.error)
            calls.remember_call(draft, call_id, done)


def _count(draft: ChatDraft, told: DeliveryEnded, ended: Outbound, *, was: str) -> None:
    """Keep the chat's own count of a turn's replies, and count what no turn records."""
    chat, state = draft.state.chat, draft.state
    turn = state.turns.get(ended.turn_id)
    if turn is not None and ended.kind == "reply":
        recorded = turn.replies + (told.outcome != "failed") - (was in {"sent", "unknown"})
        flights = turn.in_flight - (not told.corrects)
        _put_turn(draft, replace(turn, in_flight=max(0, flights), replies=max(0, recorded)))
        if turn.status == "settled" and not told.corrects and told.outcome != "failed":
            # The end overtook the reply: it is recorded as late.
            draft.count("late_replies", turn.source)
            draft.count("replies", "late", "true" if ended.interim else "false")
            draft.signal(LateReplyCorrelated(chat=chat, turn_id=ended.turn_id, source=turn.source, ended=True))
    if not ended.turn_id and told.outcome != "failed" and not told.corrects:
        owner = "late" if ended.row.startswith("late") else ended.row
        draft.count("replies", owner, "true" if ended.interim else "false")


def _tell_turns(draft: ChatDraft, told: DeliveryEnded, ended: Outbound) -> None:
    """Tell the owner and the turns that the delivery consumes."""
    chat = draft.state.chat
    message: Corrected | Recorded
    if told.corrects:
        message = Corrected(told.delivery, "sent" if told.outcome == "sent" else "failed", told.permanent)
    else:
        message = Recorded(told.delivery, told.outcome, told.permanent)
    for turn_id in dict.fromkeys((*ended.consumers, ended.turn_id)):
        if turn_id:
            draft.tell(turn_at(chat, turn_id), message)


def on_decided(draft: ChatDraft, told: Decided) -> None:
    """A turn released its fallback or rescue: from now on it is not open, and its words are known."""
    state = draft.state
    turn = state.turns.get(told.turn_id)
    if turn is not None:
        status = "settled" if turn.status == "settled" else "settling"
        _put_turn(draft, replace(turn, status=status, speaks=told.delivery))
        if turn.late_fold:
            draft.count("late_then_rescued", turn.late_fold)
    known = state.outbound.get(told.delivery)
    entry = Outbound(told.channel, state.tick, kind="speech", turn_id=told.turn_id)
    if known is not None:
        draft.set(outbound=state.outbound.drop(told.delivery))
    memory.put_outbound(draft, told.delivery, entry)
    dedup.remember_content(draft, dedup.spoken_key(told.turn_id, told.text, told.files), told.delivery)
    if told.stop_id:
        for other in open_turns(draft.state):
            draft.tell(turn_at(state.chat, other.turn_id), StopTaken(told.stop_id))


def on_turn_settled(draft: ChatDraft, told: TurnSettled) -> None:
    """A turn told its terminal: take over its quote, judge its folds later, free its preview."""
    state = draft.state
    turn = state.turns.get(told.turn_id)
    if turn is None:
        return
    settled = replace(turn, status="settled", outcome=told.outcome, replies=told.replies, policy=None, preview=None)
    _put_turn(draft, settled)
    ledger.turn_ended(draft, turn, told.quote)
    if told.replies:
        ledger.resolve_merged(draft, told.turn_id, counts=False)
    if turn.preview is not None:
        draft.tell(channel_at(state.chat, turn.preview), PreviewEnd(told.turn_id))
    rewinds.on_turn_settled(draft, settled)
    _forget_turns(draft)


def _forget_turns(draft: ChatDraft) -> None:
    """Keep so many settled turns visible as `limits.settled_turns` says, and tell which left."""
    done = [key for key, entry in draft.state.turns.items() if entry.status == "settled"]
    for turn_id in done[: max(0, len(done) - draft.at.policy.limits.settled_turns)]:
        draft.signal(LimitReached(chat=draft.state.chat, turn_id=turn_id, limit="settled_turns"))
        draft.set(turns={key: entry for key, entry in draft.state.turns.items() if key != turn_id})


def on_recover(draft: ChatDraft, told: Recover) -> None:
    """After a restart the content window of what was just delivered begins anew."""
    state, now = draft.state, draft.at.now_ms
    since_ms = now - told.down_ms - draft.at.policy.dedup.window_ms
    for delivery, known in state.outbound.items():
        if known.outcome == "sent" and known.ended_ms >= since_ms:
            memory.put_outbound(draft, delivery, replace(known, ended_ms=now))
