"""Complaints about ends: terminals, acks, inputs; and what was never told at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine import events
from turnkeeper.engine.commands import Send
from turnkeeper.engine.ids import delivery_key
from turnkeeper.engine.lab.simulation.calls import consumed_by, hasty

if TYPE_CHECKING:
    from turnkeeper.engine.commands import Ack, Redeliver, TurnSettled
    from turnkeeper.engine.lab.simulation.judge import Judge
    from turnkeeper.engine.lab.simulation.seen import CallSeen, Operation, Seen, TurnSeen

__all__ = ["Ends"]

NO_CLOCK = frozenset({"refused", "failed", "interrupted", "lost"})
"""Outcomes that somebody told."""
UNSAID = frozenset({"final-reply", "consumed", "silent", "interim-noop", "expired"})
"""Outcomes of turns that said nothing of their own at the end."""
OVERTAKES = frozenset({"interrupted", "lost"})
SAID = frozenset({"final-reply", "fallback", "consumed", "consumed-rescue", "interim-rescue", "reply-rescue"})
"""Outcomes that claim an answer."""
UNSPOKEN = frozenset({"consumed", "silent", "interim-noop"})
"""Outcomes of turns that were open to the last."""


class Ends:
    """Watches the terminals and acks of one chat."""

    def __init__(self, oracle: Judge, log: Seen) -> None:
        self._oracle = oracle
        self._log = log

    def _complain(self, complaint: str) -> None:
        self._oracle.complain(complaint)

    # ------------------------------------------------------------ terminals

    def terminal(self, command: TurnSettled) -> None:
        """Judge a turn's end; after a crash it may be told again under its own id."""
        turn = self._log.turns.get(command.turn_id)
        if turn is None:
            self._complain(f"ended, but never opened: {command.turn_id}")
            return
        if turn.ended is not None:
            if turn.ended.id != command.id:
                self._complain(f"ended twice: {command.turn_id}")
            return
        turn.ended, turn.ended_at = command, self._log.at
        if command.outcome not in OVERTAKES:
            self._nothing_out(command)
        if command.outcome == "interrupted" and not turn.interrupted:
            self._complain(f"interrupted by nobody: {command.turn_id}")
        if command.outcome not in NO_CLOCK:
            self._in_good_time(turn, command)
        self._stop_text(turn, command)
        if self._oracle.roomy and not self._oracle.torn:
            self._delivered(command)

    def _in_good_time(self, turn: TurnSeen, command: TurnSettled) -> None:
        """An end leaves the agent its graces: after its work, after a crash, after a failure, for a question."""
        timers, now_ms = turn.config.timers, self._oracle.now_ms
        speaks = any(f"{form}:{command.chat}:{turn.turn_id}" in self._log.operations for form in ("fallback", "rescue"))
        beside = command.outcome == "final-reply" and turn.config.finalize.final_reply == "rescue-different"
        if speaks or beside or command.outcome not in UNSAID or self._oracle.torn:
            # What it says may have waited in its channel, or have been given up there; it was decided before.
            return
        if turn.asked and now_ms < turn.asked_ms + timers.question_max_ms:
            self._complain(f"did not wait: {command.turn_id} ended while it asked {next(iter(turn.asked))}")
        grace_ms = min(timers.stop_grace_ms, timers.quiet_ms, timers.turn_idle_ms)
        if now_ms < min(turn.worked_ms + grace_ms, turn.opened_ms + timers.turn_max_ms):
            self._complain(f"cut off: {command.turn_id} ended {now_ms - turn.worked_ms} ms after it worked")
        failed = hasty(self._oracle, self._log, turn) if command.outcome != "final-reply" else None
        if failed is not None:
            self._complain(f"no time to retry: {command.turn_id} ended after {failed.call_id} had failed")

    def _mine(self, turn_id: str) -> list[Operation]:
        """List the replies that the turn owned: not those that came late."""
        return [
            operation
            for operation in self._log.operations.values()
            if isinstance(operation.command, Send)
            and operation.command.turn_id == turn_id
            and (operation.command.purpose != "reply" or not self._late(operation))
        ]

    def _call_of(self, operation: Operation) -> CallSeen | None:
        return self._log.calls.get(operation.delivery.partition(":")[2].partition(":")[2])

    def _late(self, operation: Operation) -> bool:
        call = self._call_of(operation)
        return call is None or call.late

    def _nothing_out(self, command: TurnSettled) -> None:
        mine = {operation.delivery for operation in self._mine(command.turn_id)}
        for operation in self._log.out((Send,)):
            if operation.delivery in mine and not self._timed_out(operation):
                self._complain(f"overtook its reply: {command.turn_id} ended while {operation.delivery} was out")
            elif command.outcome in UNSPOKEN and self._consumes(operation, command.turn_id):
                self._complain(f"overtook what answers it: {command.turn_id}, {operation.delivery} was out")

    def _consumes(self, operation: Operation, turn_id: str) -> bool:
        """Say whether a reply that is out names the turn, and was made while that was open."""
        call = self._call_of(operation)
        opened = self._log.turns[turn_id].opened
        named = call is not None and call.at > opened and turn_id in consumed_by(call)
        return named and not self._timed_out(operation)

    def _timed_out(self, operation: Operation) -> bool:
        timeout_ms = self._oracle.config.delivery.settle_timeout_ms
        return bool(timeout_ms) and self._oracle.now_ms >= operation.attempts[-1].at_ms + timeout_ms

    def _stop_text(self, turn: TurnSeen, command: TurnSettled) -> None:
        """A Stop text was the turn's last word: it is shown, or something else was, or the loss is told."""
        if turn.stop and command.outcome in {"silent", "expired"} and turn.config.speech.prose == "locus":
            self._complain(f"Stop text lost: {command.turn_id} ended as {command.outcome}")

    def _delivered(self, command: TurnSettled) -> None:
        mine = [operation for operation in self._mine(command.turn_id) if not operation.lied]
        sure = [operation for operation in mine if operation.sure]
        if command.delivered == "no" and sure:
            self._complain(f"untrue: {command.turn_id} says delivered no, {sure[0].delivery} arrived")
        if command.delivered == "no" and command.outcome in SAID:
            self._complain(f"untrue: {command.turn_id} ended as {command.outcome}, delivered no")
        honest = len(mine) == len(self._mine(command.turn_id))
        if command.delivered == "yes" and honest and not sure and not self._consumed(command.turn_id):
            self._complain(f"untrue: {command.turn_id} says delivered yes, nothing of it arrived")
        replies = [operation for operation in mine if operation.command.purpose == "reply"]
        least, most = sum(one.sure for one in replies), sum(one.visible for one in replies)
        told = command.replies
        if not least <= told <= most and honest:
            self._complain(f"untrue: {command.turn_id} counts {told} replies, {least} to {most} arrived")
        interims = [operation for operation in replies if operation.command.interim]
        least, most = sum(one.sure for one in interims), sum(one.visible for one in interims)
        if not least <= command.interim_replies <= most and honest:
            self._complain(f"untrue: {command.turn_id} counts {command.interim_replies} interim replies, not {least}")
        finals = [operation for operation in replies if operation.visible and not operation.command.interim]
        beside = self._log.turns[command.turn_id].config.finalize.final_reply == "rescue-different"
        if command.outcome == "final-reply" and not finals and honest and not beside:
            # With a rescue beside it, the reply may turn out to have failed before the rescue is through.
            self._complain(f"untrue: {command.turn_id} ended as final-reply, there was none")

    def _consumed(self, turn_id: str) -> bool:
        """A call that names the turn was answered well, or its reply arrived."""
        for call in self._log.calls.values():
            if turn_id in consumed_by(call):
                own = self._log.operations.get(self._key(call))
                if any(ack.ok for ack in call.acks) or (own is not None and own.sure):
                    return True
        return False

    def _key(self, call: CallSeen) -> str:
        form = "reply" if isinstance(call.event, events.Reply) else "edit"
        return delivery_key(form, call.event.chat, call.call_id)

    # ------------------------------------------------------------ acks

    def refused(self, call: CallSeen) -> None:
        """Judge a call that sends nothing."""
        event = call.event
        if call.rejected != "nothing to send" or not isinstance(event, events.Reply):
            return
        if event.files or (isinstance(event.text, str) and event.text.strip()):
            self._complain(f"refused: call {call.call_id} has something to send")

    def acknowledged(self, turn_id: str) -> None:
        """An input is told as answered only when an answer that names it arrived, or may have."""
        if not self._oracle.roomy or self._oracle.torn:
            return
        for call in self._log.calls.values():
            if turn_id != call.event.turn_id and turn_id not in consumed_by(call):
                continue
            own = self._log.operations.get(self._key(call))
            if call.joined or (own is not None and self._may_have_arrived(own)):
                return
        self._complain(f"untrue: input {turn_id} was told answered, nothing that names it arrived")

    def _may_have_arrived(self, operation: Operation) -> bool:
        last = operation.attempts[-1]
        waited = last.told == "" and self._timed_out(operation)
        return operation.lied or waited or any(one.sure or one.doubted or one.lost for one in operation.attempts)

    def ack(self, command: Ack) -> None:
        """Judge the answer to a tool call: one a call, and true."""
        call = self._log.calls.get(command.call_id)
        if call is None:
            self._complain(f"ack to nobody: {command.call_id}")
            return
        if command.ok and call.event.chat_id == "other":
            self._complain(f"call {command.call_id} speaks to another chat, and was taken")
        if len(call.acks) > call.events:
            self._complain(f"answered twice: call {command.call_id}")
        own = self._log.operations.get(self._key(call))
        if own is None or not own.lied:
            self._true(command, own)

    def _true(self, command: Ack, own: Operation | None) -> None:
        """Compare an ack with what became of the call's own delivery."""
        if command.ok and command.delivery == "replayed":
            self._replayed(command)
        elif command.ok and (own is None or not own.sure):
            self._complain(f"untrue: call {command.call_id} was told sent")
        elif command.ok and own is not None and own.messages and command.message != own.messages[0]:
            forgot = own.went_elsewhere(own.command.channel) and not self._oracle.roomy
            if self._oracle.remembers("receipts") and not forgot:
                self._complain(f"untrue: call {command.call_id} was told message {command.message}")
        elif not command.ok and (command.error or "").startswith("delivery failed") and own is not None and own.sure:
            if self._oracle.roomy:
                self._complain(f"untrue: call {command.call_id} was told failed, it arrived")
        elif not command.ok:
            self._error(command, self._log.calls[command.call_id], own)

    def _error(self, command: Ack, call: CallSeen, own: Operation | None) -> None:
        """An error says what is wrong, and that is so."""
        if not command.error:
            self._complain(f"untrue: call {command.call_id} was told of an error, and not which")
        elif command.error == "call id used with other arguments" and not call.varied:
            self._complain(f"untrue: call {command.call_id} was told of other arguments, they are the same")
        elif command.error == "unknown" and own is None and self._oracle.roomy and not self._oracle.torn:
            text = call.event.text if isinstance(call.event.text, str) else ""
            same = [self._log.operations[key] for key in self._log.by_text.get(text, ())]
            if same and all(one.sure and len(one.attempts) == 1 and not self._open_to_doubt(one) for one in same):
                self._complain(f"untrue: call {command.call_id} was told unknown, all that says it arrived")

    def _open_to_doubt(self, operation: Operation) -> bool:
        return operation.lied or any(one.doubted or one.lost for one in operation.attempts)

    def _replayed(self, command: Ack) -> None:
        origin = command.replay_of or ""
        first = self._log.calls.get(origin)
        operation = self._log.operations.get(origin if first is None else self._key(first))
        if not self._oracle.roomy:
            return
        if operation is None or not (operation.sure or operation.lied):
            self._complain(f"untrue: call {command.call_id} was told replayed of {origin}, which never arrived")
        elif first is not None and first.call_id != command.call_id:
            self._the_same(self._log.calls[command.call_id], first, operation)
            self._asked_before(self._log.calls[command.call_id], first)

    def _asked_before(self, call: CallSeen, first: CallSeen) -> None:
        """An answer is not given for what was asked after it was made."""
        for one in (call.event.turn_id, *consumed_by(call)):
            if isinstance(one, str) and first.at < self._log.written.get(one, 0) < call.at and not call.varied:
                self._complain(f"untrue: call {call.call_id} was answered by {first.call_id}, made before {one} came")

    def _the_same(self, call: CallSeen, first: CallSeen, operation: Operation) -> None:
        """An answer is given for another only inside one turn, and never an interim one for a final one."""
        echoed, other = call.event.turn_id, operation.command
        if not isinstance(other, Send) or not (self._knows(echoed) and self._knows(first.event.turn_id)):
            return
        related = {echoed, *consumed_by(call)} & {other.turn_id, first.event.turn_id, *consumed_by(first)}
        pair = {echoed, other.turn_id}
        merged = any(pair <= set(consumed_by(one)) for one in self._log.calls.values())
        if not related and not merged:
            self._complain(
                f"untrue: call {call.call_id} was answered by {first.call_id}, which is about something else"
            )
        if isinstance(call.event, events.Reply) and (call.event.interim is True) != other.interim:
            self._complain(f"untrue: call {call.call_id} was answered by {first.call_id}: one of them is interim")

    def _knows(self, echoed: object) -> bool:
        return isinstance(echoed, str) and (echoed in self._log.turns or echoed in self._log.inputs)

    def redelivery(self, command: Redeliver) -> None:
        """Judge a redelivery: once, for an autosteer input that nobody read."""
        entry = self._log.inputs.get(command.turn_id)
        if entry is None:
            self._complain(f"redelivered, but never written: {command.turn_id}")
        elif entry.event.source != "autosteer":
            self._complain(f"redelivered: {command.turn_id} is {entry.event.source}")
        elif any(len(ids) > 1 for ids in entry.redelivered.values()) and self._oracle.roomy:
            self._complain(f"redelivered twice: {command.turn_id}")
        elif {"input_seen", "input_acked"} & set(entry.told) and self._oracle.roomy:
            self._complain(f"redelivered: {command.turn_id} was read")

    # ------------------------------------------------------------ at the very end

    def all_told(self) -> None:
        """Judge what never came."""
        for turn in self._log.turns.values():
            if turn.ended is None:
                self._complain(f"never ended: turn {turn.turn_id}")
        for call in self._log.calls.values():
            if len(call.acks) < call.events and not call.resting:
                self._complain(f"never answered: call {call.call_id}")
            self._reply_left(call)
        if self._oracle.roomy:
            for key, entry in self._log.inputs.items():
                if not entry.told and key not in self._log.turns and not self._merged(key):
                    self._complain(f"forgotten: input {key}")

    def _reply_left(self, call: CallSeen) -> None:
        """A call whose answer was lost in a crash still left, or its end was told."""
        if call.acks or call.decided or call.rejected or self._log.operations.get(self._key(call)) is not None:
            return
        if call.resting and not self._said_elsewhere(call):
            self._complain(f"lost: call {call.call_id} was neither sent nor answered")

    def _said_elsewhere(self, call: CallSeen) -> bool:
        """The same words left otherwise, the call named another chat, or the call was joined to another."""
        text = call.event.text
        return not isinstance(text, str) or text in self._log.by_text or call.event.chat_id not in {None, ""}

    def _merged(self, turn_id: str) -> bool:
        """An input that a call named, or whose turn's answer was its answer, needs no word of its own."""
        return any(turn_id in consumed_by(call) for call in self._log.calls.values())
