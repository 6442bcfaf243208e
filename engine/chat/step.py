"""The owner of one chat: its inputs, its open turns, its tool calls, and what came in for it.

Theory of operation. Every event names a chat and comes here first; the chat decides what it is about and
tells the turn or channel that owns the rest. It keeps the ledger of inputs, decides who owns a reply and
whether it was said already, keeps track of every delivery until it ends, and answers the agent's calls. It
keeps the anchor, the parked anchors and the wakes, and decides from them what a new turn answers.

Couplings: a turn is open from `turn_opened` until it releases a fallback (`Decided`), settles, or is refused
or failed; from then on an echo of it is late. A settled turn hands its quote back to the ledger. Nothing here
depends on the order of messages inside one event but this: a reply is in flight for its turns before its
channel hears of it, and the ledger settles before acks, acks before turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from turnkeeper.engine import events
from turnkeeper.engine.chat import (
    attribution,
    calls,
    directory,
    inbound,
    ledger,
    replies,
    rewinds,
    settlement,
    turns,
    wakes,
)
from turnkeeper.engine.chat.state import ChatState, TurnEntry, open_turns
from turnkeeper.engine.chat.tables import STOP, StopFacts, StopOwner
from turnkeeper.engine.events import EventBase
from turnkeeper.engine.ids import channel_at, turn_at
from turnkeeper.engine.protocol import (
    AgentLost,
    At,
    Decided,
    DeliveryEnded,
    Draft,
    Due,
    Interrupt,
    Message,
    PreviewEnd,
    QuestionClosed,
    QuestionPending,
    QuoteSettled,
    QuoteWanted,
    Recover,
    Shed,
    ShowPreview,
    StopCaptured,
    Transition,
    TurnSettled,
)
from turnkeeper.engine.signals import LimitReached, PreviewUnattributed, StopForeign, StopUnattributed

__all__ = ["step"]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]


def step(state: ChatState, message: Message, at: At) -> Transition[ChatState]:
    """Handle one event, or one message of a turn or channel; pure and total."""
    draft = Draft(state, at)
    if isinstance(message, EventBase):
        draft.set(tick=state.tick + 1)
    handler = HANDLERS.get(type(message))
    if handler is not None:
        handler(draft, message)
    return draft.close(ledger.drop_due_ms(draft.state))


def _on_chat_opened(draft: ChatDraft, event: events.ChatOpened) -> None:
    draft.set(home=event.home, ephemeral=event.ephemeral)
    if event.home is not None:
        directory.register_lazily(draft, event.home, open_=True)


def _on_activity(draft: ChatDraft, event: events.Activity) -> None:
    calls.broadcast_active(draft, event.cause)


def _on_preview(draft: ChatDraft, event: events.Preview) -> None:
    """Bring a snapshot to the channel of the open turn that it names, or of the only one."""
    calls.broadcast_active(draft, "preview")
    state = draft.state
    open_ = attribution.counted(state)
    named = [turn for turn in open_ if event.turn_id is None or turn.turn_id == event.turn_id]
    turn = named[0] if len(named) == 1 else None
    place = attribution.place_of(turn) if turn is not None else None
    if turn is None or place is None or not directory.usable(draft, place):
        draft.count("previews", "unattributed")
        draft.signal(PreviewUnattributed(chat=state.chat, turn_id=event.turn_id))
        return
    limit = draft.at.policy.limits.text_bytes
    if len(event.text.encode("utf-8", "surrogatepass")) > limit or not event.text.strip():
        if event.text.strip():
            draft.signal(LimitReached(chat=state.chat, turn_id=turn.turn_id, limit="text_bytes"))
        return
    if turn.preview is not None and turn.preview != place:
        # Its place moved: the bubble there stays as it is, and that channel is free for another.
        draft.tell(channel_at(state.chat, turn.preview), PreviewEnd(turn.turn_id))
    draft.set(turns={**draft.state.turns, turn.turn_id: replace(turn, preview=place)})
    draft.tell(channel_at(state.chat, place), ShowPreview(turn.turn_id, event.text))


def _on_question(draft: ChatDraft, event: events.QuestionOpened) -> None:
    """Stop the clocks of the turn that asks; of every open turn, if the host does not say which."""
    calls.broadcast_active(draft, "question_opened")
    for turn in open_turns(draft.state):
        if event.turn_id is None or turn.turn_id == event.turn_id:
            draft.tell(turn_at(draft.state.chat, turn.turn_id), QuestionPending(event.call_id))


def _on_answer(draft: ChatDraft, event: events.QuestionAnswered) -> None:
    for turn in open_turns(draft.state):
        draft.tell(turn_at(draft.state.chat, turn.turn_id), QuestionClosed(event.call_id))


def _on_stopped(draft: ChatDraft, event: events.Stopped) -> None:
    """Decide whose Stop it is (table STOP)."""
    state = draft.state
    named = state.turns.get(event.turn_id) if event.turn_id is not None else None
    is_named = "no" if event.turn_id is None else "open" if named is not None and named.status == "open" else "not open"
    candidates = [turn for turn in attribution.counted(state) if _can_have_stopped(state, turn)]
    decision = STOP.decide(StopFacts(event.active, is_named, attribution.number(len(candidates))))  # type: ignore[arg-type]
    draft.decided(decision)
    match decision.verdict:
        case StopOwner.IGNORED:
            return
        case StopOwner.FOREIGN:
            draft.signal(StopForeign(chat=state.chat, turn_id=event.turn_id), decision)
            return
        case StopOwner.NAMED:
            owners = [named] if named is not None else []
        case StopOwner.CANDIDATE:
            owners = candidates[:1]
        case StopOwner.SEVERAL:
            draft.signal(StopUnattributed(chat=state.chat, candidates=len(candidates)), decision)
            owners = candidates
    stop_id = state.stop_id + 1
    draft.set(stop_id=stop_id)
    prefix = directory.resolved(state, event.channel)
    told = StopCaptured(_cut(draft, event.text), prefix, len(owners) == 1, stop_id)
    for turn in owners:
        draft.tell(turn_at(state.chat, turn.turn_id), told)


def _cut(draft: ChatDraft, text: str) -> str:
    """Bound a Stop text; it has no caller to refuse it to, so what is too long is cut, and told."""
    limit = draft.at.policy.limits.text_bytes
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= limit:
        return text
    draft.signal(LimitReached(chat=draft.state.chat, limit="text_bytes"))
    return raw[:limit].decode("utf-8", "ignore")


def _can_have_stopped(state: ChatState, turn: TurnEntry) -> bool:
    """Say whether the agent has anything to do with the turn: it was read, or it has a reply, out or recorded."""
    entry = state.ledger.get(turn.turn_id)
    return (entry is not None and entry.seen) or turn.in_flight > 0 or turn.replies > 0


def _on_interrupted(draft: ChatDraft, _: events.Interrupted) -> None:
    state = draft.state
    for turn in open_turns(state):
        draft.set(turns={**draft.state.turns, turn.turn_id: replace(turn, interrupted=True)})
        draft.tell(turn_at(state.chat, turn.turn_id), Interrupt())
    ledger.cancel_all(draft)


def _on_lost(draft: ChatDraft, _: events.Lost) -> None:
    for turn in open_turns(draft.state):
        draft.tell(turn_at(draft.state.chat, turn.turn_id), AgentLost())


def _on_due(draft: ChatDraft, _: Due) -> None:
    ledger.judge_due(draft)


HANDLERS: dict[type, Callable[[ChatDraft, Any], None]] = {
    events.ChatOpened: _on_chat_opened,
    events.ChannelRegistered: directory.on_registered,
    events.ServerRemoved: directory.on_server_removed,
    events.Inbound: inbound.on_inbound,
    events.Accepted: inbound.on_accepted,
    events.Wake: wakes.on_wake,
    events.TurnOpened: turns.on_opened,
    events.TurnContinued: turns.on_continued,
    events.InputFolded: turns.on_folded,
    events.InputSeen: turns.on_seen,
    events.SpeechMoved: turns.on_speech_moved,
    events.Reply: replies.on_reply,
    events.Edit: replies.on_edit,
    events.Preview: _on_preview,
    events.QuestionOpened: _on_question,
    events.QuestionAnswered: _on_answer,
    events.Activity: _on_activity,
    events.Stopped: _on_stopped,
    events.Refused: rewinds.on_refused,
    events.Failed: rewinds.on_failed,
    events.Interrupted: _on_interrupted,
    events.Lost: _on_lost,
    events.Unstick: rewinds.on_unstick,
    events.Quiesced: wakes.on_quiesced,
    events.Resumed: wakes.on_resumed,
    events.Rewound: rewinds.on_rewound,
    events.Settled: settlement.on_settled,
    Decided: settlement.on_decided,
    DeliveryEnded: settlement.on_delivery_ended,
    TurnSettled: settlement.on_turn_settled,
    Shed: rewinds.on_shed,
    QuoteWanted: ledger.give_quote,
    QuoteSettled: ledger.settle_quote,
    Due: _on_due,
    Recover: settlement.on_recover,
}
