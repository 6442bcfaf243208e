"""The embedded journal: SQLite in WAL mode, written by one thread, group-committed.

Frames queue up and are committed together, so that one fsync serves many; `linger_ms` lets a commit wait for
company. Snapshots are written a slice at a time beside them (`turnkeeper.actors.sqlite_pictures`). The file
belongs to one process: a second one is refused, not allowed to damage it.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from typing import TYPE_CHECKING

from turnkeeper.actors.sqlite_file import JournalFile, cause_of
from turnkeeper.actors.sqlite_pictures import Arrival, Arrivals
from turnkeeper.engine import codec
from turnkeeper.engine.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import Literal

    from turnkeeper.actors.sqlite_pictures import Row
    from turnkeeper.engine.journal import Snapshot

    Committed = Callable[[BaseException | None], None]

__all__ = ["SqliteJournal"]

log = logging.getLogger("turnkeeper.journal")
BATCH_MAX = 4096
"""Frames of one transaction."""


class SqliteJournal:
    """A `Journal` in one SQLite file.

    Args:
        path: the file; made with mode 0600 if it is not there.
        sync: "full" makes every commit durable; "normal" may lose the newest commits at a power cut.
        linger_ms: how long a commit waits for more frames.
        retain_days: how long frames stay that a snapshot made superfluous.

    Raises:
        Locked: another process has it open.
        SchemaTooNew: a newer version wrote it.
        JournalError: the file cannot be opened or is no journal; the text gives path and cause.

    """

    def __init__(
        self,
        path: str | Path,
        *,
        sync: Literal["full", "normal"] = "full",
        linger_ms: int = 1,
        retain_days: int = 30,
    ) -> None:
        self.file = JournalFile(path, sync=sync, make=True)
        self.path = self.file.path
        self.commits = 0
        """Transactions so far."""
        self._linger_s = linger_ms / 1000
        self._db = self.file.db
        self._arrivals = Arrivals(self._db, retain_days)
        self._waiting: deque[tuple[bytes, Committed]] = deque()
        self._snapshots: deque[Arrival] = deque()
        self._appended = 0
        self._written = 0
        self._failed: BaseException | None = None
        self._closing = False
        self._abandoned = False
        self._changed = threading.Condition()
        try:
            base = self.file.base()
            self._arrivals.forget_unfinished(0 if base is None else base.seq)
        except (sqlite3.Error, JournalError) as error:
            self.file.release()
            raise error if isinstance(error, JournalError) else self.file.unreadable(error) from error
        self._thread = threading.Thread(target=self._run, name="turnkeeper-journal", daemon=True)
        self._thread.start()

    @property
    def cut(self) -> int:
        """Damaged frames at the end that `load` cut off."""
        return self.file.cut

    # ------------------------------------------------------------ the protocol

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; its pictures are read one by one."""
        return self.file.snapshot()

    def load(self) -> Iterable[bytes]:
        """Yield the frames after the snapshot; a damaged end is cut off at the last whole frame, and told.

        Raises:
            JournalError: a frame that is not at the end is damaged.

        """
        base = self.file.base()
        return self.file.frames(0 if base is None else base.seq)

    def append(self, frame: bytes, committed: Committed) -> None:
        """Queue a frame for the next commit."""
        with self._changed:
            self._waiting.append((frame, committed))
            self._appended += 1
            self._changed.notify_all()

    def keep(self, snapshot: Snapshot, kept: Committed) -> None:
        """Queue a snapshot behind the frames that were appended before it."""
        with self._changed:
            self._snapshots.append(Arrival(snapshot, self._appended, kept))
            self._changed.notify_all()

    def close(self) -> None:
        """Commit what waits, then release the file; closing again does nothing."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self.file.release()

    def abandon(self) -> None:
        """Release the file and commit nothing more, as a crash would; for tests."""
        self._abandoned = True
        self.close()

    # ------------------------------------------------------------ the journal's own thread

    def _run(self) -> None:
        """Commit batches until closed."""
        while True:
            with self._changed:
                while not (self._waiting or self._snapshots or self._closing or self._arrivals.busy(self._written)):
                    self._changed.wait()
                if self._waiting:
                    self._changed.wait_for(self._is_full, self._linger_s)
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_MAX))]
                while self._snapshots:
                    self._arrivals.put(self._snapshots.popleft())
            if self._abandoned or not (batch or self._arrivals.busy(self._written)):
                return
            self._commit(batch)
            self._tidy()

    def _is_full(self) -> bool:
        return len(self._waiting) >= BATCH_MAX or self._closing

    def _commit(self, batch: list[tuple[bytes, Committed]]) -> None:
        """Commit frames, and a slice of a snapshot with them; if both cannot be, the frames alone."""
        arrival, rows = self._slice()
        error = self._failed
        if arrival is not None and error is None:
            error = self._written_or_why(batch, arrival, rows)
        if arrival is not None and error is not None:
            self._arrivals.failed(error)
            arrival, error = None, self._failed
        elif arrival is not None:
            self._tell(batch, None)
            if arrival.ended:
                self._arrivals.done(arrival)
            return
        if batch and error is None:
            error = self._failed = self._written_or_why(batch, None, [])
        self._tell(batch, error)

    def _tell(self, batch: list[tuple[bytes, Committed]], error: BaseException | None) -> None:
        self._written += len(batch)
        for _, committed in batch:
            committed(error)

    def _written_or_why(
        self, batch: list[tuple[bytes, Committed]], arrival: Arrival | None, rows: list[Row]
    ) -> JournalError | None:
        try:
            self._write(batch, arrival, rows)
        except (sqlite3.Error, OSError) as cause:
            return self._failure(cause)
        return None

    def _slice(self) -> tuple[Arrival | None, list[Row]]:
        arrival = self._arrivals.current(self._written)
        if arrival is None:
            return None, []
        try:
            return arrival, arrival.slice()
        except Exception as error:  # noqa: BLE001 - a picture that cannot be encoded is a bug of ours; frames go on
            self._arrivals.failed(error)
            return None, []

    def _write(self, batch: list[tuple[bytes, Committed]], arrival: Arrival | None, rows: list[Row]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            db.executemany("INSERT INTO frames VALUES (?, ?, ?)", map(_row, batch))
            if arrival is not None:
                arrival.write(db, rows)
            db.execute("COMMIT")
            self.commits += 1
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _tidy(self) -> None:
        try:
            self._arrivals.tidy()
        except sqlite3.Error as cause:
            self._failure(cause)  # what is superfluous stays until the next whole snapshot

    def _failure(self, cause: BaseException) -> JournalError:
        error = JournalError(f"{self.path}: could not be written ({cause_of(cause)}); nothing unrecorded is released")
        error.__cause__ = cause
        log.error("journal failed", extra={"path": str(self.path), "error": type(cause).__name__})
        return error


def _row(waiting: tuple[bytes, object]) -> tuple[int, int, bytes]:
    """Return the row of a frame: where it ends in the sequence, and when."""
    seq, at_ms = codec.end_of(waiting[0])
    return seq, at_ms, waiting[0]
