"""Complaints about what was sent: twice, out of order, quoting twice, after the end, beside the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine.commands import Edit, Preview, Send
from turnkeeper.engine.lab.simulation.calls import call_of, consumed_by, hasty
from turnkeeper.engine.lab.simulation.repeats import Repeats

if TYPE_CHECKING:
    from turnkeeper.engine.commands import Settleable
    from turnkeeper.engine.lab.simulation.judge import Judge
    from turnkeeper.engine.lab.simulation.seen import Operation, Seen, TurnSeen

__all__ = ["Sends"]

NO_MORE = frozenset({"refused", "failed", "interrupted", "lost"})


class Sends:
    """Watches what leaves for one chat."""

    def __init__(self, oracle: Judge, log: Seen) -> None:
        self._oracle = oracle
        self._log = log
        self._repeats = Repeats(oracle, log)
        self._newest: dict[str, int] = {}
        """The newest call whose reply left, by channel."""

    def operation(self, command: Settleable, now_ms: int) -> None:
        """Judge a hand-over by what was handed over before."""
        known = self._log.operations.get(command.delivery)
        if known is not None:
            self._again(known, command)
        if isinstance(command, Send | Edit):
            self._one_at_a_time(command, now_ms)
            self._in_order(command)
        if isinstance(command, Send | Preview):
            self._quotes_once(command)
        if isinstance(command, Preview):
            self._turn_goes_on(command)
        if isinstance(command, Send):
            if not command.text.strip() and not command.files:
                self._complain(f"says nothing: {command.delivery}")
            self._quotes_at_all(command, known)
            self._given_away(command)
            self._speech(command)
            if known is None:
                self._repeats.judge(command, now_ms)
        self._log.operation(command, now_ms)

    def _complain(self, complaint: str) -> None:
        self._oracle.complain(complaint)

    def _again(self, known: Operation, command: Settleable) -> None:
        """The same operation once more: only if it did not arrive, or the policy resends what may have."""
        if isinstance(command, Preview) or known.lied:
            return
        forgot = known.went_elsewhere(command.channel) and not self._oracle.roomy
        if known.sure and self._oracle.remembers("receipts") and not forgot:
            self._complain(f"sent again: {command.delivery} had arrived")
            return
        if isinstance(command, Send) and self._oracle.roomy:
            maybe = sum(attempt.visible for attempt in known.attempts)
            allowed = 1 if self._oracle.resends else 0
            if maybe > allowed:
                self._complain(f"sent twice: {command.delivery} may have arrived")
            # A rescue of other words under the same key begins at its own first part.
            same = (one for one in known.attempts if isinstance(one.command, Send) and one.command.text == command.text)
            parts = max((attempt.parts_done for attempt in same), default=0)
            if parts and command.resume_part != parts + 1:
                self._complain(f"parts repeated: {command.delivery} resumes at {command.resume_part}, not {parts + 1}")

    def _one_at_a_time(self, command: Send | Edit, now_ms: int) -> None:
        timeout_ms = self._oracle.config.delivery.settle_timeout_ms
        for other in self._log.out():
            if other.delivery == command.delivery or other.command.channel != command.channel:
                continue
            if not timeout_ms or now_ms < other.attempts[-1].at_ms + timeout_ms:
                self._complain(f"two at once: {command.delivery} left while {other.delivery} was out")

    def _in_order(self, command: Send | Edit) -> None:
        call = call_of(self._log, command.delivery)
        if call is None or not self._oracle.roomy:
            return
        channel = str(command.channel)
        newest = self._newest.get(channel, 0)
        if call.at < newest:
            self._complain(f"overtaken: {command.delivery} left after a later call's")
        self._newest[channel] = max(newest, call.at)

    def _quotes_once(self, command: Send | Preview) -> None:
        if command.quote is None:
            return
        if command.turn_id is None:
            self._complain(f"quotes for nobody: {command.delivery}")
            return
        for other in self._log.operations.values():
            if other.delivery == command.delivery or other.lied or not isinstance(other.command, Send | Preview):
                continue
            if isinstance(command, Send) and command.replaces_preview and isinstance(other.command, Preview):
                continue
            quoting = any(one.quotes and (one.visible or one.parts_done) for one in other.attempts)
            if quoting and other.command.turn_id == command.turn_id and self._oracle.roomy:
                self._complain(f"quoted twice: {command.turn_id} by {other.delivery} and {command.delivery}")

    def _quotes_at_all(self, command: Send, known: Operation | None) -> None:
        """A reply in its input's own channel quotes it, if nothing that may be visible did."""
        place = self._log.places.get(command.turn_id or "")
        if place is None or command.quote is not None or not self._oracle.roomy or self._oracle.torn:
            return
        if place[0] != str(command.channel) or command.resume_part is not None:
            return
        if known is not None and any(attempt.reason == "quote_gone" for attempt in known.attempts):
            return
        mine = (one for one in self._log.operations.values() if isinstance(one.command, Send | Preview))
        if any(self._may_hold_quote(other) for other in mine if other.command.turn_id == command.turn_id):
            return
        self._complain(f"not quoted: {command.delivery} answers {command.turn_id} in its own channel")

    def _may_hold_quote(self, other: Operation) -> bool:
        """Say whether an operation that quotes may be visible, or was in doubt when the quote was asked for."""
        unclear = other.lied or len(other.attempts) > 1 or any(attempt.doubted for attempt in other.attempts)
        return any(one.quotes and (one.visible or one.parts_done or unclear) for one in other.attempts)

    def outlived(self, turn_id: str) -> None:
        """The host was told that the live preview is this turn's."""
        turn = self._log.turns.get(turn_id)
        if turn is not None and turn.ended is not None and turn.ended_at < self._log.at:
            self._complain(f"preview outlived its turn: {turn_id}")

    def _turn_goes_on(self, command: Preview) -> None:
        turn = self._log.turns.get(command.turn_id)
        if turn is not None and turn.ended is not None:
            self._complain(f"preview after the end: {command.delivery}")

    def _known(self, echoed: object, at: int) -> bool:
        """Say whether an id was an input when a call came; a retry of its send is not judged by what came later."""
        if not isinstance(echoed, str):
            return False
        turn, entry = self._log.turns.get(echoed), self._log.inputs.get(echoed)
        return (turn is not None and turn.opened < at) or (entry is not None and entry.written < at)

    def _given_away(self, command: Send) -> None:
        """A reply that echoes an input known when it came belongs to it, or to a turn that it names together with it."""
        call = call_of(self._log, command.delivery)
        echoed = call.event.turn_id if call is not None else None
        owner = call.owner if call is not None and self._oracle.roomy_inbound else None
        if owner is not None and owner != (command.turn_id or ""):
            self._complain(f"another's: {command.delivery} counts for {command.turn_id}, not {owner or 'nobody'}")
        if (
            call is None
            or not self._known(echoed, call.at)
            or command.turn_id == echoed
            or not self._oracle.remembers("tombstones")
        ):
            return
        if command.turn_id is None:
            self._complain(f"forgotten: {command.delivery} echoes {echoed}, and counts for nobody")
        elif not {echoed, command.turn_id} <= set(consumed_by(call)):
            self._complain(f"given away: {command.delivery} echoes {echoed}, and counts for {command.turn_id}")

    def _speech(self, command: Send) -> None:
        """Plain speech: not after an end that forbids it, not beside a final reply that arrived."""
        if command.purpose not in {"fallback", "rescue"} or command.turn_id is None:
            return
        turn = self._log.turns.get(command.turn_id)
        if turn is None:
            return
        if turn.ended is not None and turn.ended.outcome in NO_MORE:
            self._complain(f"spoke after the end: {command.delivery} after {turn.ended.outcome}")
        if turn.ended is None:
            self._time_to_retry(turn)
        self._somebodys_words(command)
        if turn.config.finalize.final_reply == "rescue-different":
            return
        for other in self._log.operations.values():
            if self._is_final(other, command.turn_id) and other.sure and not other.lied:
                self._complain(f"second answer: {command.delivery} after {other.delivery}")

    def _somebodys_words(self, speech: Send) -> None:
        """Plain speech says what a Stop of the turn said; or it is a reply once more, one that left or never did."""
        stops = self._log.stops.get(speech.text, set())
        if {None, speech.turn_id} & stops or not self._oracle.remembers("text_bytes"):
            return
        if all(one.event.text != speech.text for one in self._log.calls.values()):
            self._complain(f"nobody's words: {speech.delivery} says what no Stop of {speech.turn_id} said")

    def _time_to_retry(self, turn: TurnSeen) -> None:
        """An agent whose only answer failed has time to say it again before its turn speaks for it."""
        failed = hasty(self._oracle, self._log, turn)
        if failed is not None:
            self._complain(f"no time to retry: {turn.turn_id} went on after {failed.call_id} had failed")

    def _is_final(self, operation: Operation, turn_id: str) -> bool:
        sent = operation.command
        if not isinstance(sent, Send) or sent.purpose != "reply" or sent.interim or sent.turn_id != turn_id:
            return False
        call = call_of(self._log, operation.delivery)
        turn = self._log.turns[turn_id]
        late = call is None or call.late or (turn.ended is not None and call.at > turn.ended_at)
        return not late
