"""An engine that leaves nothing to its threads, and that dies at a record when it is told to; for simulations.

Theory of operation. Threads decide three things in a running engine: which records share a frame, whether a
commit or the next event comes first, and when a call of the gateway returns. Here the shard waits for each commit
and for each call, so that the same events make the same records. They still travel as they always do: an event
through the ingress, a commit as the journal's notice, a call through the gateway's loop.

It dies where a process can die: before a frame is appended, which loses every record of it; or once a record was
released to its observer, before anything else came of it. The rest of its frame is committed then, and whoever
watches is told of it at once: it did happen, though nobody heard.
"""

from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from turnkeeper.actors.aio import GatewayHands, Report
from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.actors.system import Engine
from turnkeeper.engine.journal import MemoryJournal, decode_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.actors.performer import Job
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.journal import Record, Snapshot
    from turnkeeper.engine.lab.runtime import During
    from turnkeeper.engine.ports import Gateway

__all__ = ["Fuse", "LabEngine", "LockstepEngine", "LockstepMemory", "LockstepSqlite"]

PATIENCE_S = 60


class Fuse:
    """Kills an engine at a record.

    Args:
        observe: told of every record that was committed, with its run.

    """

    def __init__(self, observe: Callable[[Record, Run], None]) -> None:
        self.kill: Callable[[], None] = _nothing
        """Ends the engine at once; called on the shard's thread."""
        self.dead = False
        self.failure: BaseException | None = None
        """What somebody who watches raised: a bug, which ends the engine too, at its next record."""
        self._observe = observe
        self._during: During | None = None
        self._left = 0
        self._runs: deque[Run] = deque()
        """Those of the next frame."""
        self._unseen: deque[tuple[Record, Run]] = deque()
        """Committed, and not released."""

    def arm(self, during: During | None) -> None:
        """Burn for so many records; None: not at all."""
        self._during, self._left = during, 0 if during is None else during.records

    def renew(self) -> None:
        """Another process begins."""
        self.dead = False
        self._runs.clear()
        self._unseen.clear()

    def ran(self, run: Run) -> None:
        """Something was run; it is of the next frame."""
        self._runs.append(run)

    def stops(self, frame: bytes) -> bool:
        """Say whether the process dies before this frame is appended."""
        runs, self._runs = self._runs, deque()
        if self.dead:
            return True
        if self._during is None:
            return False
        records = decode_frame(frame)
        if self._during.before and self._left <= len(records):
            self._die()
            return True
        self._unseen.extend(zip(records, runs, strict=True))
        if self._during.before:
            self._left -= len(records)
        return False

    def released(self, record: Record, run: Run) -> None:
        """A record was committed; an observer of the engine, on the shard's thread."""
        if self._unseen:
            self._unseen.popleft()
        self.watched(self._observe, record, run)
        if self.failure is not None:
            self._die()
        if self._during is None or self._during.before or self.dead:
            return
        self._left -= 1
        if self._left <= 0:
            self._die()
            while self._unseen:
                self.watched(self._observe, *self._unseen.popleft())

    def watched(self, act: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401 - passes on what `act` returns
        """Let somebody watch; what that raises is for whoever drives the engine, which would only log it."""
        try:
            return act(*given)
        except BaseException as error:  # noqa: BLE001 - a bug of ours, whatever it is
            self.failure = self.failure or error
            return None

    def _die(self) -> None:
        self.dead = True
        self.kill()


def _nothing() -> None:
    """Nobody lives."""


class LockstepMemory(MemoryJournal):
    """A journal in memory, behind a fuse."""

    fuse: Fuse

    def append(self, frame: bytes, committed: Callable[[BaseException | None], None]) -> None:
        """Keep the frame, unless the process dies here."""
        if not self.fuse.stops(frame):
            super().append(frame, committed)


class LockstepSqlite(SqliteJournal):
    """A journal on a disk, behind a fuse; the shard waits until what it wrote is there."""

    fuse: Fuse

    def append(self, frame: bytes, committed: Callable[[BaseException | None], None]) -> None:
        """Commit the frame, unless the process dies here; the shard hears of it as always, by a notice."""
        if not self.fuse.stops(frame):
            told = Told(committed)
            super().append(frame, told)
            told.wait()

    def keep(self, snapshot: Snapshot, kept: Callable[[BaseException | None], None]) -> None:
        """Write the snapshot."""
        told = Told(kept)
        super().keep(snapshot, told)
        told.wait()


class Told:
    """A report that somebody waits for; it is passed on first."""

    def __init__(self, report: Callable[[BaseException | None], None]) -> None:
        self._report = report
        self._done = threading.Event()

    def __call__(self, error: BaseException | None) -> None:
        self._report(error)
        self._done.set()

    def wait(self) -> None:
        """Wait for it."""
        self._done.wait(PATIENCE_S)


class Returned:
    """Passes on what the gateway's calls report, and says when one has returned."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._back: SimpleQueue[Job] = SimpleQueue()

    def begun(self, job: Job, /) -> None:
        """The gateway is about to be called."""
        self._report.begun(job)

    def returned(self, job: Job, result: Any, error: BaseException | None, /) -> None:  # noqa: ANN401 - whatever a gateway returns
        """The call returned, or raised."""
        self._report.returned(job, result, error)
        self._back.put(job)

    def wait(self) -> None:
        """Wait for the next return."""
        self._back.get(timeout=PATIENCE_S)


class LockstepHands(GatewayHands):
    """Calls the gateway, one call at a time."""

    def __init__(self, gateway: Gateway, report: Report) -> None:
        self._returned = Returned(report)
        super().__init__(gateway, self._returned)

    def call(self, job: Job) -> bool:
        """Call the gateway, and wait until the call returned."""
        begins = super().call(job)
        if not self.closed:
            self._returned.wait()
        return begins


class LabEngine(Engine):
    """An engine whose time can be read."""

    def now_ms(self) -> int:
        """Return the engine's time; while it is idle, or dead."""
        return self._shard.now_ms()


class LockstepEngine(LabEngine):
    """An engine with a fuse."""

    _hands = LockstepHands

    def burn(self, fuse: Fuse) -> None:
        """Let the fuse see each run before its frame, and end this engine."""
        after = self._shard.after_run

        def ran(run: Run) -> None:
            fuse.ran(run)
            after(run)

        self._shard.after_run = ran
        fuse.renew()
        fuse.kill = self.kill
