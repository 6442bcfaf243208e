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
from turnkeeper.engine.chat.rewind_tables import (
    REWIND,
    REWOUND,
    UNSTICK,
    RewindFacts,
    Rewinding,
    RewoundFacts,
    Then,
    UnstickFacts,
    Unstuck,
)
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
from turnkeeper.engine.config import Policy
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
from turnkeeper.engine.signals import LimitReached, RefusalMarked, RefusalUnmarked, SpeechUnrouted, UnstickRefused

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
        "undelivered",
    }
)
"""Outcomes of a turn that the model completed: they end an episode (F0). That nobody could be reached is no refusal."""
POISON_STATUS = frozenset({400, 422, None})
REWINDS_CAP = 10
CAUSES: dict[Rewinding, RewindCause] = {
    Rewinding.AUTO: "auto_rewind",
    Rewinding.UNSTICK: "unstick",
    Rewinding.BREAKER: "poison_breaker",
}


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


def _policy_of(draft: ChatDraft, turn: TurnEntry) -> Policy:
    """Return the policy that the turn opened with."""
    return turn.policy if turn.policy is not None else draft.at.policy


def _close(draft: ChatDraft, turn: TurnEntry) -> None:
    """From a refusal or failure on the turn is not open; one that was interrupted waits for its own end."""
    if not turn.interrupted:
        draft.set(turns={**draft.state.turns, turn.turn_id: replace(turn, status="closing")})


def _plan(
    draft: ChatDraft, turn: TurnEntry, ended: Literal["refused", "failed"], *, enabled: bool
) -> RewindPlan | None:
    """Decide whether the exchange is removed and run again (table REWIND)."""
    state, forced = draft.state, draft.state.unsticking
    budget = _budget_left(state, _policy_of(draft, turn), ended)
    decision = REWIND.decide(RewindFacts(ended, _is_the_chats(turn), forced is not None, enabled, budget))
    draft.decided(decision)
    match decision.verdict:
        case Rewinding.NONE:
            return None
        case Rewinding.GIVE_UP:
            _give_up(draft, "unstick" if forced is not None else "auto_rewind", "gave up")
            return None
        case Rewinding.AUTO | Rewinding.BREAKER | Rewinding.UNSTICK:
            return _spend(draft, CAUSES[decision.verdict])


def _budget_left(state: ChatState, policy: Policy, ended: Literal["refused", "failed"]) -> bool:
    """Say whether the budget that pays for this rewind is not used up; the three are independent (F15)."""
    streaks, forced = state.streaks, state.unsticking
    if ended == "failed":
        return streaks.breaker_rewinds < min(policy.breaker.max_rewinds, REWINDS_CAP)
    if forced is not None:
        return forced.rewinds < forced.cap
    return streaks.auto_rewinds < policy.refusal.max_rewinds


def _spend(draft: ChatDraft, cause: RewindCause) -> RewindPlan:
    """Take one rewind out of its budget; the episode and its marker are shared."""
    streaks, forced = draft.state.streaks, draft.state.unsticking
    if cause == "unstick" and forced is not None:
        draft.set(unsticking=replace(forced, rewinds=forced.rewinds + 1))
    draft.set(
        streaks=replace(
            streaks,
            sheds=streaks.sheds + 1,
            auto_rewinds=streaks.auto_rewinds + (cause == "auto_rewind"),
            breaker_rewinds=streaks.breaker_rewinds + (cause == "poison_breaker"),
        )
    )
    return RewindPlan(cause, streaks.sheds + 1, streaks.episode)


def _give_up(draft: ChatDraft, cause: RewindCause, result: str) -> None:
    """The episode is over: its own budget starts anew, the others stay (F15), and an operator is told."""
    streaks = draft.state.streaks
    used = 0 if cause == "auto_rewind" else streaks.auto_rewinds
    draft.set(streaks=replace(streaks, auto_rewinds=used, sheds=0, episode=streaks.episode + 1))
    _report(draft, result)


def on_shed(draft: ChatDraft, told: Shed) -> None:
    """Remember what a refused or failed turn answered, for its retry and for an unstick."""
    turn = draft.state.turns.get(told.turn_id)
    if turn is None or turn.source == "subagent":
        return
    if told.refused:
        draft.set(last_refused=LastRefused(told.answers, told.addressed, told.turn_id))
    if told.plan is None:
        return
    limit, waiting = draft.at.policy.limits.open_turns, draft.state.shed
    if len(waiting) >= limit:
        draft.signal(LimitReached(chat=draft.state.chat, turn_id=waiting[0].turn_id, limit="open_turns"))
    mark = _policy_of(draft, turn).refusal.mark
    shed = ShedTurn(told.turn_id, told.answers, told.addressed, told.plan, mark=mark)
    draft.set(shed=(*waiting, shed)[-limit:])


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
        case Then.GIVE_UP:
            _mark(draft, shed)
            _give_up(draft, cause, "gave up: nothing was left to remove")
        case Then.NOTHING:
            # Nothing was shed after all.
            streaks = draft.state.streaks
            draft.set(streaks=replace(streaks, sheds=max(0, streaks.sheds - 1)))


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
    draft.tell(channel_at(chat, channel), ShowMark(key, answers.message, shed.mark))
    draft.signal(RefusalMarked(chat=chat, turn_id=shed.turn_id, channel=channel, message=answers.message))


def on_unstick(draft: ChatDraft, event: Unstick) -> None:
    """Force the rewind loop: only on an idle agent; the kick-off takes the last refused turn's pair (O1)."""
    state = draft.state
    decision = UNSTICK.decide(
        UnstickFacts(
            subagent=state.ephemeral,
            busy=any(turn.status != "settled" and turn.source != "subagent" for turn in state.turns.values()),
            forced=state.unsticking is not None,
            rewinding=bool(state.shed),
        )
    )
    draft.decided(decision)
    if decision.verdict is Unstuck.REFUSED:
        draft.signal(UnstickRefused(chat=state.chat), decision)
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
    if forced.report_to is None:
        return
    place = directory.known_place(state, forced.report_to)
    if place is None or not directory.usable(draft, place):
        draft.signal(SpeechUnrouted(chat=state.chat, why="the report's channel cannot be used"))
        return
    key = delivery_key("report", state.chat, forced.started)
    text = f"[unstick] {result}, {forced.rewinds} of {forced.cap} rewinds used"
    memory.put_outbound(draft, key, Outbound(place, state.tick, kind="report"))
    draft.tell(channel_at(state.chat, place), Deliver(key, text, purpose="report"))


def on_turn_settled(draft: ChatDraft, turn: TurnEntry) -> None:
    """A completion ends the episode; any end but a refusal ends a forced loop."""
    if turn.source == "subagent":
        return
    streaks = draft.state.streaks
    if turn.outcome in COMPLETIONS and streaks != Streaks(episode=streaks.episode):
        draft.set(streaks=Streaks(episode=streaks.episode + (1 if streaks.sheds else 0)))
    if turn.outcome != "refused":
        done = turn.outcome in COMPLETIONS and turn.outcome != "undelivered"
        _report(draft, "done" if done else f"ended as {turn.outcome}")
