"""The scenario runtime that is the whole engine: thread, ingress, frames, commit, release, hand-over."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.actors.system import Engine
from turnkeeper.engine.errors import NotRunning
from turnkeeper.engine.inspection import queued
from turnkeeper.engine.journal import MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.config import Config
    from turnkeeper.engine.events import Event
    from turnkeeper.engine.journal import Journal, Record
    from turnkeeper.engine.lab.clock import VirtualClock
    from turnkeeper.engine.lab.platform import Platform
    from turnkeeper.engine.ports import Reconciliation

__all__ = ["ActorsRuntime", "SqliteRuntime"]

PATIENCE_S = 60
"""A scenario that is not quiet by then has found a fault of ours."""


class PlatformGateway:
    """Hands everything to a simulated platform, which settles by events of its own."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def perform(self, command: Command, /) -> None:
        """Take a command."""
        self._platform.perform(command)


class AskedGateway(PlatformGateway):
    """One that can be asked what became of a delivery."""

    async def reconcile(self, delivery: str, /) -> Reconciliation:
        """Say what the platform says."""
        return self._platform.reconcile(delivery)


class ActorsRuntime:
    """A `Runtime` over `Engine`: nothing is simulated but the platform and the time."""

    name = "actors"

    def __init__(self, clock: VirtualClock, platform: Platform, observe: Callable[[Record, Run], None]) -> None:
        self._memory = MemoryJournal()
        self._clock = clock
        self._platform = platform
        self._observe = observe
        self._running: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The engine that runs now."""
        if self._running is None:
            raise NotRunning("the actors runtime was not started; call start()")
        return self._running

    @property
    def journal(self) -> Journal:
        """Where it is recorded; what outlives a crash."""
        return self._memory

    def start(self, config: Config, *, reconciles: bool) -> None:
        """Recover from the journal and go on."""
        gateway = (AskedGateway if reconciles else PlatformGateway)(self._platform)
        self._running = Engine(config, gateway, journal=self.journal, clock=self._clock, observer=self._observe)
        self._running.start()
        self.quiesce()

    def post(self, event: Event) -> None:
        """Take an event and run to quiescence."""
        self.engine.post(event).wait(PATIENCE_S)
        self.quiesce()

    def quiesce(self) -> None:
        """Wait until nothing is left to do at this instant."""
        self.engine.idle(PATIENCE_S)

    def next_due_ms(self) -> int | None:
        """Return the next deadline."""
        return self.engine.next_due_ms()

    def reload(self, config: Config) -> None:
        """Apply another configuration."""
        self.engine.reload(config).wait(PATIENCE_S)

    def crash(self) -> None:
        """Drop everything but the journal's bytes."""
        self.engine.kill()
        self._memory = MemoryJournal(self._memory.frames, self._memory.kept)

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
        self._folder = None if path is not None else tempfile.TemporaryDirectory(prefix="turnkeeper-")
        self._path = Path(self._folder.name, "scenario.journal") if self._folder is not None else Path(str(path))
        self._sqlite = self._opened()

    def _opened(self) -> SqliteJournal:
        return SqliteJournal(self._path, sync="normal", linger_ms=0)

    @property
    def journal(self) -> Journal:
        """Where it is recorded; what outlives a crash."""
        return self._sqlite

    def start(self, config: Config, *, reconciles: bool) -> None:
        """Recover from the journal and go on."""
        settings = msgspec.structs.replace(config.journal, snapshot_every_events=SNAPSHOT_EVERY)
        super().start(msgspec.structs.replace(config, journal=settings), reconciles=reconciles)

    def crash(self) -> None:
        """Drop everything but the file."""
        self.engine.kill()
        self._sqlite.abandon()
        self._sqlite = self._opened()

    def stop(self) -> None:
        """End in good order."""
        super().stop()
        self._sqlite.close()
        if self._folder is not None:
            self._folder.cleanup()
