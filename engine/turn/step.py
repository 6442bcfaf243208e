"""The owner of one turn: its pair, its quote, what is in flight, its record and its end.

Theory of operation. A turn is *open* until something decides its terminal. What may end it: a Stop after a
grace, silence after an answer, two ceilings, an interrupt after its own grace, the loss of the agent, a
refusal, a failure. Of these only interrupt and loss do not wait for what is in flight. `closing` waits with
its outcome known (refused, failed); `settling` waits for the fallback or rescue it released; `settled` has
told its terminal and lives on only while something of it is unknown and could still be rescued.

Couplings: activity of the agent acts on every open turn and cancels a waiting end, a Stop's grace and the
retry grace; a settlement restarts the quiet window and nothing else; at one instant a settlement beats Stop,
Stop beats quiet, quiet beats the ceilings. The pair is set once and is immutable by type; where plain speech
lands may move, what the turn answers may not. The policy is the one the turn opened with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from turnkeeper.engine.protocol import (
    Active,
    AgentLost,
    Assigned,
    At,
    Consumed,
    Corrected,
    Draft,
    Due,
    FailedHere,
    Interrupt,
    Message,
    Opened,
    QuestionClosed,
    QuestionPending,
    QuoteSettled,
    QuoteWanted,
    Read,
    Recorded,
    Recover,
    RefusedHere,
    SpeechShifted,
    StopCaptured,
    StopTaken,
    Transition,
)
from turnkeeper.engine.signals import StopGraceCancelled
from turnkeeper.engine.turn import clocks, finalization, quote, record, refusal
from turnkeeper.engine.turn.state import Captured, Flight, TurnState

__all__ = ["step"]

replace = msgspec.structs.replace
TurnDraft = Draft[TurnState]
QUESTIONS_MAX = 64
"""Open questions of one turn; an agent that asks more waits for these."""


def step(state: TurnState, message: Message, at: At) -> Transition[TurnState]:
    """Handle one message of a turn; pure and total."""
    draft = Draft(state, at)
    handler = HANDLERS.get(type(message))
    if handler is not None:
        handler(draft, message)
    return draft.close(clocks.due_ms(draft.state), leaves=not finalization.living(draft.state))


def _on_opened(draft: TurnDraft, told: Opened) -> None:
    draft.set(
        source=told.source,
        answers=told.answers,
        speech=told.speech,
        quote=told.quote,
        addressed=told.addressed,
    )


def _on_read(draft: TurnDraft, _: Read) -> None:
    draft.set(seen=True)


def _on_active(draft: TurnDraft, _: Active) -> None:
    """The agent is working: every end that waits is off."""
    state, now = draft.state, draft.at.now_ms
    if state.phase != "open":
        return
    stop = state.stop
    if stop is not None and not stop.worked:
        if stop.attributed and state.interrupted_ms is None:
            draft.signal(StopGraceCancelled(chat=state.chat, turn_id=state.turn_id))
        draft.set(stop=replace(stop, worked=True))
    draft.set(active_ms=now, quiet_from_ms=now, ending=None, grace_until_ms=0)


def _on_assigned(draft: TurnDraft, told: Assigned) -> None:
    flight = Flight(
        told.text,
        interim=told.interim,
        files=told.files,
        channel=told.channel,
        row=told.row,
        folded_from=told.folded_from,
        fold_source=told.fold_source,
    )
    draft.set(flights={**draft.state.flights, told.delivery: flight})


def _on_consumed(draft: TurnDraft, told: Consumed) -> None:
    state = draft.state
    known = told.delivery in state.flights or any(one.delivery == told.delivery for one in state.consumed)
    if known or state.phase != "open":
        return
    flight = Flight(
        told.text,
        interim=told.interim,
        own=False,
        files=told.files,
        channel=told.channel,
        stands_in=told.stands_in,
    )
    draft.set(flights={**state.flights, told.delivery: flight})


def _on_stop(draft: TurnDraft, told: StopCaptured) -> None:
    """Keep the first Stop of a cycle; one that comes after new activity replaces it.

    A first Stop that said nothing takes the words of the next: its grace goes on, no text is lost.
    """
    state = draft.state
    if state.phase != "open" or state.interrupted_ms is not None:
        return
    kept = state.stop
    if kept is not None and not kept.worked and (kept.attributed or not told.attributed):
        if kept.attributed is told.attributed and not kept.text.strip():
            draft.set(stop=replace(kept, text=told.text, stop_id=told.stop_id, channel=told.channel))
        return
    draft.set(stop=Captured(told.text, draft.at.now_ms, told.stop_id, channel=told.channel, attributed=told.attributed))


def _on_stop_taken(draft: TurnDraft, told: StopTaken) -> None:
    stop = draft.state.stop
    if stop is not None and stop.stop_id == told.stop_id and not stop.attributed:
        draft.set(stop=None)


def _on_question(draft: TurnDraft, told: QuestionPending) -> None:
    state = draft.state
    if state.phase != "open" or told.call_id in state.questions or len(state.questions) >= QUESTIONS_MAX:
        return
    since_ms = state.question_ms if state.questions else draft.at.now_ms
    draft.set(questions=(*state.questions, told.call_id), question_ms=since_ms)


def _on_answer(draft: TurnDraft, told: QuestionClosed) -> None:
    state = draft.state
    if told.call_id in state.questions:
        rest = tuple(call for call in state.questions if call != told.call_id)
        draft.set(questions=rest)
        if not rest:
            _clocks_go_on(draft)
    else:
        _on_active(draft, Active("question_answered"))


def _clocks_go_on(draft: TurnDraft) -> None:
    """No question is open any more: the hard ceiling shifts by the pause, a captured Stop's grace begins."""
    state, now = draft.state, draft.at.now_ms
    stop = None if state.stop is None else replace(state.stop, at_ms=now)
    draft.set(
        questions=(),
        paused_ms=state.paused_ms + now - state.question_ms,
        active_ms=now,
        quiet_from_ms=now,
        stop=stop,
    )


