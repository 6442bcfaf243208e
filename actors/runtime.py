"""The scenario runtime that is the whole engine: thread, ingress, frames, commit, release, hand-over."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.actors.lockstep import Fuse, LabEngine, LockstepEngine, LockstepMemory, LockstepSqlite
from turnkeeper.actors.misuse import Misuse
from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine.errors import NotRunning
from turnkeeper.engine.inspection import queued
from turnkeeper.engine.invariants import audit
from turnkeeper.engine.journal import MemoryJournal
from turnkeeper.engine.lab.runtime import Died

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.config import Config
    from turnkeeper.engine.events import Event
    from turnkeeper.engine.journal import Journal, Record
    from turnkeeper.engine.lab.clock import VirtualClock
    from turnkeeper.engine.lab.platform import Platform
    from turnkeeper.engine.lab.runtime import During
    from turnkeeper.engine.ports import Reconciliation

__all__ = ["ActorsRuntime", "SqliteRuntime"]

PATIENCE_S = 60
"""A scenario that is not quiet by then has found a fault of ours."""


class PlatformGateway:
    """Hands everything to a simulated platform, which settles by events of its own."""

    def __init__(self, platform: Platform, fuse: Fuse) -> None:
        self._platform = platform
        self._fuse = fuse

    async def perform(self, command: Command, /) -> None:
        """Take a command."""
        self._fuse.watched(self._platform.perform, command)


class AskedGateway(PlatformGateway):
    """One that can be asked what became of a delivery."""

    async def reconcile(self, delivery: str, /) -> Reconciliation:
        """Say what the platform says."""
        return self._platform.reconcile(delivery)


class ActorsRuntime:
    """A `Runtime` over `Engine`: nothing is simulated but the platform and the time."""

    name = "actors"
    lockstep = False

    def __init__(self, clock: VirtualClock, platform: Platform, observe: Callable[[Record, Run], None]) -> None:
        self._clock = clock
        self._platform = platform
        self._observe = observe
        self._fuse = Fuse(observe)
        self._running: LabEngine | None = None
        self._memory: MemoryJournal | None = None

    @property
    def engine(self) -> LabEngine:
        """The engine that runs now."""
        if self._running is None:
            raise NotRunning("the actors runtime was not started; call start()")
        return self._running

    @property
    def journal(self) -> Journal:
        """Where it is recorded; what outlives a crash."""
        if self._memory is None:
            self._memory = self._remembering(MemoryJournal())
        return self._memory

    def _remembering(self, before: MemoryJournal) -> MemoryJournal:
        """Return another process's view of what was recorded."""
        if not self.lockstep:
            return MemoryJournal(before.frames, before.kept)
        journal = LockstepMemory(before.frames, before.kept)
        journal.fuse = self._fuse
        return journal

    def start(self, config: Config, *, reconciles: bool) -> None:
        """Recover from the journal and go on."""
        gateway = (AskedGateway if reconciles else PlatformGateway)(self._platform, self._fuse)
        make, observe = (LockstepEngine, self._fuse.released) if self.lockstep else (LabEngine, self._observe)
        self._running = make(config, gateway, journal=self.journal, clock=self._clock, observer=observe)
        if isinstance(self._running, LockstepEngine):
            self._running.burn(self._fuse)
        with self._living():
            self._running.start()
        self.quiesce()

    @contextmanager
    def _living(self) -> Generator[None, None, None]:
        """Do something with the engine; where it was to die in it, or somebody who watches raised, say so."""
        try:
            yield
        except NotRunning:
            if not self._fuse.dead:
                raise
        if self._fuse.failure is not None:
            raise self._fuse.failure
        if self._fuse.dead:
            raise Died

    def post(self, event: Event) -> None:
        """Take an event and run to quiescence."""
        with self._living():
            self.engine.post(event).wait(PATIENCE_S)
        self.quiesce()

    def quiesce(self) -> None:
        """Wait until nothing is left to do at this instant."""
        with self._living():
            self.engine.idle(PATIENCE_S)

    def next_due_ms(self) -> int | None:
        """Return the next deadline, by the clock."""
        due_ms = self.engine.next_due_ms()
        return None if due_ms is None else due_ms - (self.now_ms() - self._clock.now_ms())

    def now_ms(self) -> int:
        """Return the engine's time."""
        return self.engine.now_ms()

    def arm(self, during: During | None) -> None:
        """Die at a record from now on.

        Raises:
            Misuse: it does not run in lockstep.

        """
        if during is not None and not self.lockstep:
            raise Misuse("arm(): threads decide which record is the n-th; set `lockstep` before the first start")
        self._fuse.arm(during)

    def audit(self) -> list[str]:
        """Return what the owners of the whole cell do not agree on."""
        return self.engine.look(lambda cell: audit(cell.owners))

    def reload(self, config: Config) -> None:
        """Apply another configuration."""
        with self._living():
            self.engine.reload(config).wait(PATIENCE_S)

    def crash(self) -> None:
        """Drop everything but the journal's bytes."""
        self.engine.kill()
        if self._memory is not None:
            self._memory = self._remembering(self._memory)

    def stop(self) -> None:
        """End in good order."""
        if self._running is not None:
            self._running.stop(PATIENCE_S)

    def inspect(self, chat: str) -> dict[str, Any]:
        """Look into a chat."""
        return self.engine.inspect(chat)

    def queued(self, chat: str) -> list[str]:
        """List the deliveries that wait or are out."""
        return self.engine.look(lambda cell: queued(cell, chat))


