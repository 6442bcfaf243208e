"""Sending in order: one operation of a channel is with the host at a time (RULES-replies A8).

An item waits in the queue, is taken to the front when nothing is out, asks its owner for the quote, is
commanded, handed over, and settled. A failure puts it back at the front: a later send never overtakes an
earlier one that waits for its retry. Everything that waits is bounded; a bound that decides ends the item.
"""

from __future__ import annotations

from typing import Literal
from zlib import crc32

import msgspec

from turnkeeper.engine import commands
from turnkeeper.engine.channel import flood, preview
from turnkeeper.engine.channel.state import ChannelState, Item
from turnkeeper.engine.channel.tables import FAILURE, Cause, FailureFacts, Retry
from turnkeeper.engine.ids import chat_at, turn_at
from turnkeeper.engine.protocol import Deliver, DeliveryEnded, Draft, QuoteSettled, QuoteWanted, Settlement
from turnkeeper.engine.receipts import Receipt, Standing, standing_of
from turnkeeper.engine.signals import DeliveryUnknown, LimitReached, ReceiptTextDiffers

__all__ = [
    "RECONCILE_WAIT_MS",
    "accept",
    "discard",
    "doubt",
    "emit",
    "end",
    "expire_queued",
    "failed",
    "keep_receipt",
    "leave",
    "pump",
    "text_digest",
    "wait_left_ms",
    "waiting",
]

replace = msgspec.structs.replace
Outcome = Literal["sent", "failed", "unknown"]
RECONCILE_WAIT_MS = 60_000
"""How long an unbounded `settle_timeout_ms` still waits for the answer to `reconcile`."""


def text_digest(text: str, files: tuple[str, ...]) -> str:
    """Return what a receipt keeps of a text: enough to see that another one came under its key."""
    return f"{crc32(chr(0).join((text, *files)).encode('utf-8', 'surrogatepass')):08x}"


def accept(draft: Draft[ChannelState], told: Deliver) -> None:
    """Take a delivery into the queue; one that has a receipt is answered from it and never sent again."""
    state, now = draft.state, draft.at.now_ms
    if waiting(state, told.delivery) is not None:
        # It is on its way already, and ends once.
        return
    known = state.receipts.get(told.delivery)
    if known is not None and standing_of(state.receipts, told.delivery) is not Standing.NONE:
        if known.text_digest != text_digest(told.text, told.files):
            draft.signal(ReceiptTextDiffers(chat=state.chat, delivery=told.delivery, turn_id=told.turn_id))
        _tell_end(draft, told.delivery, known.outcome, known)
        return
    item = Item(
        delivery=told.delivery,
        text=told.text,
        since_ms=now,
        kind=told.kind,
        files=told.files,
        purpose=told.purpose,
        turn_id=told.turn_id,
        owned=told.owned,
        source=told.source,
        interim=told.interim,
        quotes=told.quotes,
        message=told.message,
        queued_ms=now,
        attempt=known.attempt if known else 0,
    )
    if len(state.queue) >= draft.at.policy.limits.outbox:
        draft.signal(LimitReached(chat=state.chat, turn_id=told.turn_id, limit="outbox"))
        _conclude(draft, item, "failed", Settlement(told.delivery, "failed", reason="outbox full"))
        return
    draft.set(queue=(*state.queue, item))
    pump(draft)


def waiting(state: ChannelState, delivery: str) -> Item | None:
    """Return the item of a delivery that is out or in the queue."""
    return next((item for item in (state.out, *state.queue) if item is not None and item.delivery == delivery), None)


def pump(draft: Draft[ChannelState]) -> None:
    """Take the next item to the front, if nothing is out and no flood wait holds the channel."""
    state, now = draft.state, draft.at.now_ms
    if state.out is not None or not state.queue or now < state.hold_until_ms:
        return
    item = state.queue[0]
    waited = item.waited_ms + now - item.since_ms
    draft.set(queue=state.queue[1:], out=replace(item, since_ms=now, waited_ms=waited))
    preview.meet(draft)
    leave(draft)


def leave(draft: Draft[ChannelState]) -> None:
    """Let the front item leave: with its quote, or after asking its owner for one."""
    item = draft.state.out
    if item is None:
        return
    needs = item.quotes and item.quote is None and not item.quoteless and item.resume_part is None
    if needs and item.turn_id is not None:
        draft.set(out=replace(item, phase="asking"))
        draft.tell(turn_at(draft.state.chat, item.turn_id), QuoteWanted(item.delivery, item.turn_id, draft.state.ref))
    else:
        emit(draft)


