"""Refusals, failures, and the rewinds they cause (RULES-answers f).

Three causes have budgets of their own: auto-rewind after a refusal, an operator's unstick, and the breaker
after failures of the history itself. A rewind goes in this order: the turn writes its record and asks for
`rewind`; the host answers `rewound`; then the chat wakes the agent again for what the shed turn answered, and
the wake is pending like any other. An episode ends with the first completion.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from turnkeeper.engine import commands
from turnkeeper.engine.chat import directory, memory, wakes
from turnkeeper.engine.chat.answer_tables import (
    REWIND,
    REWOUND,
    Rewinding,
    RewindFacts,
    RewoundFacts,
    Then,
)
from turnkeeper.engine.chat.attribution import counted
from turnkeeper.engine.chat.state import (
    ChatState,
    LastRefused,
    Outbound,
    ShedTurn,
    Streaks,
    TurnEntry,
    Unsticking,
    Waking,
)
from turnkeeper.engine.commands import RewindCause
from turnkeeper.engine.events import Failed, Refused, Rewound, Unstick
from turnkeeper.engine.ids import channel_at, delivery_key, turn_at
from turnkeeper.engine.protocol import (
    Answers,
    Deliver,
    Draft,
    FailedHere,
    RefusedHere,
    RewindPlan,
    Shed,
    ShowMark,
)
from turnkeeper.engine.signals import RefusalMarked, RefusalUnmarked, UnstickRefused

__all__ = ["on_failed", "on_refused", "on_rewound", "on_shed", "on_turn_settled", "on_unstick"]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]
COMPLETIONS = frozenset(
    {
        "final-reply",
        "fallback",
        "consumed",
        "consumed-rescue",
        "interim-rescue",
        "reply-rescue",
        "interim-noop",
        "silent",
    }
)
"""Outcomes that end an episode (F0)."""
POISON_STATUS = frozenset({400, 422, None})
REWINDS_CAP = 10
SHED_MAX = 64


def on_refused(draft: ChatDraft, event: Refused) -> None:
    """The model refused a turn: count it, decide the rewind, tell the turn."""
    turn = draft.state.turns.get(event.turn_id)
    if turn is None or turn.status != "open":
        draft.signal(RefusalUnmarked(chat=draft.state.chat, turn_id=event.turn_id, why="the turn is not open"))
        return
    if _is_the_chats(turn):
        streaks = draft.state.streaks
        draft.set(streaks=replace(streaks, refusals=streaks.refusals + 1))
    plan = _plan(draft, turn, "refused", enabled=_policy_of(draft, turn).refusal.auto_rewind)
    streak = draft.state.streaks.refusals if turn.source != "subagent" else 1
    _close(draft, turn)
    draft.tell(turn_at(draft.state.chat, turn.turn_id), RefusedHere(event.category, streak, plan))


def on_failed(draft: ChatDraft, event: Failed) -> None:
    """A turn failed: count it, let the breaker decide, tell the turn."""
    turn = draft.state.turns.get(event.turn_id)
    if turn is None or turn.status != "open":
        return
    streaks = draft.state.streaks
    if _is_the_chats(turn):
        streaks = replace(streaks, failures=streaks.failures + 1)
        draft.set(streaks=streaks)
    breaker = _policy_of(draft, turn).breaker
    poisoned = event.error == "invalid_request" and event.status in POISON_STATUS
    matches = breaker.enabled and poisoned and streaks.failures >= breaker.failures
    plan = _plan(draft, turn, "failed", enabled=matches)
    _close(draft, turn)
    streak = streaks.failures if turn.source != "subagent" else 1
    draft.tell(turn_at(draft.state.chat, turn.turn_id), FailedHere(event.error, streak, plan))


def _is_the_chats(turn: TurnEntry) -> bool:
    return turn.source != "subagent" and not turn.interrupted


def _policy_of(draft: ChatDraft, turn: TurnEntry):  # type: ignore[no-untyped-def]  # noqa: ANN202
    return turn.policy if turn.policy is not None else draft.at.policy


def _close(draft: ChatDraft, turn: TurnEntry) -> None:
    """From a refusal or failure on the turn is not open; one that was interrupted waits for its own end."""
    if not turn.interrupted:
        draft.set(turns={**draft.state.turns, turn.turn_id: replace(turn, status="closing")})


def _plan(
    draft: ChatDraft, turn: TurnEntry, ended: Literal["refused", "failed"], *, enabled: bool
) -> RewindPlan | None:
    """Decide whether the exchange is removed and run again (table REWIND)."""
    state, policy = draft.state, _policy_of(draft, turn)
    streaks, forced = state.streaks, state.unsticking
    if forced is not None and ended == "refused":
        budget = forced.rewinds < forced.cap
    elif ended == "refused":
        budget = streaks.auto_rewinds < policy.refusal.max_rewinds
    else:
        budget = streaks.breaker_rewinds < min(policy.breaker.max_rewinds, REWINDS_CAP)
    decision = REWIND.decide(RewindFacts(ended, _is_the_chats(turn), forced is not None, enabled, budget))
    draft.decided(decision)
    match decision.verdict:
        case Rewinding.NONE:
            return None
        case Rewinding.GIVE_UP:
            _give_up(draft)
            return None
        case Rewinding.AUTO:
            changed = replace(streaks, auto_rewinds=streaks.auto_rewinds + 1)
            cause: RewindCause = "auto_rewind"
        case Rewinding.BREAKER:
            changed = replace(streaks, breaker_rewinds=streaks.breaker_rewinds + 1)
            cause = "poison_breaker"
        case Rewinding.UNSTICK:
            changed = streaks
            cause = "unstick"
            if forced is not None:
                draft.set(unsticking=replace(forced, rewinds=forced.rewinds + 1))
    draft.set(streaks=replace(changed, sheds=streaks.sheds + 1))
    return RewindPlan(cause, streaks.sheds + 1, streaks.episode)


def _give_up(draft: ChatDraft) -> None:
    """The budget is used up: the counter starts anew, and an operator is told."""
    streaks = draft.state.streaks
    draft.set(streaks=replace(streaks, auto_rewinds=0, sheds=0, episode=streaks.episode + 1))
    _report(draft, "gave up")


def on_shed(draft: ChatDraft, told: Shed) -> None:
    """Remember what a refused or failed turn answered, for its retry and for an unstick."""
    if told.plan is not None:
        kept = draft.state.shed[-SHED_MAX + 1 :]
        draft.set(shed=(*kept, ShedTurn(told.turn_id, told.answers, told.addressed, told.plan)))
    turn = draft.state.turns.get(told.turn_id)
    if turn is not None and turn.source != "subagent" and told.refused:
        draft.set(last_refused=LastRefused(told.answers, told.addressed, told.turn_id))


def on_rewound(draft: ChatDraft, event: Rewound) -> None:
    """The host removed what was to be removed (table REWOUND)."""
    shed = next((one for one in draft.state.shed if one.turn_id == event.turn_id), None)
    cause: RewindCause = shed.plan.cause if shed is not None else "auto_rewind"
    decision = REWOUND.decide(RewoundFacts(shed is not None, event.removed >= 1, cause))
    draft.decided(decision)
    if shed is None:
        return
    draft.set(shed=tuple(one for one in draft.state.shed if one is not shed))
    match decision.verdict:
        case Then.WAKE:
            _wake(draft, shed.answers, cause, shed.plan.attempt, addressed=shed.addressed)
        case Then.MARK:
            _mark(draft, shed)
        case Then.REPORT:
            _mark(draft, shed)
            _report(draft, "gave up: nothing was left to remove")
        case Then.NOTHING:
            pass


def _wake(draft: ChatDraft, answers: Answers, cause: RewindCause, attempt: int, *, addressed: bool) -> None:
    """Run the agent again for this pair; the wake is pending too, so the next turn opens from it."""
    draft.command(
        commands.Wake(
            chat=draft.state.chat,
            cause=cause,
            attempt=attempt,
            channel=answers.channel,
            message=answers.message,
            addressed=addressed,
        )
    )
    wakes.queue(
        draft,
        Waking(
            cause,
            draft.state.tick,
            channel=answers.channel,
            message=answers.message,
            participant=answers.participant,
            addressed=addressed,
        ),
    )


def _mark(draft: ChatDraft, shed: ShedTurn) -> None:
    """No rewind came of it after all: the mark goes on what the shed turn answered."""
    chat, answers = draft.state.chat, shed.answers
    channel = answers.channel
    if answers.message is None or channel is None or channel.server is None:
        draft.signal(RefusalUnmarked(chat=chat, turn_id=shed.turn_id, why="the pair names no message"))
        return
    key = delivery_key("react", chat, shed.turn_id)
    draft.tell(channel_at(chat, channel), ShowMark(key, answers.message, draft.at.policy.refusal.mark))
    draft.count("refusals", "marked")
    draft.signal(RefusalMarked(chat=chat, turn_id=shed.turn_id, channel=channel, message=answers.message))


def on_unstick(draft: ChatDraft, event: Unstick) -> None:
    """Force the rewind loop: only on an idle agent; the kick-off takes the last refused turn's pair (O1)."""
    state = draft.state
    if counted(state) or state.unsticking is not None:
        why = "a turn is open" if counted(state) else "an unstick is under way"
        draft.signal(UnstickRefused(chat=state.chat, why=why))
        return
    wanted = event.max_rewinds if event.max_rewinds is not None else draft.at.policy.refusal.max_rewinds
    cap = max(1, min(wanted, REWINDS_CAP))
    draft.set(unsticking=Unsticking(cap, report_to=event.report_to, started=state.tick))
    last = state.last_refused
    answers = last.answers if last is not None else Answers()
    _wake(draft, answers, "unstick", 0, addressed=last is not None and last.addressed)


def _report(draft: ChatDraft, result: str) -> None:
    """Tell the operator how the forced loop ended, where the command came from (O12)."""
    state, forced = draft.state, draft.state.unsticking
    if forced is None:
        return
    draft.set(unsticking=None)
    if forced.report_to is None or not directory.usable(draft, forced.report_to):
        return
    key = delivery_key("report", state.chat, forced.started)
    text = f"[unstick] {result}, {forced.rewinds} of {forced.cap} rewinds used"
    memory.put_outbound(draft, key, Outbound(forced.report_to, state.tick, kind="report"))
    draft.tell(channel_at(state.chat, forced.report_to), Deliver(key, text, purpose="report"))


def on_turn_settled(draft: ChatDraft, turn: TurnEntry) -> None:
    """A completion ends the episode; any other end of a forced run ends the loop."""
    if turn.source == "subagent":
        return
    streaks = draft.state.streaks
    if turn.outcome in COMPLETIONS:
        if streaks != Streaks(episode=streaks.episode):
            draft.set(streaks=Streaks(episode=streaks.episode + (1 if streaks.sheds else 0)))
        _report(draft, "done")
    elif turn.outcome not in {"refused", "failed"}:
        _report(draft, f"ended as {turn.outcome}")
