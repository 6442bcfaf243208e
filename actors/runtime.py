"""The scenario runtime that is the whole engine: thread, ingress, frames, commit, release, hand-over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.lab.clock import VirtualClock
    from turnkeeper.engine.lab.platform import Platform
    from turnkeeper.engine.ports import Reconciliation

__all__ = ["ActorsRuntime"]

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
        self.journal = MemoryJournal()
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
        self.journal = MemoryJournal(self.journal.frames, self.journal.kept)

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