def emit(draft: Draft[ChannelState]) -> None:
    """Command the front item, as its next attempt."""
    item = draft.state.out
    if item is None:
        return
    item = replace(item, phase="emitted", since_ms=draft.at.now_ms, attempt=item.attempt + 1)
    draft.set(out=item)
    draft.command(_command(draft.state, item))


def _command(state: ChannelState, item: Item) -> commands.Send | commands.Edit:
    if item.kind == "edit" and item.message is not None:
        return commands.Edit(
            chat=state.chat,
            delivery=item.delivery,
            channel=state.ref,
            message=item.message,
            text=item.text,
            attempt=item.attempt,
            format="plain" if item.plain else "rich",
        )
    quote = None if item.quoteless or item.resume_part is not None else item.quote
    return commands.Send(
        chat=state.chat,
        delivery=item.delivery,
        attempt=item.attempt,
        channel=state.ref,
        text=item.text,
        files=item.files,
        purpose=item.purpose,
        turn_id=item.turn_id,
        source=item.source,
        quote=quote,
        participant=item.participant if quote is not None else None,
        interim=item.interim,
        format="plain" if item.plain else "rich",
        replaces_preview=item.took is not None,
        resume_part=item.resume_part,
    )


def failed(draft: Draft[ChannelState], told: Settlement) -> None:
    """Decide what follows a failed attempt of the front item: table FAILURE."""
    item = draft.state.out
    if item is None:
        return
    if told.parts_done:
        part = max(item.resume_part or 1, told.parts_done + 1)
        item = replace(item, resume_part=part, made=(*item.made, *told.messages))
        draft.set(out=item)
    facts = FailureFacts(_cause(draft, item, told), told.permanent, item.failures < draft.at.policy.delivery.retries)
    decision = FAILURE.decide(facts)
    draft.decided(decision)
    match decision.verdict:
        case Retry.SUCCESS:
            end(draft, "sent", told)
        case Retry.FAIL:
            end(draft, "failed", told)
        case Retry.HOLD:
            _wait(draft, 0, counted=False)
            flood.hold(draft, told.retry_after_ms or 0)
        case Retry.BACK_OFF:
            _wait(draft, _back_off_ms(draft, item), counted=True)
        case Retry.WITHOUT_QUOTE | Retry.PLAIN | Retry.AGAIN as how:
            quoteless, plain = how is Retry.WITHOUT_QUOTE, how is Retry.PLAIN
            draft.set(out=replace(item, quoteless=item.quoteless or quoteless, plain=item.plain or plain))
            leave(draft)


def _cause(draft: Draft[ChannelState], item: Item, told: Settlement) -> Cause:
    """Name the failure; a fallback that was already used is no cause for another.

    What is told as not sent again and again is a failure like any other once it is `delivery.queue_timeout_ms`
    old: nothing that a turn waits for is without a bound.
    """
    if told.reason == "not_modified" and item.kind == "edit":
        return Cause.NOT_MODIFIED
    if told.reason == "quote_gone" and item.quote is not None and not item.quoteless:
        return Cause.QUOTE_GONE
    if told.reason == "format" and not item.plain:
        return Cause.FORMAT
    young = draft.at.now_ms - item.queued_ms < draft.at.policy.delivery.queue_timeout_ms
    if told.reason == "not_sent" and item.phase == "reconciling" and young:
        return Cause.NOT_SENT
    return Cause.FLOOD if told.retry_after_ms is not None else Cause.OTHER


def _wait(draft: Draft[ChannelState], wait_ms: int, *, counted: bool) -> None:
    item = draft.state.out
    if item is not None:
        now = draft.at.now_ms
        failures = item.failures + 1 if counted else item.failures
        draft.set(out=replace(item, phase="waiting", since_ms=now, until_ms=now + wait_ms, failures=failures))


def _back_off_ms(draft: Draft[ChannelState], item: Item) -> int:
    """Return the wait before the next attempt, with a jitter that a replay repeats."""
    settings = draft.at.policy.delivery
    base = settings.backoff_ms[min(item.failures, len(settings.backoff_ms) - 1)]
    spread = base * settings.jitter_percent // 100
    return base + (crc32(f"{item.delivery}:{item.attempt}".encode("utf-8", "surrogatepass")) % (spread + 1))


