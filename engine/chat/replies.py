"""Sending what the agent's tools say: owner, sameness, channel, and then in flight (RULES-replies A2, 5 to 8).

Everything up to the send is decided before anything is touched. From the send on a reply is in flight: for the
turns it consumes first, then for its owner, then it is told to its channel, so that no end can slip in between.
"""

from __future__ import annotations

import msgspec

from turnkeeper.engine.chat import attribution, calls, dedup, directory, ledger, memory
from turnkeeper.engine.chat.attribution import Attribution
from turnkeeper.engine.chat.dedup import ToolCall
from turnkeeper.engine.chat.state import Call, ChatState, Outbound, TurnEntry
from turnkeeper.engine.events import Edit, Reply
from turnkeeper.engine.ids import ChannelRef, channel_at, delivery_key, turn_at
from turnkeeper.engine.protocol import Assigned, Consumed, Deliver, Draft
from turnkeeper.engine.signals import LateReplyCorrelated, OrphanReplyUnattributed

__all__ = ["on_edit", "on_reply"]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]


def on_reply(draft: ChatDraft, event: Reply) -> None:
    """Handle a call of the reply tool."""
    call = calls.read(draft, event, event.files, interim=event.interim is True)
    if not calls.admit(draft, call, event.reply_in):
        return
    owner = attribution.attribute(draft.state, call.echoed, call.consumed)
    draft.decided(owner.decision)
    keys = _content_keys(draft.state, owner, call)
    if calls.answered_before(draft, call, keys, _window_ms(draft, owner), late=owner.late):
        _merge(draft, call)
        return
    channel = attribution.channel_of(draft.state, owner, event.reply_in)
    if channel is None or not directory.usable(draft, channel):
        calls.reject(draft, call, "no channel")
        return
    _send(draft, call, owner, channel, keys)


def on_edit(draft: ChatDraft, event: Edit) -> None:
    """Handle a call of the edit tool: it acknowledges like a reply, but never answers and never quotes."""
    call = calls.read(draft, event, (), interim=False)
    if not calls.admit(draft, call, None):
        return
    owner = attribution.attribute(draft.state, call.echoed, call.consumed)
    draft.decided(owner.decision)
    keys = _content_keys(draft.state, owner, call)
    if calls.answered_before(draft, call, keys, _window_ms(draft, owner), late=owner.late):
        return
    channel = memory.channel_of_bubble(draft.state, event.message)
    if channel is None and owner.owner_id:
        channel = attribution.channel_of(draft.state, owner, None)
    if channel is None or not directory.usable(draft, channel):
        calls.reject(draft, call, "no channel")
        return
    delivery = delivery_key("edit", draft.state.chat, call.call_id)
    inputs = ledger.consume(draft, delivery, call.consumed)
    _enter(draft, call, delivery, Outbound(channel, draft.state.tick, kind="edit", inputs=inputs), keys)
    draft.tell(
        channel_at(draft.state.chat, channel),
        Deliver(delivery, call.text, kind="edit", message=event.message, turn_id=owner.owner_id or None),
    )


def _window_ms(draft: ChatDraft, owner: Attribution) -> int:
    """Return how long the same content is the same answer: by the policy that the owning turn opened with."""
    turn = owner.effective
    policy = draft.at.policy if turn is None or turn.policy is None else turn.policy
    return policy.dedup.window_ms


def _content_keys(state: ChatState, owner: Attribution, call: ToolCall) -> tuple[str, ...]:
    """Return the keys of what is said: of the effective turn; late, of what the echoed input is merged into, and its own.

    A retry finds the first attempt under either, whichever input of one merged turn that one echoed, and though
    it was the first attempt that merged them. None where no turn is proven: there, equal words prove nothing.
    """
    owners = [owner.owner_id]
    if owner.late:
        entry = state.ledger.get(owner.echoed)
        merged = entry.merged if entry is not None else ""
        known = entry or state.tombstones.get(owner.echoed)
        if known is not None and not merged and not known.is_turn and owner.echoed in call.consumed:
            named = _named(state, call)
            merged = named[0].turn_id if len(named) == 1 else ""
        owners = [merged, owner.echoed]
    return tuple(dedup.content_key(owner_id, call) for owner_id in owners if owner_id)


