"""What a refused or failed turn shows: the record, the mark on what it answered, or a rewind (RULES-answers e, f).

The record is written every time. The mark goes on the pair's message in the pair's channel, or nowhere:
never on the latest message, never on a second target. A refusal that a rewind handles shows no mark.
"""

from __future__ import annotations

from turnkeeper.engine import commands
from turnkeeper.engine.commands import Outcome
from turnkeeper.engine.ids import ChannelRef, channel_at, chat_at, delivery_key, turn_at
from turnkeeper.engine.protocol import Draft, Due, FailedHere, RefusedHere, RewindPlan, Shed, ShowMark
from turnkeeper.engine.signals import RefusalMarked, RefusalUnmarked, RewindQueued
from turnkeeper.engine.turn.state import TurnState
from turnkeeper.engine.turn.tables import REFUSAL, Mark, RefusalFacts

__all__ = ["on_failed", "on_refused"]

TurnDraft = Draft[TurnState]


def on_refused(draft: TurnDraft, told: RefusedHere) -> None:
    """Record, mark or rewind at once; the terminal waits for what is in flight."""
    state = draft.state
    if state.phase != "open":
        return
    locus = _locus(state)
    _record(draft, "refusal", locus, told.category, told.streak)
    message = state.answers.message
    decision = REFUSAL.decide(
        RefusalFacts(
            interrupted=state.interrupted_ms is not None,
            subagent=state.source == "subagent",
            rewind=told.plan is not None,
            message=message is not None and locus is not None,
        )
    )
    draft.decided(decision)
    if decision.verdict is Mark.REACT and message is not None and locus is not None:
        key = delivery_key("react", state.chat, state.turn_id)
        draft.tell(channel_at(state.chat, locus), ShowMark(key, message, state.policy.refusal.mark))
        draft.signal(RefusalMarked(chat=state.chat, turn_id=state.turn_id, channel=locus, message=message), decision)
    else:
        draft.signal(RefusalUnmarked(chat=state.chat, turn_id=state.turn_id), decision)
    # One refusal, one count: a rewind that finds nothing to remove is not counted again.
    draft.count("refusals", decision.row if decision.row != "interrupted" else "no-message")
    if state.interrupted_ms is None:
        _close(draft, "refused", told.plan)


def on_failed(draft: TurnDraft, told: FailedHere) -> None:
    """Record a failure: it gets no mark, and its record no locus (O6)."""
    state = draft.state
    if state.phase != "open":
        return
    _record(draft, "failure", None, told.error, told.streak)
    if state.interrupted_ms is None:
        _close(draft, "failed", told.plan)


def _locus(state: TurnState) -> ChannelRef | None:
    """Return the pair's channel if its server is known; a bare id that nobody answers to is no locus."""
    channel = state.answers.channel
    return channel if channel is not None and channel.server is not None else None


def _record(draft: TurnDraft, kind: str, locus: ChannelRef | None, category: str | None, streak: int) -> None:
    state = draft.state
    draft.count("failure_records", kind, "none" if locus is None else "named")
    draft.command(
        commands.Record(
            chat=state.chat,
            kind="refusal" if kind == "refusal" else "failure",
            turn_id=state.turn_id,
            locus=locus,
            category=category,
            streak=streak,
        )
    )


def _close(draft: TurnDraft, outcome: Outcome, plan: RewindPlan | None) -> None:
    """Rewind if planned, tell the chat what was shed, and settle as soon as nothing is in flight."""
    state = draft.state
    if plan is not None:
        draft.count("rewinds", plan.cause)
        draft.signal(RewindQueued(chat=state.chat, turn_id=state.turn_id, cause=plan.cause, attempt=plan.attempt))
        draft.command(
            commands.Rewind(
                chat=state.chat,
                turn_id=state.turn_id,
                cause=plan.cause,
                attempt=plan.attempt,
                episode=plan.episode,
            )
        )
    draft.tell(
        chat_at(state.chat),
        Shed(state.turn_id, state.answers, state.addressed, plan, refused=outcome == "refused"),
    )
    draft.set(phase="closing", outcome=outcome, ending=None, grace_until_ms=0)
    if not state.flights:
        # After what was told above: the mark comes before the terminal.
        draft.tell(turn_at(state.chat, state.turn_id), Due())
