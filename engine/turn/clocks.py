"""What would end a turn, and when (RULES-replies A7).

Precedence at one instant: Stop, quiet, ceilings. An open question stops all of these clocks; an interrupt
replaces them by its own; the retry grace, once begun, is the only one that counts.
"""

from __future__ import annotations

from turnkeeper.engine.turn.state import EndCause, TurnState

__all__ = ["RANK", "due_ms", "end_due", "has_something_to_resolve"]

RANK: dict[EndCause, int] = {"stop": 0, "quiet": 1, "idle": 2, "hard": 3}
"""A lower rank wins."""


def clocks(state: TurnState) -> list[tuple[int, EndCause]]:
    """List the instants at which something would end the open turn."""
    timers = state.policy.timers
    if state.grace_until_ms:
        return [(state.grace_until_ms, state.ending or "stop")]
    ends: list[tuple[int, EndCause]] = []
    stop = state.stop
    if stop is not None and stop.attributed and not stop.worked:
        ends.append((stop.at_ms + timers.stop_grace_ms, "stop"))
    quiet_from_ms = _quiet_from_ms(state)
    if quiet_from_ms is not None:
        ends.append((quiet_from_ms + timers.quiet_ms, "quiet"))
    ends.append((state.active_ms + timers.turn_idle_ms, "idle"))
    ends.append((state.opened_ms + state.paused_ms + timers.turn_max_ms, "hard"))
    if state.ending is not None:
        # A waiting end is only overtaken by one of higher precedence.
        ends = [(due, cause) for due, cause in ends if RANK[cause] < RANK[state.ending]]
    return ends


def end_due(state: TurnState, now_ms: int) -> EndCause | None:
    """Return the end that is due now, the one of highest precedence."""
    found: EndCause | None = None
    for due_ms, cause in clocks(state):
        if due_ms <= now_ms and (found is None or RANK[cause] < RANK[found]):
            found = cause
    return found


def _quiet_from_ms(state: TurnState) -> int | None:
    """Say since when silence counts: for a turn that has its answer, or that has nothing more to come.

    What only a Stop arms counts from that Stop: an agent that worked in silence before it keeps its grace.
    """
    if any(not reply.flight.interim for reply in state.replies):
        return state.quiet_from_ms
    if state.policy.finalize.without_stop:
        return None
    if state.kept is not None or (state.seen and bool(state.consumed)):
        return state.quiet_from_ms
    stop = state.stop
    if stop is not None and stop.attributed and not stop.worked:
        return max(state.quiet_from_ms, stop.at_ms)
    return None


def has_something_to_resolve(state: TurnState) -> bool:
    """Say whether a ceiling finalizes the turn; with nothing of all this it expires."""
    stop_text = state.stop is not None and bool(state.stop.text.strip())
    return bool(state.replies) or bool(state.consumed) or state.kept is not None or stop_text


def due_ms(state: TurnState) -> int | None:
    """Return the turn's next deadline."""
    if state.phase != "open":
        return None
    timers = state.policy.timers
    if state.interrupted_ms is not None:
        return state.interrupted_ms + timers.interrupt_grace_ms
    if state.questions:
        return state.question_ms + timers.question_max_ms
    return min((due for due, _ in clocks(state)), default=None)
