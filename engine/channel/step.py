"""The owner of one channel of a chat: order, retries, preview, receipts.

Theory of operation. At most one send or edit is *out*: at the front, commanded, handed over, or waiting for
its retry. What comes behind it waits in the queue. Previews and reactions pass beside the queue: they are
never retried and never hold a send up. The channel asks the owner of an input for its quote when a send
leaves, and tells the owner what became of it before the next send leaves; it tells the chat how each
delivery ended. It writes a receipt for every end, and what has a receipt is never sent again.

Couplings: a settlement may be late, repeated, or of an attempt long given up on (table SETTLEMENT); a
failure may be repaired by sending otherwise (table FAILURE); a restart leaves handed sends in doubt. A wait
that is bounded ends the item as failed, a hand-over that is bounded ends it as unknown: never the reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from turnkeeper.engine import commands
from turnkeeper.engine.channel import flood, outbox, preview
from turnkeeper.engine.channel.state import ChannelState, Item, Mark
from turnkeeper.engine.channel.tables import SETTLEMENT, Known, Now, SettlementFacts, Told
from turnkeeper.engine.ids import chat_at, turn_at
from turnkeeper.engine.protocol import (
    At,
    Deliver,
    DeliveryEnded,
    Draft,
    Due,
    Handed,
    Message,
    PreviewEnd,
    QuoteGiven,
    QuoteSettled,
    Recover,
    Retire,
    Settlement,
    ShowMark,
    ShowPreview,
    Transition,
)
from turnkeeper.engine.receipts import Receipt
from turnkeeper.engine.signals import LimitReached, ReactionFailed, SettlementContradicts, UnsentTooOld

__all__ = ["due_ms", "step"]

replace = msgspec.structs.replace
ChannelDraft = Draft[ChannelState]


def step(state: ChannelState, message: Message, at: At) -> Transition[ChannelState]:
    """Handle one message of a channel; pure and total."""
    draft = Draft(state, at)
    handler = HANDLERS.get(type(message))
    if handler is not None:
        handler(draft, message)
    leaves = isinstance(message, Retire) and _is_idle(draft.state)
    return draft.close(due_ms(draft.state, at), leaves=leaves)


def _is_idle(state: ChannelState) -> bool:
    """Say whether nothing is out, waits, or could still be corrected."""
    return not (state.out or state.queue or state.loose or state.unknown or state.preview)


def _on_quote(draft: ChannelDraft, given: QuoteGiven) -> None:
    item = draft.state.out
    if item is not None and item.phase == "asking" and item.delivery == given.delivery:
        reserved = given.quote is not None
        draft.set(out=replace(item, quote=given.quote, participant=given.participant, reserved=reserved))
        outbox.emit(draft)
    else:
        preview.start(draft, given)


def _on_handed(draft: ChannelDraft, handed: Handed) -> None:
    """Give the verdict go only to the attempt that is still wanted."""
    state, now = draft.state, draft.at.now_ms
    item = state.out
    if item is not None and item.delivery == handed.delivery:
        if item.phase == "emitted" and item.attempt == handed.attempt:
            draft.set(out=replace(item, phase="handed", since_ms=now))
            draft.go = True
        return
    loose = state.loose.get(handed.delivery)
    if loose is not None and loose.attempt == handed.attempt:
        draft.set(loose={**state.loose, handed.delivery: replace(loose, handed=True, since_ms=now)})
        draft.go = True


def _on_settlement(draft: ChannelDraft, told: Settlement) -> None:
    loose = draft.state.loose.get(told.delivery)
    if loose is not None:
        attempt = loose.attempt if told.attempt is None else told.attempt
        if attempt == loose.attempt or (attempt < loose.attempt and told.outcome == "sent"):
            _settle_loose(draft, loose, told)
        return
    decision = SETTLEMENT.decide(SettlementFacts(_known(draft.state, told), Told(told.outcome)))
    draft.decided(decision)
    if decision.verdict in TOLD:
        draft.signal(SettlementContradicts(chat=draft.state.chat, delivery=told.delivery), decision)
    act = SETTLING.get(decision.verdict)
    if act is not None:
        act(draft, told)


def _settle(draft: ChannelDraft, told: Settlement) -> None:
    """It arrived: end it, wherever it waits."""
    item = outbox.waiting(draft.state, told.delivery)
    if item is not None and item is not draft.state.out:
        outbox.discard(draft, item, told)
    else:
        outbox.end(draft, "sent", told)


def _known(state: ChannelState, told: Settlement) -> Known:
    """Say what the channel knows of the delivery; an attempt that never was is unheard of."""
    item = outbox.waiting(state, told.delivery)
    if item is not None and item.attempt:
        attempt = item.attempt if told.attempt is None else told.attempt
        if attempt > item.attempt:
            return Known.NEVER
        if attempt == item.attempt and item.phase in {"emitted", "handed", "reconciling"}:
            return Known.CURRENT
        return Known.OVERTAKEN if item.phase in {"handed", "reconciling"} else Known.EARLIER
    receipt = state.receipts.get(told.delivery)
    doubted = state.unknown.get(told.delivery)
    last = doubted.attempt if doubted is not None else receipt.attempt if receipt is not None else 0
    attempt = last if told.attempt is None else told.attempt
    if not last or attempt > last:
        return Known.NEVER
    if receipt is not None and doubted is None and receipt.outcome != "unknown":
        return Known.SENT if receipt.outcome == "sent" else Known.FAILED
    # That an earlier attempt failed says nothing about the one in doubt.
    return Known.UNKNOWN if attempt == last or told.outcome == "sent" else Known.EARLIER


def _correct(draft: ChannelDraft, told: Settlement) -> None:
    """What was taken as unknown is known: confirm or correct it, and give the quote back if nobody saw it."""
    state = draft.state
    item = state.unknown.get(told.delivery)
    if item is not None:
        told = replace(told, messages=(*item.made, *told.messages))
    draft.set(unknown={key: kept for key, kept in state.unknown.items() if key != told.delivery})
    _amend_receipt(draft, told)
    outcome: Literal["sent", "failed"] = "sent" if told.outcome == "sent" else "failed"
    # The first part bears the quote: once one arrived, in whichever attempt, it was seen.
    seen = item is not None and (item.resent or item.resume_part is not None or bool(told.parts_done))
    if item is not None and item.reserved and item.turn_id is not None and outcome == "failed" and not seen:
        draft.tell(turn_at(state.chat, item.turn_id), QuoteSettled(told.delivery, item.turn_id, spent=False))
    draft.tell(
        chat_at(state.chat),
        DeliveryEnded(
            told.delivery,
            state.ref,
            outcome,
            messages=told.messages,
            reason=told.reason or "",
            permanent=told.permanent,
            corrects=True,
        ),
    )


def _amend_receipt(draft: ChannelDraft, told: Settlement) -> None:
    """Let the receipt say what is known now; one that says sent keeps saying so."""
    receipt = draft.state.receipts.get(told.delivery)
    if receipt is None or receipt.outcome == "sent" or told.outcome == "unknown":
        return
    changed = Receipt(
        outcome=told.outcome,
        at_ms=draft.at.now_ms,
        messages=told.messages,
        text_digest=receipt.text_digest,
        reason=told.reason or "",
        attempt=receipt.attempt,
    )
    outbox.keep_receipt(draft, told.delivery, changed)


def _settle_loose(draft: ChannelDraft, loose: Mark, told: Settlement) -> None:
    """A snapshot or a reaction ended; neither is tried again, and neither ever fails a turn."""
    draft.set(loose={key: kept for key, kept in draft.state.loose.items() if key != told.delivery})
    if told.outcome == "failed" and told.retry_after_ms is not None:
        flood.hold(draft, told.retry_after_ms)
    if loose.kind == "preview":
        preview.settle(draft, loose, told)
    elif told.outcome == "failed":
        draft.signal(
            ReactionFailed(
                chat=draft.state.chat, delivery=told.delivery, turn_id=loose.turn_id, why=told.reason or "failed"
            )
        )


def _on_mark(draft: ChannelDraft, told: ShowMark) -> None:
    if told.delivery in draft.state.loose:
        return
    if len(draft.state.loose) >= draft.at.policy.limits.outbox:
        draft.signal(LimitReached(chat=draft.state.chat, limit="outbox"))
        draft.signal(ReactionFailed(chat=draft.state.chat, delivery=told.delivery, why="outbox full"))
        return
    out = Mark("react", draft.at.now_ms, message=told.message, mark=told.mark)
    draft.set(loose={**draft.state.loose, told.delivery: out})
    _react(draft, told.delivery, out)


def _react(draft: ChannelDraft, delivery: str, out: Mark) -> None:
    if out.message is not None:
        draft.command(
            commands.React(
                chat=draft.state.chat,
                delivery=delivery,
                channel=draft.state.ref,
                message=out.message,
                mark=out.mark,
                attempt=out.attempt,
            )
        )


def _on_due(draft: ChannelDraft, _: Due) -> None:
    """Decide whatever is due; a deadline is only a hint, the state says what is."""
    now, settings = draft.at.now_ms, draft.at.policy.delivery
    for delivery, loose in draft.state.loose.items():
        if settings.settle_timeout_ms and loose.since_ms + settings.settle_timeout_ms <= now:
            _settle_loose(draft, loose, Settlement(delivery, "unknown", reason="no settlement"))
    item = draft.state.out
    if item is not None:
        due = _item_due_ms(item, draft.at)
        if due is not None and due <= now:
            _front_due(draft, item)
    outbox.expire_queued(draft)
    outbox.pump(draft)


def _front_due(draft: ChannelDraft, item: Item) -> None:
    timeout_ms = draft.at.policy.delivery.queue_timeout_ms
    if item.phase in {"handed", "reconciling"}:
        outbox.doubt(draft)
    elif outbox.wait_left_ms(timeout_ms, item) <= draft.at.now_ms:
        outbox.end(draft, "failed", Settlement(item.delivery, "failed", reason="queue timeout"))
    elif item.phase == "waiting":
        draft.set(out=replace(item, waited_ms=item.waited_ms + draft.at.now_ms - item.since_ms))
        outbox.leave(draft)


def _on_recover(draft: ChannelDraft, _: Recover) -> None:
    """After a restart: drop the preview, repeat reactions and edits, doubt the send that was handed over."""
    now = draft.at.now_ms
    _recover_loose(draft)
    _tell_too_old(draft)
    draft.set(queue=tuple(replace(item, since_ms=now) for item in draft.state.queue))
    item = draft.state.out
    if item is None:
        return
    if item.phase in {"handed", "reconciling"} and item.kind == "edit":
        outbox.emit(draft)
    elif item.phase in {"handed", "reconciling"}:
        draft.set(out=replace(item, phase="handed"))
        outbox.doubt(draft)
    else:
        # It waits to be handed over, or for its retry: that the engine was down is no wait of its own.
        draft.set(out=replace(item, since_ms=now))


def _recover_loose(draft: ChannelDraft) -> None:
    """Previews are over, their quotes spent; a reaction is repeated, harmlessly."""
    state, now = draft.state, draft.at.now_ms
    for delivery, loose in state.loose.items():
        if loose.kind == "preview":
            _settle_loose(draft, loose, Settlement(delivery, "unknown"))
        elif loose.handed:
            again = replace(loose, attempt=loose.attempt + 1, since_ms=now, handed=False)
            draft.set(loose={**draft.state.loose, delivery: again})
            _react(draft, delivery, again)
        else:
            # Its command is handed over now, as it is.
            draft.set(loose={**draft.state.loose, delivery: replace(loose, since_ms=now)})
    if draft.state.preview is not None:
        preview.detach(draft, draft.state.preview.turn_id, ended=False)


def _tell_too_old(draft: ChannelDraft) -> None:
    """An answer that waited unsent longer than `recovery.max_age_ms` is told as failed, not sent."""
    state, oldest = draft.state, draft.at.now_ms - draft.at.policy.recovery.max_age_ms
    # The front last: its end lets the next one leave, which must not be one that is too old as well.
    old = [item for item in (*state.queue, state.out) if item is not None and item.queued_ms < oldest]
    for item in old:
        if item.phase in {"handed", "reconciling"}:
            continue
        draft.signal(UnsentTooOld(chat=state.chat, delivery=item.delivery, turn_id=item.turn_id))
        gone = Settlement(item.delivery, "failed", reason="too old", permanent=True)
        if draft.state.out is not None and draft.state.out.delivery == item.delivery:
            outbox.end(draft, "failed", gone)
        else:
            outbox.discard(draft, item, gone)


def _item_due_ms(item: Item, at: At) -> int | None:
    settings = at.policy.delivery
    if item.phase == "handed":
        return item.since_ms + settings.settle_timeout_ms if settings.settle_timeout_ms else None
    if item.phase == "reconciling":
        return item.since_ms + (settings.settle_timeout_ms or outbox.RECONCILE_WAIT_MS)
    patience = outbox.wait_left_ms(settings.queue_timeout_ms, item)
    return min(item.until_ms, patience) if item.phase == "waiting" else patience


def due_ms(state: ChannelState, at: At) -> int | None:
    """Return the earliest deadline in the state."""
    settings = at.policy.delivery
    dues = [outbox.wait_left_ms(settings.queue_timeout_ms, item) for item in state.queue]
    if state.out is not None:
        due = _item_due_ms(state.out, at)
        if due is not None:
            dues.append(due)
    elif state.queue:
        dues.append(state.hold_until_ms)
    if settings.settle_timeout_ms:
        dues.extend(loose.since_ms + settings.settle_timeout_ms for loose in state.loose.values())
    return min(dues, default=None)


TOLD = frozenset({Now.SETTLE_TOLD, Now.CONTRADICTION, Now.BELATED})
SETTLING: dict[Now, Callable[[ChannelDraft, Settlement], None]] = {
    Now.SETTLE: _settle,
    Now.SETTLE_TOLD: _settle,
    Now.RETRY: outbox.failed,
    Now.DOUBT: lambda draft, _: outbox.doubt(draft),
    Now.CONFIRM: _correct,
    Now.CORRECT: _correct,
    Now.BELATED: _correct,
}
"""What the verdicts of SETTLEMENT do; the others do nothing."""
HANDLERS: dict[type, Callable[[ChannelDraft, Any], None]] = {
    Deliver: outbox.accept,
    QuoteGiven: _on_quote,
    Handed: _on_handed,
    Settlement: _on_settlement,
    ShowPreview: preview.show,
    PreviewEnd: lambda draft, told: preview.detach(draft, told.turn_id),
    ShowMark: _on_mark,
    Due: _on_due,
    Recover: _on_recover,
}
