"""What users, agent and host saw: the log that the oracle judges. It knows nothing of the engine's state.

It is fed from outside: events that were posted, signals that came, commands that were performed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine import events
from turnkeeper.engine.commands import Ack, Edit, Redeliver, Send
from turnkeeper.engine.lab.simulation.things import Attempt, CallSeen, InputSeen, Operation, TurnSeen

if TYPE_CHECKING:
    from turnkeeper.engine.commands import Command, Settleable
    from turnkeeper.engine.config import Config

__all__ = ["FORGOTTEN", "WORK", "Attempt", "CallSeen", "InputSeen", "Operation", "Seen", "TurnSeen"]

WORK = (
    events.Activity,
    events.InputSeen,
    events.Preview,
    events.QuestionAnswered,
    events.QuestionOpened,
    events.TurnContinued,
)
"""What the agent does, beside calls that pass the guard: every end that waits is off."""

FORGOTTEN = frozenset({"rate limit", "chat_id mismatch"})
"""Refusals after which a call is not remembered."""


class Seen:
    """The log of one chat."""

    def __init__(self, config: Config) -> None:
        self.config = config
        """The settings that act now."""
        self.at = 0
        """Events so far."""
        self.now_ms = 0
        self.operations: dict[str, Operation] = {}
        self.calls: dict[str, CallSeen] = {}
        self.turns: dict[str, TurnSeen] = {}
        self.inputs: dict[str, InputSeen] = {}
        self.written: dict[str, int] = {}
        """When each input was written last, in events."""
        self.places: dict[str, tuple[str, str] | None] = {}
        """Input → (channel, message) that a reply to it may quote; None: told differently at different times."""
        self.by_text: dict[str, list[str]] = {}
        """Text → the deliveries that say it."""
        self.stops: dict[str, set[str | None]] = {}
        """The words of Stops, with the turns that they name; None: they name none."""
        self.ephemeral = False
        """A subagent's chat: its turns answer no message (D8)."""

    def event(self, event: events.Event, now_ms: int, *, worked: bool) -> None:
        """Take in an event that was posted; `worked`: it proves that the agent works."""
        self.at += 1
        self.now_ms = now_ms
        self.ephemeral = event.ephemeral if isinstance(event, events.ChatOpened) else self.ephemeral
        if worked:
            self._cycle_begins()
        if isinstance(event, events.Reply | events.Edit):
            self._called(event)
        elif isinstance(event, events.TurnOpened):
            self.turns.setdefault(event.turn_id, TurnSeen(event, self.at, self.config, now_ms))
            self._written(event)
        elif isinstance(event, events.InputFolded):
            entry = self.inputs.setdefault(event.turn_id, InputSeen(event, self.at))
            entry.event, entry.written = event, self.at
            self._written(event)
        elif isinstance(event, events.Stopped):
            self._stopped(event)
        elif isinstance(event, events.QuestionOpened | events.QuestionAnswered):
            self._question(event)
        elif isinstance(event, events.Interrupted):
            self._interrupted()

    def _interrupted(self) -> None:
        for turn in self.turns.values():
            turn.interrupted = True

    def _cycle_begins(self) -> None:
        for turn in self.turns.values():
            turn.stop, turn.stopped = "", False
            turn.worked_ms, turn.worked_at = self.now_ms, self.at

    def _question(self, event: events.QuestionOpened | events.QuestionAnswered) -> None:
        for turn in self.turns.values():
            if isinstance(event, events.QuestionAnswered):
                turn.asked.pop(event.call_id, None)
            elif turn.ended is None and event.turn_id in {None, turn.turn_id}:
                turn.asked_ms = turn.asked_ms if turn.asked else self.now_ms
                turn.asked[event.call_id] = None

    def _called(self, event: events.Reply | events.Edit) -> None:
        call = self.calls.get(event.call_id)
        if call is None:
            self.calls[event.call_id] = CallSeen(event, self.at)
            return
        call.events += 1
        if call.rejected in FORGOTTEN:
            # This is its first attempt.
            call.at, call.rejected, call.event = self.at, "", event
        elif msgspec.structs.replace(event, **_hosts(event)) != msgspec.structs.replace(call.event, **_hosts(event)):
            call.varied = True

    def _written(self, event: events.TurnOpened | events.InputFolded) -> None:
        self.written[event.turn_id] = self.at
        subagent = event.source == "subagent" or (self.ephemeral and isinstance(event, events.TurnOpened))
        if event.message is None or event.channel is None or subagent:
            self.places[event.turn_id] = None
            return
        place = (str(event.channel), str(event.message))
        self.places[event.turn_id] = place if self.places.get(event.turn_id, place) == place else None

    def _stopped(self, event: events.Stopped) -> None:
        words = event.text.strip()
        for turn in self.turns.values():
            turn.first_stop = turn.first_stop or self.at
            turn.prefixed = turn.prefixed or event.channel is not None
        if event.active or not words:
            return
        self.stops.setdefault(words, set()).add(event.turn_id)
        named = self.turns.get(event.turn_id or "")
        if named is not None and named.ended is None and not named.interrupted and not named.stopped:
            named.stop, named.stopped = words, True
        elif event.turn_id is None:
            for other in self.turns.values():
                other.stopped = True

    def operation(self, command: Settleable, at_ms: int) -> tuple[Operation, Attempt]:
        """Take in a hand-over."""
        known = self.operations.get(command.delivery)
        if known is None:
            known = self.operations[command.delivery] = Operation(command.delivery, self.at)
            if isinstance(command, Send):
                self.by_text.setdefault(command.text, []).append(command.delivery)
        attempt = Attempt(command, at_ms)
        known.attempts.append(attempt)
        return known, attempt

    def settled(self, event: events.Settled, at_ms: int) -> None:
        """Take in what the platform told; its first definite word counts, another one is a lie."""
        known = self.operations.get(event.delivery)
        if known is None:
            return
        wanted = event.attempt if event.attempt is not None else known.command.attempt
        attempt = next((one for one in known.attempts if one.command.attempt == wanted), None)
        if attempt is None:
            # The process died before the platform had it, and the platform says it knows it.
            known.lied = known.lied or (wanted == known.command.attempt + 1 and event.outcome == "sent")
            return
        for one in known.attempts if event.outcome == "sent" else (attempt,):
            one.gone_ms = at_ms if one.gone_ms is None else one.gone_ms
        definite = attempt.told in {"sent", "failed"}
        timeout_ms = self.config.delivery.settle_timeout_ms
        late = bool(timeout_ms) and at_ms >= attempt.at_ms + timeout_ms
        attempt.doubted = attempt.doubted or late or attempt.lost or event.outcome == "unknown"
        if known.ended_ms is None or (event.outcome != "unknown" and not definite and not known.sure):
            known.ended_ms = at_ms
        if definite and event.outcome not in {attempt.told, "unknown"}:
            known.lied = True
        if not definite:
            settled_well = event.reason == "not_modified" and isinstance(attempt.command, Edit)
            attempt.reason = event.reason or ""
            attempt.told = "sent" if settled_well else event.outcome
            attempt.parts_done = (event.parts_done or 0) if isinstance(attempt.command, Send) else 0
        if (event.outcome == "sent" or event.parts_done) and not known.messages:
            known.messages = event.messages

    def other(self, command: Command, now_ms: int) -> None:
        """Take in a command that is not settled."""
        if isinstance(command, Ack):
            call = self.calls.get(command.call_id)
            if call is not None:
                call.acks.append(command)
                if call.failed_ms is None and (command.error or "").startswith("delivery failed"):
                    call.failed_ms, call.failed_at = now_ms, self.at
        elif isinstance(command, Redeliver) and command.turn_id in self.inputs:
            self.inputs[command.turn_id].redelivered.setdefault((str(command.channel), command.message), set()).add(
                command.id
            )

    def crashed(self, at_ms: int) -> None:
        """The process is gone: what was out is out no more, and nobody waits for an answer."""
        for operation in self.operations.values():
            for attempt in operation.attempts:
                if attempt.gone_ms is None:
                    attempt.gone_ms, attempt.lost = at_ms, True

    def recovered(self, now_ms: int) -> None:
        """The process is back: silence counts from now, but for an end that waited for what was in flight."""
        if any(len(call.acks) < call.events for call in self.calls.values()):
            return
        for turn in self.turns.values():
            turn.worked_ms = now_ms

    def timed_out(self, timeout_ms: int, now_ms: int) -> None:
        """What was out so long is out no more."""
        for operation in self.out() if timeout_ms else ():
            attempt = operation.attempts[-1]
            if now_ms >= attempt.at_ms + timeout_ms:
                attempt.gone_ms, attempt.doubted = now_ms, True

    def out(self, kinds: tuple[type, ...] = (Send, Edit)) -> list[Operation]:
        """List the operations that are with the platform, as far as the engine can know."""
        return [
            operation
            for operation in self.operations.values()
            if isinstance(operation.command, kinds) and operation.attempts[-1].gone_ms is None
        ]


def _hosts(event: events.Reply | events.Edit) -> dict[str, None]:
    """Leave out of a call what its host adds."""
    return {"reply_in": None} if isinstance(event, events.Reply) else {}