def _on_speech(draft: TurnDraft, told: SpeechShifted) -> None:
    draft.set(speech=told.channel)


def _on_interrupt(draft: TurnDraft, _: Interrupt) -> None:
    if draft.state.phase == "open" and draft.state.interrupted_ms is None:
        draft.set(interrupted_ms=draft.at.now_ms, ending=None, grace_until_ms=0)


def _on_lost(draft: TurnDraft, _: AgentLost) -> None:
    if draft.state.phase == "open":
        finalization.settle(draft, "lost")


def _on_due(draft: TurnDraft, _: Due) -> None:
    """Decide whatever is due; a deadline is only a hint, the state says what is."""
    state, now = draft.state, draft.at.now_ms
    if state.phase == "closing" and state.outcome is not None and not state.flights:
        finalization.settle(draft, state.outcome)
    if state.phase != "open":
        return
    timers = state.policy.timers
    if state.interrupted_ms is not None:
        if state.interrupted_ms + timers.interrupt_grace_ms <= now:
            finalization.settle(draft, "interrupted")
    elif state.questions:
        if state.question_ms + timers.question_max_ms <= now:
            _clocks_go_on(draft)
    else:
        cause = clocks.end_due(state, now)
        if cause is not None:
            draft.set(grace_until_ms=0)
            finalization.act(draft, cause)


def _on_recover(draft: TurnDraft, _: Recover) -> None:
    """After a restart silence counts from now; the hard ceiling does not. A settled turn has no clocks."""
    state, now = draft.state, draft.at.now_ms
    if state.phase == "settled":
        return
    draft.set(
        active_ms=now,
        quiet_from_ms=now,
        stop=None if state.stop is None else replace(state.stop, at_ms=now),
        interrupted_ms=None if state.interrupted_ms is None else now,
        grace_until_ms=now + state.policy.timers.retry_grace_ms if state.grace_until_ms else 0,
    )


HANDLERS: dict[type, Callable[[TurnDraft, Any], None]] = {
    Opened: _on_opened,
    Read: _on_read,
    Active: _on_active,
    Assigned: _on_assigned,
    Consumed: _on_consumed,
    Recorded: record.on_recorded,
    Corrected: record.on_corrected,
    StopCaptured: _on_stop,
    StopTaken: _on_stop_taken,
    QuestionPending: _on_question,
    QuestionClosed: _on_answer,
    SpeechShifted: _on_speech,
    Interrupt: _on_interrupt,
    AgentLost: _on_lost,
    RefusedHere: refusal.on_refused,
    FailedHere: refusal.on_failed,
    QuoteWanted: quote.on_wanted,
    QuoteSettled: quote.on_settled,
    Due: _on_due,
    Recover: _on_recover,
}
