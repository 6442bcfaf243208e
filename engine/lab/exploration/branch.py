"""One branch of an exploration: a run that stands still between two choices, and can be copied there.

Owners' states are immutable, so a copy costs a table of references. What a branch is told and commands goes into
a log that is shared with the branches it came from; the oracle reads it where branches end or meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.events import Settled
from turnkeeper.engine.invariants import audit
from turnkeeper.engine.journal import Body, MemoryJournal
from turnkeeper.engine.lab.clock import VirtualClock
from turnkeeper.engine.lab.exploration.platform import ForkedPlatform
from turnkeeper.engine.lab.exploration.view import View
from turnkeeper.engine.lab.platform import Directive, Settling
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.trace import Moment, brief, moment_of

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.config import Config
    from turnkeeper.engine.events import Event
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.lab.exploration.moves import Move, Planned

__all__ = ["Answer", "Branch", "Entry"]

Entry = tuple[str, Any, Any, int]
"""What the log holds: (what, of what, with what, when)."""


class Answer(msgspec.Struct, frozen=True):
    """What the platform will tell, how what follows from it is settled, and after which move it came to be."""

    event: Event
    directive: Directive
    place: int


class StillRuntime(CellRuntime):
    """The plain cell, which fires a deadline only when it is told to."""

    def post(self, event: Event) -> None:
        """Run the event and hand over what it commands."""
        self._run(Body(event=event))
        self._release()

    def fire(self) -> str:
        """Fire the next deadline that came, and say whose."""
        body = self.cell.take_due(self.now_ms())
        if body is None or body.due is None:
            return ""
        self._run(body)
        self._release()
        return body.due.owner

    def like(self, other: StillRuntime) -> None:
        """Take over the owners of another runtime, with its place in the journal."""
        self.cell = Cell()
        self.cell.at = other.cell.at
        for address, owner in other.cell.owners.items():
            self.cell.adopt(address, owner.state, owner.due_ms)
        for command in other.cell.pending.values():
            self.cell.expect_confirmation(command)
        self._seq, self._reconciles = other._seq, other._reconciles
        self._at_ms, self._ahead_ms = other._at_ms, other._ahead_ms


class Branch:
    """A run up to one choice.

    Args:
        parent: the branch that it goes on from; None: the beginning of the scenario.
        next_message: the first message id of the platform.

    """

    def __init__(self, parent: Branch | None, next_message: int = 0) -> None:
        self.parent = parent
        self.label = ""
        """The choice that led here."""
        self.log: list[Entry] = []
        self.moments: list[Moment] = []
        self.broken: list[str] = []
        self.clock: VirtualClock = VirtualClock(0 if parent is None else parent.clock.now_ms())
        self.view: View = View() if parent is None else parent.view.fork()
        self.platform: ForkedPlatform = (
            ForkedPlatform(next_message, self._performed) if parent is None else parent.platform.fork(self._performed)
        )
        self.runtime: StillRuntime = StillRuntime(self.clock, self.platform, self._observe, paranoid=False)
        if parent is not None:
            self.runtime.like(parent.runtime)
        self._place(parent)

    def _place(self, parent: Branch | None) -> None:
        """Stand where the parent stands, or at the beginning."""
        self.ways: int = 1 if parent is None else parent.ways
        """How many orders lead here."""
        self.own: bool = parent is None or parent.own
        """The file's own order leads here."""
        self.taken: int = 0 if parent is None else parent.taken
        self.steps: int = 0 if parent is None else parent.steps
        self.until_ms: int | None = None if parent is None else parent.until_ms
        """How far the clock is still to go."""
        self.due_place: int | None = None if parent is None else parent.due_place
        """After which move the deadline that waits came."""
        self.answers: tuple[Answer, ...] = () if parent is None else parent.answers
        self.planned: tuple[Planned, ...] = () if parent is None else parent.planned
        self.directive: Directive = Directive() if parent is None else parent.directive
        """How what follows from the last move is settled."""

    # ------------------------------------------------------------ what is seen

    def _performed(self, command: Command) -> None:
        self.view.performed(command)
        self.log.append(("performed", command, None, self.clock.now_ms()))

    def _observe(self, record: Record, run: Run) -> None:
        self.log.append(("ran", record.body, run, record.at_ms))
        moment = moment_of(record, run) if record.body.event is None or run.rows or run.commands else None
        if moment is not None:
            self.moments.append(moment)
        self.broken += [f"invariant {name}" for name in run.violated]
        if run.error is not None:
            self.broken.append(f"set aside: {type(run.error).__name__}: {run.error}")

    def path(self) -> list[Branch]:
        """List the branches from the beginning to here."""
        found: list[Branch] = []
        at: Branch | None = self
        while at is not None:
            found.append(at)
            at = at.parent
        return found[::-1]

    def order(self) -> list[str]:
        """List the choices that lead here."""
        return [one.label for one in self.path() if one.label]

    # ------------------------------------------------------------ choices

    def take(self, index: int, move: Move, chats: tuple[str, ...]) -> None:
        """Play the next move of the scenario; `advance` only begins here."""
        self.taken |= 1 << index
        self.steps += 1
        self.directive = self.platform.step = move.directive
        step = move.step
        if step.event is not None:
            self.runtime.post(step.event)
        elif step.kind == "advance":
            self.until_ms = self.clock.now_ms() + step.raw["advance"]
            self.go_on(chats)
            return
        elif step.config is not None:
            self.log.append(("reloaded", step.config, None, self.clock.now_ms()))
            self.runtime.reload(step.config)
        self.rest(chats)

    def go_on(self, chats: tuple[str, ...]) -> None:
        """Let the clock go on to the next deadline, or as far as the scenario says."""
        until_ms, due_ms = self.until_ms or 0, self.runtime.next_due_ms()
        self.clock.advance_to(until_ms if due_ms is None or due_ms > until_ms else due_ms)
        if self.clock.now_ms() >= until_ms:
            self.until_ms = None
        self.rest(chats)

    def fire(self, chats: tuple[str, ...]) -> str:
        """Let the next deadline that came be dealt with."""
        self.platform.step = self.directive
        owner = self.runtime.fire()
        self.due_place = None
        self.rest(chats)
        return owner

    def hear(self, answer: Answer, chats: tuple[str, ...]) -> str:
        """Let the platform tell what became of something."""
        self.answers = tuple(one for one in self.answers if one is not answer)
        return self._hear(answer.event, answer.directive, chats)

    def settle(self, planned: Planned, chats: tuple[str, ...]) -> str:
        """Settle as the scenario says."""
        self.planned = tuple(one for one in self.planned if one is not planned)
        return self._hear(self.platform.settle(planned.settling), planned.directive, chats)

    def _hear(self, event: Event, directive: Directive, chats: tuple[str, ...]) -> str:
        self.platform.step = directive
        self.view.heard(event)
        self.runtime.post(event)
        self.rest(chats)
        if isinstance(event, Settled):
            return f"{event.delivery} {event.outcome}" + ("" if event.attempt in {None, 1} else f", {event.attempt}.")
        return brief(event)

    def rest(self, chats: tuple[str, ...]) -> None:
        """Note what waits now."""
        for chat in chats:
            self.platform.plan(self.runtime.queued(chat))
        new = (Answer(event, self.platform.step, self.steps) for event in self.platform.answers())
        self.answers = (*self.answers, *new)
        if not self.due():
            self.due_place = None
        elif self.due_place is None:
            self.due_place = self.steps

    def due(self) -> bool:
        """Say whether a deadline came and is not dealt with."""
        due_ms = self.runtime.next_due_ms()
        return due_ms is not None and due_ms <= self.clock.now_ms()

    def crash(self, config: Config, raw: dict[str, Any], chats: tuple[str, ...]) -> None:
        """Recover from the journal alone; what the platform was about to tell is lost."""
        frames = [frame for one in self.path() for frame in one.runtime.journal.frames]
        before = len(self.runtime.journal.frames)
        self.answers = ()
        self.log.append(("crashed", None, None, self.clock.now_ms()))
        self.clock.advance_to(self.clock.now_ms() + raw.get("down_ms", 0))
        self.log.append(("reloaded", config, None, self.clock.now_ms()))
        self.platform.reconciliation = raw.get("reconcile", {})
        self.runtime.journal = MemoryJournal(frames)
        self.runtime.start(config, reconciles="reconcile" in raw)
        self.broken += [f"replay differs at {one.seq}" for one in self.runtime.replayed.differs]
        self.runtime.journal = MemoryJournal(self.runtime.journal.frames[len(frames) - before :])
        self.rest(chats)

    # ------------------------------------------------------------ the end

    def finish(self, span_ms: int, chats: tuple[str, ...]) -> None:
        """Let the platform tell what it holds, and time pass, with every answer and deadline at once."""
        self.platform.step = self.platform.default
        while held := self.platform.held():
            chat = held[0].split(":")[1].replace("%3A", ":").replace("%25", "%")
            self._hear(self.platform.settle(Settling("sent", chat, delivery=held[0])), self.platform.default, chats)
        until_ms = self.clock.now_ms() + span_ms
        while True:
            while self.due():
                self.fire(chats)
            if self.answers:
                self.hear(self.answers[0], chats)
                continue
            due_ms = self.runtime.next_due_ms()
            if due_ms is None or due_ms > until_ms:
                break
            self.clock.advance_to(due_ms)
            self.due_place = None
        self.clock.advance_to(until_ms)
        self.broken += [f"audit: {found}" for found in audit(self.runtime.cell.owners)]

    # ------------------------------------------------------------ comparing

    def key(self, seen: dict[int, tuple[object, bytes]]) -> int:
        """Return what tells this branch from others; `seen` keeps what was encoded before."""
        owners = sorted(
            (str(address), address.chat, owner.due_ms or -1, _digest(owner.state, seen))
            for address, owner in self.runtime.cell.owners.items()
        )
        answers = sorted((codec.encode(one.event), one.place, repr(one.directive)) for one in self.answers)
        return hash(
            (
                *(self.taken, self.until_ms, self.clock.now_ms(), self.due_place, len(self.planned)),
                *(tuple(owners), tuple(answers), tuple(map(id, self.planned)), repr(self.directive)),
                *(self.view.mark(), self.platform.mark(), len(self.runtime.cell.pending)),
            )
        )


def _digest(state: object, seen: dict[int, tuple[object, bytes]]) -> bytes:
    """Return the encoded state; states never change, so each is encoded once."""
    known = seen.get(id(state))
    if known is None:
        known = seen[id(state)] = (state, codec.encode(state))
    return known[1]