def _send(draft: ChatDraft, call: ToolCall, owner: Attribution, channel: ChannelRef, keys: tuple[str, ...]) -> None:
    """Put a reply in flight: for the turns it consumes, then for its owner, then to its channel."""
    state = draft.state
    delivery = delivery_key("reply", state.chat, call.call_id)
    turn = owner.effective
    others = calls.consumed_turns(state, call, turn.turn_id if turn is not None else "")
    for index, other in enumerate(others):
        stands_in = turn is None and index == 0
        told = Consumed(delivery, call.text, call.interim, stands_in, call.files, channel)
        draft.tell(turn_at(state.chat, other.turn_id), told)
    if turn is not None:
        _assign(draft, call, owner, turn, channel)
    else:
        _tell_unowned(draft, call, owner)
    inputs = ledger.consume(draft, delivery, call.consumed)
    _merge(draft, call)
    outbound = Outbound(
        channel,
        state.tick,
        turn_id=turn.turn_id if turn is not None else "",
        echoed=owner.echoed,
        row=owner.decision.row,
        consumers=tuple(other.turn_id for other in others),
        inputs=inputs,
        interim=call.interim,
    )
    _enter(draft, call, delivery, outbound, keys)
    draft.tell(
        channel_at(state.chat, channel),
        Deliver(
            delivery,
            call.text,
            files=call.files,
            turn_id=owner.owner_id or None,
            owned=turn is not None,
            source=attribution.message_of(state, owner),
            interim=call.interim,
            quotes=bool(owner.owner_id),
        ),
    )


def _assign(draft: ChatDraft, call: ToolCall, owner: Attribution, turn: TurnEntry, channel: ChannelRef) -> None:
    state = draft.state
    folded = owner.echoed if owner.decision.row == "proven-fold" else ""
    delivery = delivery_key("reply", state.chat, call.call_id)
    draft.tell(
        turn_at(state.chat, turn.turn_id),
        Assigned(
            delivery,
            channel,
            call.text,
            call.files,
            call.interim,
            owner.decision.row,
            folded_from=folded,
            fold_source=owner.source if folded else "",
        ),
    )
    draft.set(turns={**draft.state.turns, turn.turn_id: replace(turn, in_flight=turn.in_flight + 1)})


def _tell_unowned(draft: ChatDraft, call: ToolCall, owner: Attribution) -> None:
    """Say at the call that no turn owns it."""
    chat = draft.state.chat
    if owner.late:
        draft.count("late_replies", owner.source)
        draft.signal(LateReplyCorrelated(chat=chat, turn_id=owner.echoed, source=owner.source), owner.decision)
    elif owner.decision.row == "orphan":
        draft.signal(OrphanReplyUnattributed(chat=chat, call_id=call.call_id), owner.decision)


def _merge(draft: ChatDraft, call: ToolCall) -> None:
    named = _named(draft.state, call)
    if len(named) == 1:
        ledger.merge(draft, call.consumed, named[0].turn_id)


def _named(state: ChatState, call: ToolCall) -> list[TurnEntry]:
    """List the open turns that a call consumes."""
    return [turn for turn in attribution.counted(state) if turn.turn_id in call.consumed]


def _enter(draft: ChatDraft, call: ToolCall, delivery: str, outbound: Outbound, keys: tuple[str, ...]) -> None:
    """Remember the call, its delivery and its content."""
    target = call.target if call.tool == "edit" else None
    entry = replace(outbound, calls=(call.call_id,), target=target)
    memory.put_outbound(draft, delivery, entry)
    calls.remember_call(draft, call.call_id, Call(call.digest, delivery))
    for key in keys:
        dedup.remember_content(draft, key, delivery)
