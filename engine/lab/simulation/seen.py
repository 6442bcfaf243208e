"""What users, agent and host saw: the log that the oracle judges. It knows nothing of the engine's state.

It is fed from outside: events that were posted, signals that came, commands that were performed. An attempt of
an operation is *sure* once the platform told that it arrived, *gone* once it told that it did not, and *maybe*
as long as it told neither: what users see then is open, and nothing may be repeated blindly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from turnkeeper.engine import events
from turnkeeper.engine.commands import Ack, Edit, Preview, Redeliver, Send, TurnSettled

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


class Attempt:
    """One hand-over of an operation, and what the platform told of it."""

    __slots__ = ("at_ms", "command", "doubted", "gone_ms", "lost", "parts_done", "reason", "told")

    def __init__(self, command: Settleable, at_ms: int) -> None:
        self.command = command
        self.at_ms = at_ms
        self.told: Literal["", "sent", "failed", "unknown"] = ""
        self.parts_done = 0
        self.gone_ms: int | None = None
        """When it stopped being out: told, or forgotten by a crash."""
        self.reason = ""
        self.doubted = False
        """It was unknown for a while: told so, out too long, or lost sight of in a crash."""
        self.lost = False
        """The process that handed it over is gone."""

    @property
    def sure(self) -> bool:
        """It arrived."""
        return self.told == "sent"

    @property
    def visible(self) -> bool:
        """It arrived, or may have."""
        return self.told != "failed"

    @property
    def quotes(self) -> bool:
        """It quotes a message."""
        return isinstance(self.command, Send | Preview) and self.command.quote is not None


class Operation:
    """A send, edit, preview or reaction by its delivery, with its attempts."""

    __slots__ = ("attempts", "delivery", "ended_ms", "first", "lied", "messages")

    def __init__(self, delivery: str, first: int) -> None:
        self.delivery = delivery
        self.first = first
        """Its place among the operations that were performed."""
        self.attempts: list[Attempt] = []
        self.ended_ms: int | None = None
        self.messages: tuple[int | str, ...] = ()
        self.lied = False
        """The platform contradicted itself: nothing can be concluded."""

    @property
    def command(self) -> Any:  # noqa: ANN401 - one of four commands
        """The newest attempt's command."""
        return self.attempts[-1].command

    @property
    def sure(self) -> bool:
        """An attempt arrived."""
        return any(attempt.sure for attempt in self.attempts)

    @property
    def visible(self) -> bool:
        """An attempt arrived, or may have; the parts of one that failed half-way did."""
        return any(attempt.visible or attempt.parts_done for attempt in self.attempts)


class CallSeen:
    """A tool call of the agent: its event, and the acks it got."""

    __slots__ = ("acks", "at", "call_id", "decided", "event", "events", "late", "rejected", "resting")

    def __init__(self, event: events.Reply | events.Edit, at: int) -> None:
        self.call_id = event.call_id
        self.event = event
        self.at = at
        self.events = 1
        self.acks: list[Ack] = []
        self.late = False
        self.rejected = ""
        self.decided = False
        """Its end is in the journal: an ack that a crash lost, its retry would get again."""
        self.resting = False
        """An ack of it may be lost in a crash."""


class TurnSeen:
    """A turn that was opened, and how it ended."""

    __slots__ = ("config", "ended", "ended_at", "interrupted", "opened", "stop", "stopped", "turn_id")

    def __init__(self, opened: events.TurnOpened, at: int, config: Config) -> None:
        self.turn_id = opened.turn_id
        self.opened = at
        self.config = config
        """A turn keeps the settings that it opened with."""
        self.ended: TurnSettled | None = None
        self.ended_at = 0
        self.interrupted = False
        self.stop = ""
        """A Stop text that names this turn and that no work followed."""
        self.stopped = False
        """A Stop came in this cycle, with words: the first one counts."""


class InputSeen:
    """A follow-up, and what was told of it."""

    __slots__ = ("event", "redelivered", "told", "written")

    def __init__(self, event: events.InputFolded, at: int) -> None:
        self.event = event
        self.written = at
        self.told: list[str] = []
        self.redelivered: dict[tuple[str, int | str | None], set[str]] = {}
        """The commands that asked to hand its message over again; one may come again under its own id."""


class Seen:
    """The log of one chat."""

    def __init__(self, config: Config) -> None:
        self.config = config
        """The settings that act now."""
        self.at = 0
        """Events so far."""
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
        self.ephemeral = False
        """A subagent's chat: its turns answer no message (D8)."""

    def event(self, event: events.Event, *, worked: bool) -> None:
        """Take in an event that was posted; `worked`: it proves that the agent works."""
        self.at += 1
        self.ephemeral = event.ephemeral if isinstance(event, events.ChatOpened) else self.ephemeral
        if worked:
            self._cycle_begins()
        if isinstance(event, events.Reply | events.Edit):
            self._called(event)
        elif isinstance(event, events.TurnOpened):
            self.turns.setdefault(event.turn_id, TurnSeen(event, self.at, self.config))
            self._written(event)
        elif isinstance(event, events.InputFolded):
            entry = self.inputs.setdefault(event.turn_id, InputSeen(event, self.at))
            entry.event, entry.written = event, self.at
            self._written(event)
        elif isinstance(event, events.Stopped):
            self._stopped(event)
        elif isinstance(event, events.Interrupted):
            for turn in self.turns.values():
                turn.interrupted = True

    def _cycle_begins(self) -> None:
        for turn in self.turns.values():
            turn.stop, turn.stopped = "", False

    def _called(self, event: events.Reply | events.Edit) -> None:
        call = self.calls.get(event.call_id)
        if call is None:
            self.calls[event.call_id] = CallSeen(event, self.at)
            return
        call.events += 1
        if call.rejected in FORGOTTEN:
            # This is its first attempt.
            call.at, call.rejected = self.at, ""

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
        if event.active or not words:
            return
        turn = self.turns.get(event.turn_id or "")
        if turn is not None and turn.ended is None and not turn.interrupted and not turn.stopped:
            turn.stop, turn.stopped = words, True
        elif event.turn_id is None:
            for other in self.turns.values():
                other.stopped = True

    def operation(self, command: Settleable, at_ms: int) -> tuple[Operation, Attempt]:
        """Take in a hand-over."""
        known = self.operations.get(command.delivery)
        if known is None:
            known = self.operations[command.delivery] = Operation(command.delivery, len(self.operations))
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

    def other(self, command: Command) -> None:
        """Take in a command that is not settled."""
        if isinstance(command, Ack):
            call = self.calls.get(command.call_id)
            if call is not None:
                call.acks.append(command)
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
