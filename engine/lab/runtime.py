"""What runs a scenario: the cell alone, or the whole engine; both behind one small face.

`CellRuntime` does by hand what the running system does with threads: sequence, record, release, hand over.
The runtime over actors lives beside the engine's face (`turnkeeper.actors.runtime`), and passes the same
scenarios; whatever differs between the two is a fault of ours.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec

from turnkeeper.engine import inspection
from turnkeeper.engine.cell import Cell, Run
from turnkeeper.engine.commands import Ack, Command, Edit, Preview, React, Reconcile, Send
from turnkeeper.engine.config import Config, as_policy
from turnkeeper.engine.invariants import audit
from turnkeeper.engine.journal import Body, DoneBody, HandedBody, MemoryJournal, Record, RecoveredBody, encode_frame
from turnkeeper.engine.recovery import Replayed, answer_to, found_by, record_of, replay

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.events import Event
    from turnkeeper.engine.lab.clock import VirtualClock
    from turnkeeper.engine.lab.platform import Platform
    from turnkeeper.engine.signals import Signal

__all__ = ["CellRuntime", "Died", "During", "Observer", "Runtime", "RuntimeMaker"]

Observer = "Callable[[Record, Run], None]"
"""Told of every live run, never of a replay."""


class During(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where in a step the process dies: at the n-th record that the step leads to."""

    records: Annotated[int, msgspec.Meta(ge=1)]
    before: bool = False
    """It is not committed, and what the one before led to was performed; else it is, and nothing came of it yet."""


class Died(BaseException):
    """The process died here, as it was told to; only who told it catches this."""


class Runtime(Protocol):
    """Something that events can be posted to, with a clock that is moved by hand."""

    name: str
    lockstep: bool
    """Nothing is left to threads: the same events give the same records at each run. Set before the first start."""

    def arm(self, during: During | None) -> None:
        """Die at a record from now on, by raising `Died` from whatever is called; None: live. Needs `lockstep`."""
        ...

    def now_ms(self) -> int:
        """Return the engine's time; a clock that was set back at a restart is behind it."""
        ...

    def audit(self) -> list[str]:
        """Return what the owners of the whole cell do not agree on."""
        ...

    def start(self, config: Config, *, reconciles: bool) -> None:
        """Recover from the journal and go on; the first start finds an empty one."""
        ...

    def post(self, event: Event) -> None:
        """Take an event and run to quiescence, without moving the clock; settlements are not waited for."""
        ...

    def quiesce(self) -> None:
        """Fire what is due now, and run to quiescence."""
        ...

    def next_due_ms(self) -> int | None:
        """Return the next deadline, by the clock."""
        ...

    def reload(self, config: Config) -> None:
        """Apply another configuration."""
        ...

    def crash(self) -> None:
        """Drop everything but the journal's bytes."""
        ...

    def stop(self) -> None:
        """End in good order."""
        ...

    def inspect(self, chat: str) -> dict[str, Any]:
        """Look into a chat."""
        ...

    def queued(self, chat: str) -> list[str]:
        """List the deliveries that wait or are out."""
        ...


class RuntimeMaker(Protocol):
    """Makes a runtime for one scenario."""

    def __call__(self, clock: VirtualClock, platform: Platform, observe: Callable[[Record, Run], None], /) -> Runtime:
        """Make it; it starts with an empty journal."""
        ...


