"""Admitting a tool call, in the order of RULES-replies A2: known id, guard, arguments, rate, blank.

A call that ends here is answered, and records nothing on any turn. One that passed the guard is proof that
the agent works, and every input it names was read. `replies` goes on with the calls that are admitted.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from turnkeeper.engine import commands
from turnkeeper.engine.chat import dedup, ledger, memory
from turnkeeper.engine.chat.dedup import ToolCall
from turnkeeper.engine.chat.state import Call, ChatState, Outbound, TurnEntry, open_turns
from turnkeeper.engine.chat.tables import CALL, CallFacts, Calls, Sameness
from turnkeeper.engine.events import Edit, Reply, nesting
from turnkeeper.engine.ids import ChannelRef, MessageId, delivery_key, turn_at
from turnkeeper.engine.protocol import Active, Consumed, Draft, Recorded
from turnkeeper.engine.signals import LimitReached, ReplyJoined, ReplyRejected, ReplyReplayed

__all__ = [
    "acknowledged",
    "admit",
    "answered_before",
    "broadcast_active",
    "consumed_turns",
    "origin_of",
    "read",
    "reject",
    "remember_call",
]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]


def read(draft: ChatDraft, event: Reply | Edit, files: object, *, interim: bool) -> ToolCall:
    """Read what the model wrote; the first field that cannot be used is the call's fault."""
    limits = draft.at.policy.limits
    consumed = event.consumed_turn_ids
    ids = tuple(item for item in consumed if isinstance(item, str)) if isinstance(consumed, tuple) else ()
    text = event.text if isinstance(event.text, str) else ""
    names = files if isinstance(files, tuple) and all(isinstance(name, str) for name in files) else ()
    fault, limit = "", ""
    if not isinstance(event.text, str):
        fault = "text"
    elif not isinstance(files, tuple) or len(names) != len(files):
        fault = "files"
    elif len(consumed if isinstance(consumed, tuple) else ()) > limits.consumed_ids:
        fault, limit = "consumed_turn_ids", "consumed_ids"
    elif _bytes(text) > limits.text_bytes:
        fault, limit = "text", "text_bytes"
    elif sum(map(_bytes, names)) > limits.text_bytes:
        fault, limit = "files", "text_bytes"
    else:
        fault = _too_deep(event, limits.json_depth)
        limit = "json_depth" if fault else ""
    tool: Literal["reply", "edit"] = "reply" if isinstance(event, Reply) else "edit"
    return ToolCall(
        call_id=event.call_id,
        tool=tool,
        digest=_arguments(event),
        echoed=event.turn_id,
        consumed=ids,
        contract=consumed is not None,
        text=text,
        files=names,
        interim=interim,
        chat_id=event.chat_id,
        target=event.message if isinstance(event, Edit) else None,
        fault=fault,
        limit=limit,
    )


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _too_deep(event: Reply | Edit, depth: int) -> str:
    """Name the field that nests deeper than `limits.json_depth`."""
    fields = ("turn_id", "consumed_turn_ids", "chat_id")
    return next((name for name in fields if nesting(getattr(event, name)) > depth), "")


def _arguments(event: Reply | Edit) -> str:
    """Return a digest of the arguments as written: the model's fields, not the host's."""
    written = [getattr(event, name) for name in event.__struct_fields__ if name not in {"chat", "call_id", "reply_in"}]
    return dedup.digest(type(event).__name__, *map(repr, written))


def admit(draft: ChatDraft, call: ToolCall, reply_in: ChannelRef | None) -> bool:
    """Pass a call through known id, guard, rate, arguments and blank; answers the ones that end here."""
    known = draft.state.calls.get(call.call_id) or _known_by_delivery(draft.state, call)
    if known is not None:
        _answer_known(draft, call, known)
        return False
    if not _guarded(draft.state, call.chat_id, reply_in):
        reject(draft, call, "chat_id mismatch", remembered=False)
        return False
    broadcast_active(draft, call.tool)
    for ident in call.named:
        ledger.see(draft, ident)
    if call.contract:
        draft.set(contract_tick=draft.state.tick)
    return _usable(draft, call)