RAM_DISK = Path("/dev/shm")  # noqa: S108 - the folders in it are made by tempfile
"""Where it exists, files lie there: a killed process loses no write, so a disk would only cost its time."""


def _folder() -> Path | None:
    return RAM_DISK if os.access(RAM_DISK, os.W_OK) else None


SNAPSHOT_EVERY = 7
"""So few events that most crashes of a scenario find a snapshot, and frames behind it."""


class SqliteRuntime(ActorsRuntime):
    """The engine on a journal of files: a crash opens them again, and finds what was committed.

    Args:
        path: the file; by default one in a folder that is removed at the end.

    """

    name = "sqlite"

    def __init__(
        self,
        clock: VirtualClock,
        platform: Platform,
        observe: Callable[[Record, Run], None],
        *,
        path: Path | None = None,
    ) -> None:
        super().__init__(clock, platform, observe)
        self._folder = None if path is not None else tempfile.TemporaryDirectory(prefix="turnkeeper-", dir=_folder())
        self._path = Path(self._folder.name, "scenario.journal") if self._folder is not None else Path(str(path))
        self._sqlite: SqliteJournal | None = None

    def _opened(self) -> SqliteJournal:
        if not self.lockstep:
            return SqliteJournal(self._path, sync="normal", linger_ms=0)
        journal = LockstepSqlite(self._path, sync="normal", linger_ms=0)
        journal.fuse = self._fuse
        return journal

    @property
    def journal(self) -> Journal:
        """Where it is recorded; what outlives a crash."""
        if self._sqlite is None:
            self._sqlite = self._opened()
        return self._sqlite

    def start(self, config: Config, *, reconciles: bool) -> None:
        """Recover from the journal and go on."""
        settings = msgspec.structs.replace(config.journal, snapshot_every_events=SNAPSHOT_EVERY)
        super().start(msgspec.structs.replace(config, journal=settings), reconciles=reconciles)

    def reload(self, config: Config) -> None:
        """Apply another configuration; snapshots come as often as before."""
        settings = msgspec.structs.replace(config.journal, snapshot_every_events=SNAPSHOT_EVERY)
        super().reload(msgspec.structs.replace(config, journal=settings))

    def crash(self) -> None:
        """Drop everything but the file."""
        super().crash()
        if self._sqlite is not None:
            self._sqlite.abandon()
            self._sqlite = None

    def stop(self) -> None:
        """End in good order."""
        try:
            super().stop()
        finally:
            if self._sqlite is not None:
                self._sqlite.close()
            if self._folder is not None:
                self._folder.cleanup()