class CellRuntime:
    """The plain cell: one thread, no actors, every state checked to be unchanged by its steps."""

    name = "cell"
    lockstep = True

    def __init__(
        self,
        clock: VirtualClock,
        platform: Platform,
        observe: Callable[[Record, Run], None],
        *,
        paranoid: bool = True,
    ) -> None:
        self.journal = MemoryJournal()
        self.cell = Cell(paranoid=paranoid)
        self.replayed = Replayed(differs=[])
        self._clock = clock
        self._platform = platform
        self._observe = observe
        self._paranoid = paranoid
        self._reconciles = False
        self._seq = 0
        self._at_ms = 0
        """The last that was stamped: the engine's time never goes back behind it."""
        self._ahead_ms = 0
        """How far the journal's time was ahead of the clock at the start: it goes on from there."""
        self._during: During | None = None
        self._left = 0
        """Records until it dies."""
        self._released: deque[Command] = deque()

    def start(self, config: Config, *, reconciles: bool) -> None:
        """Replay the journal, journal the policy, and release again what nobody confirmed."""
        self._reconciles = reconciles
        self.cell = Cell(paranoid=self._paranoid)
        self.replayed = replay(self.cell, self.journal.load())
        self._seq, self._at_ms = self.replayed.seq, self.replayed.at_ms
        self._ahead_ms = max(0, self._at_ms - self._clock.now_ms())
        pending = tuple(self.cell.pending.values())
        self._run(Body(configured=as_policy(config, reconciles=reconciles)))
        if self.replayed.records:
            down_ms = max(0, self.now_ms() - self.replayed.at_ms)
            # A reconcile is made anew by the channel that waits for it; an ack's caller is gone.
            self._released.extend(command for command in pending if not isinstance(command, Reconcile | Ack))
            found = found_by(self.cell, self.replayed, down_ms)
            self._run(Body(recovered=RecoveredBody(down_ms)), found, *self.replayed.differs)
            for command in pending:
                if isinstance(command, Reconcile):
                    self._run(Body(done=DoneBody(command.id)))
        self._release()
        self.quiesce()

    def post(self, event: Event) -> None:
        """Run the event, hand over what it commands, then fire what is due now."""
        self._run(Body(event=event))
        self._release()
        self.quiesce()

    def quiesce(self) -> None:
        """Fire every deadline that came."""
        while (body := self.cell.take_due(self.now_ms())) is not None:
            self._run(body)
            self._release()

    def _run(self, body: Body, *also: Signal) -> Run:
        self._left -= 1
        dies = self._during is not None and self._left <= 0
        if dies and self._during is not None and self._during.before:
            raise Died
        self._seq, self._at_ms = self._seq + 1, self.now_ms()
        run = self.cell.apply(body, self._at_ms, self._seq)
        run.signals += also
        record = record_of(self._seq, self._at_ms, body, run)
        self.journal.append(encode_frame([record]), _committed)
        self._observe(record, run)
        self._released.extend(run.commands)
        if dies:
            raise Died
        return run

    def _release(self) -> None:
        """Hand over what was commanded, in order, each under its own verdict."""
        while self._released:
            self._hand_over(self._released.popleft())

    def _hand_over(self, command: Command) -> None:
        if isinstance(command, Send | Edit | Preview | React):
            run = self._run(Body(handed=HandedBody(command.id, command.delivery, command.attempt)))
            if run.go:
                self._platform.perform(command)
            return
        self._platform.perform(command)
        if isinstance(command, Reconcile):
            answer = self._platform.reconcile(command.delivery)
            self._run(Body(event=answer_to(command, answer)))
        if not isinstance(command, Ack):
            self._run(Body(done=DoneBody(command.id)))

    def arm(self, during: During | None) -> None:
        """Die at a record from now on."""
        self._during, self._left = during, 0 if during is None else during.records

    def now_ms(self) -> int:
        """Return the engine's time, which goes on where the journal ended."""
        return max(self._at_ms, self._clock.now_ms() + self._ahead_ms)

    def audit(self) -> list[str]:
        """Return what the owners of the whole cell do not agree on."""
        return audit(self.cell.owners)

    def next_due_ms(self) -> int | None:
        """Return the next deadline of the cell, by the clock."""
        due_ms = self.cell.next_due_ms()
        return None if due_ms is None else due_ms - self._ahead_ms

    def reload(self, config: Config) -> None:
        """Journal another policy."""
        self._run(Body(configured=as_policy(config, reconciles=self._reconciles)))

    def crash(self) -> None:
        """Keep the journal's bytes alone."""
        self.journal = MemoryJournal(self.journal.frames)
        self._released.clear()

    def stop(self) -> None:
        """Nothing to end."""

    def inspect(self, chat: str) -> dict[str, Any]:
        """Look into a chat."""
        return inspection.inspect_chat(self.cell, chat)

    def queued(self, chat: str) -> list[str]:
        """List the deliveries that wait or are out."""
        return inspection.queued(self.cell, chat)


def _committed(error: BaseException | None) -> None:
    """Memory never fails."""