def _usable(draft: ChatDraft, call: ToolCall) -> bool:
    """Pass a guarded call through rate, arguments and blank: refused here it is activity, and acknowledges nothing."""
    if not dedup.take_token(draft):
        # Before the arguments: refused calls are remembered, and a flood of bad ones would push out good ones.
        draft.signal(LimitReached(chat=draft.state.chat, limit="calls_per_s"))
        reject(draft, call, "rate limit", remembered=False)
    elif call.fault:
        if call.limit:
            draft.signal(LimitReached(chat=draft.state.chat, limit=call.limit))
        reject(draft, call, f"bad arguments: {call.fault}")
    elif call.blank:
        reject(draft, call, "nothing to send")
    else:
        return True
    return False


def broadcast_active(draft: ChatDraft, cause: str) -> None:
    """Tell every open turn of the chat that the agent is working."""
    for entry in open_turns(draft.state):
        draft.tell(turn_at(draft.state.chat, entry.turn_id), Active(cause))


def _guarded(state: ChatState, chat_id: object, reply_in: ChannelRef | None) -> bool:
    """Decide whether a call speaks to this chat: absent, null or "" came from the chat's own session."""
    if chat_id is None or chat_id == "":
        return True
    places = [state.home, reply_in, *(entry.channel for entry in state.ledger.values())]
    for entry in open_turns(state):
        places += [entry.answers.channel, entry.speech]
    names = {state.chat}
    for place in places:
        if place is not None:
            names |= {place.id, str(place)}
    return str(chat_id) in names


def _known_by_delivery(state: ChatState, call: ToolCall) -> Call | None:
    """Know a call by its delivery after `limits.calls` made it leave: a delivery is sent once."""
    delivery = delivery_key(call.tool, state.chat, call.call_id)
    out = state.outbound.get(delivery)
    return None if out is None else Call(call.digest, delivery, out.error, _first(out), out.outcome)


def _answer_known(draft: ChatDraft, call: ToolCall, known: Call) -> None:
    """A call id came again (table CALL)."""
    decision = CALL.decide(CallFacts(known.digest == call.digest, known.outcome))
    draft.decided(decision)
    match decision.verdict:
        case Calls.MISUSE:
            reject(draft, call, "call id used with other arguments", remembered=False)
        case Calls.JOIN:
            out = draft.state.outbound.get(known.delivery)
            if out is None:
                _ack_error(draft, call.call_id, "unknown")
            else:
                _join(draft, call, known.delivery, out, call.consumed)
        case Calls.REPLAY:
            _replay(draft, call, known)
        case Calls.ERROR:
            _ack_error(draft, call.call_id, known.error)


def answered_before(draft: ChatDraft, call: ToolCall, keys: tuple[str, ...], window_ms: int, *, late: bool) -> bool:
    """Answer a call whose content was said already (table SAMENESS); returns False for a new answer."""
    decision, delivery = dedup.same(draft, call, keys, window_ms, late=late)
    known = draft.state.outbound.get(delivery)
    if known is None or decision.verdict is Sameness.NEW:
        return False
    # A late reply that a fallback or rescue answers is about the input that it echoes as well.
    ids = call.named if late and known.kind == "speech" else call.consumed
    if decision.verdict is Sameness.JOIN:
        if _join(draft, call, delivery, known, ids):
            remember_call(draft, call.call_id, Call(call.digest, delivery, replay_of=origin_of(delivery, known)))
    elif decision.verdict is Sameness.REPLAY:
        _replay_content(draft, call, delivery, known, ids)
    else:
        remember_call(draft, call.call_id, Call(call.digest, delivery, error="unknown", outcome="unknown"))
        _ack_error(draft, call.call_id, "unknown")
    return True