def doubt(draft: Draft[ChannelState]) -> None:
    """Nobody can say whether the front item arrived: reconcile, else `delivery.on_unknown` (A8)."""
    item = draft.state.out
    if item is None:
        return
    policy = draft.at.policy
    if policy.reconciles and item.phase != "reconciling":
        draft.set(out=replace(item, phase="reconciling", since_ms=draft.at.now_ms))
        draft.command(
            commands.Reconcile(
                chat=draft.state.chat, delivery=item.delivery, attempt=item.attempt, channel=draft.state.ref
            )
        )
    elif not item.resent and (item.kind == "edit" or policy.delivery.on_unknown == "resend"):
        draft.set(out=replace(item, resent=True))
        emit(draft)
    else:
        end(draft, "unknown", Settlement(item.delivery, "unknown"))


def end(draft: Draft[ChannelState], outcome: Outcome, told: Settlement) -> None:
    """End the front item; its quote settles before the next item may ask for one."""
    item = draft.state.out
    if item is None:
        return
    draft.set(out=None)
    _conclude(draft, item, outcome, told)
    pump(draft)


def _conclude(draft: Draft[ChannelState], item: Item, outcome: Outcome, told: Settlement) -> None:
    """Write the receipt, settle the quote, tell the chat; in this order (A5)."""
    receipt = Receipt(
        outcome=outcome,
        at_ms=draft.at.now_ms,
        messages=(*item.made, *told.messages) if outcome == "sent" else item.made,
        text_digest=text_digest(item.text, item.files),
        reason=told.reason or "",
        attempt=item.attempt,
    )
    keep_receipt(draft, item.delivery, receipt)
    if item.kind == "send":
        draft.count("deliveries", item.purpose, outcome)
    if outcome == "unknown":
        _keep_unknown(draft, item)
        draft.signal(DeliveryUnknown(chat=draft.state.chat, delivery=item.delivery, turn_id=item.turn_id))
    if outcome == "failed" and item.resume_part is None:
        preview.give_back(draft, item)
    if item.reserved and item.turn_id is not None:
        spent = outcome != "failed" or item.resume_part is not None or item.resent
        draft.tell(turn_at(draft.state.chat, item.turn_id), QuoteSettled(item.delivery, item.turn_id, spent))
    _tell_end(draft, item.delivery, outcome, receipt, permanent=told.permanent)


def keep_receipt(draft: Draft[ChannelState], delivery: str, receipt: Receipt) -> None:
    """Write a receipt; the oldest leaves above `limits.receipts`."""
    limit, known = draft.at.policy.limits.receipts, draft.state.receipts
    if delivery not in known and len(known) >= limit:
        draft.signal(LimitReached(chat=draft.state.chat, limit="receipts"))
    draft.set(receipts=known.put(delivery, receipt, limit))


def _keep_unknown(draft: Draft[ChannelState], item: Item) -> None:
    """Remember what a correction needs of the send: its quote, not its text."""
    limit = draft.at.policy.limits.deliveries
    kept = {**draft.state.unknown, item.delivery: replace(item, text="", files=(), took=None)}
    if len(kept) > limit:
        draft.signal(LimitReached(chat=draft.state.chat, limit="deliveries"))
        kept.pop(next(iter(kept)))
    draft.set(unknown=kept)


def _tell_end(
    draft: Draft[ChannelState], delivery: str, outcome: Outcome, receipt: Receipt, *, permanent: bool = False
) -> None:
    draft.tell(
        chat_at(draft.state.chat),
        DeliveryEnded(
            delivery,
            draft.state.ref,
            outcome,
            messages=receipt.messages,
            reason=receipt.reason,
            permanent=permanent,
        ),
    )


def wait_left_ms(timeout_ms: int, item: Item) -> int:
    """Return the instant at which the item has waited `timeout_ms` in all."""
    return item.since_ms + max(0, timeout_ms - item.waited_ms)


def expire_queued(draft: Draft[ChannelState]) -> None:
    """End every item that waited longer than `delivery.queue_timeout_ms`: failed, never unknown."""
    now, timeout_ms = draft.at.now_ms, draft.at.policy.delivery.queue_timeout_ms
    for item in draft.state.queue:
        if wait_left_ms(timeout_ms, item) <= now:
            discard(draft, item, Settlement(item.delivery, "failed", reason="queue timeout"))


def discard(draft: Draft[ChannelState], item: Item, told: Settlement) -> None:
    """End an item that still waits in the queue, as told."""
    draft.set(queue=tuple(kept for kept in draft.state.queue if kept.delivery != item.delivery))
    _conclude(draft, item, told.outcome, told)
