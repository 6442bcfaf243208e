"""Complaints about words that were shown twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine import events
from turnkeeper.engine.ids import delivery_key
from turnkeeper.engine.lab.simulation.calls import call_of, consumed_by

if TYPE_CHECKING:
    from turnkeeper.engine.commands import Send
    from turnkeeper.engine.lab.simulation.judge import Judge
    from turnkeeper.engine.lab.simulation.seen import Seen
    from turnkeeper.engine.lab.simulation.things import CallSeen, Operation

__all__ = ["Repeats"]


class Repeats:
    """Watches the words that leave for one chat."""

    def __init__(self, oracle: Judge, log: Seen) -> None:
        self._oracle = oracle
        self._log = log

    def judge(self, command: Send, now_ms: int) -> None:
        """The agent's words, each of its own, are shown once."""
        if not command.text.strip() or command.purpose == "report" or not self._oracle.roomy:
            return
        for delivery in self._log.by_text.get(command.text, ()):
            other = self._log.operations[delivery]
            if delivery != command.delivery and other.visible and not self._may_repeat(command, other, now_ms):
                self._oracle.complain(f"said twice: {command.delivery} says what {delivery} said")

    def _may_repeat(self, command: Send, other: Operation, now_ms: int) -> bool:
        """Say whether the rules let these words be shown again."""
        before: Send = other.command
        failed_half_way = not any(attempt.visible for attempt in other.attempts)
        resent = len(other.attempts) > 1 and other.attempts[-1].told == "failed"
        if (
            other.lied
            or failed_half_way
            or resent
            or before.interim != command.interim
            or before.files != command.files
        ):
            return True
        spoken = before.purpose in {"fallback", "rescue"}
        if not spoken and other.ended_ms is not None and now_ms - other.ended_ms >= self._oracle.window_ms:
            return True
        call, first = call_of(self._log, command.delivery), call_of(self._log, other.delivery)
        merged = call is not None and self._merged_into(call, command.turn_id) == before.turn_id
        if call is None and first is not None and first.late:
            # What came late is recorded nowhere, so the turn's own end does not know it.
            return True
        since = first.at if first is not None else self._spoken_since(before)
        if call is not None and self._newer(call, since):
            return True
        if call is not None and merged and spoken and other.at < call.at:
            return False
        return command.turn_id != before.turn_id or command.turn_id is None

    def _merged_into(self, call: CallSeen, turn_id: str | None) -> str | None:
        """Return the one turn that a follow-up was named with, if an answer to both was tried before."""
        if turn_id is None or turn_id not in self._log.inputs or turn_id in self._log.turns:
            return None
        for other in reversed(self._log.calls.values()):
            named = set(consumed_by(other))
            if other.at >= call.at or turn_id not in named or not isinstance(other.event, events.Reply):
                continue
            turns = [one for one in named if one in self._log.turns]
            own = delivery_key("reply", other.event.chat, other.call_id) in self._log.operations
            return turns[0] if len(turns) == 1 and own and self._log.written[turn_id] < other.at else None
        return None

    def _spoken_since(self, speech: Send) -> int:
        """Return when plain speech was decided at the earliest: at its turn's first Stop, or at its opening."""
        turn = self._log.turns.get(speech.turn_id or "")
        return 0 if turn is None else turn.first_stop or turn.opened

    def _newer(self, call: CallSeen, since: int) -> bool:
        """The call names an input that was written after the first one's call."""
        named = (call.event.turn_id, *consumed_by(call))
        return any(isinstance(one, str) and self._log.written.get(one, 0) > since for one in named)