def _replay_content(draft: ChatDraft, call: ToolCall, delivery: str, known: Outbound, ids: tuple[str, ...]) -> None:
    """Answer a call from a delivery that said the same; what it names is acknowledged with that delivery."""
    done = Call(call.digest, delivery, message=_first(known), outcome="sent", replay_of=origin_of(delivery, known))
    remember_call(draft, call.call_id, done)
    ledger.acknowledge(draft, ids)
    _replay(draft, call, done)
    if call.tool == "edit":
        return
    for turn in consumed_turns(draft.state, call, known.turn_id):
        where = turn_at(draft.state.chat, turn.turn_id)
        draft.tell(where, Consumed(delivery, call.text, call.interim))
        draft.tell(where, Recorded(delivery, "sent"))


def origin_of(delivery: str, known: Outbound) -> str:
    """Return what an answer is a replay of: the call that made it; for a fallback or rescue its delivery."""
    return known.calls[0] if known.calls and known.kind != "speech" else delivery


def consumed_turns(state: ChatState, call: ToolCall, owner_id: str) -> list[TurnEntry]:
    """List the open turns that a call consumes and does not own."""
    return [t for t in open_turns(state) if t.turn_id in call.consumed and t.turn_id != owner_id]


def _join(draft: ChatDraft, call: ToolCall, delivery: str, known: Outbound, ids: tuple[str, ...]) -> bool:
    """Let the call wait for a delivery that is out; what it names is acknowledged with it.

    So many calls as `limits.calls` remembers can wait; one more is refused, and not remembered.
    """
    chat = draft.state.chat
    if len(known.calls) >= draft.at.policy.limits.calls:
        draft.signal(LimitReached(chat=chat, limit="calls"))
        reject(draft, call, "rate limit", remembered=False)
        return False
    inputs = ledger.consume(draft, delivery, [ident for ident in ids if ident not in known.inputs])
    others = [t for t in consumed_turns(draft.state, call, known.turn_id) if t.turn_id not in known.consumers]
    joined = replace(
        known,
        calls=(*known.calls, call.call_id),
        inputs=(*known.inputs, *inputs),
        consumers=(*known.consumers, *(turn.turn_id for turn in others)),
    )
    memory.put_outbound(draft, delivery, joined)
    if known.kind != "edit":
        for turn in others:
            draft.tell(turn_at(chat, turn.turn_id), Consumed(delivery, call.text, call.interim))
    draft.signal(ReplyJoined(chat=chat, call_id=call.call_id, replay_of=origin_of(delivery, known)))
    return True


def _replay(draft: ChatDraft, call: ToolCall, done: Call) -> None:
    origin = done.replay_of or call.call_id
    draft.signal(ReplyReplayed(chat=draft.state.chat, call_id=call.call_id, replay_of=origin))
    acknowledged(draft, call.call_id, done.message, replay_of=origin)


def _first(known: Outbound) -> MessageId | None:
    return known.messages[0] if known.messages else known.target


def acknowledged(draft: ChatDraft, call_id: str, message: MessageId | None, *, replay_of: str | None) -> None:
    """Answer a call whose reply is delivered."""
    draft.command(
        commands.Ack(
            chat=draft.state.chat,
            call_id=call_id,
            ok=True,
            message=message,
            delivery="sent" if replay_of is None else "replayed",
            replay_of=replay_of,
        )
    )


def _ack_error(draft: ChatDraft, call_id: str, error: str) -> None:
    draft.command(commands.Ack(chat=draft.state.chat, call_id=call_id, ok=False, error=error))


def reject(draft: ChatDraft, call: ToolCall, error: str, *, remembered: bool = True) -> None:
    """Answer a call that sends nothing."""
    if remembered:
        remember_call(draft, call.call_id, Call(call.digest, error=error, outcome="refused"))
    reason = error.partition(":")[0]
    draft.signal(ReplyRejected(chat=draft.state.chat, call_id=call.call_id, reason=reason))
    _ack_error(draft, call.call_id, error)


def remember_call(draft: ChatDraft, call_id: str, call: Call) -> None:
    """Remember a call by its id."""
    limit = ("calls", draft.at.policy.limits.calls)
    draft.set(calls=memory.kept(draft, draft.state.calls, call_id, call, limit))
