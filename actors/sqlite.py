"""The embedded journal: SQLite in WAL mode, written by one thread, group-committed.

Frames queue up and are committed together, so that one fsync serves many; `linger_ms` lets a commit wait for
company. A frame is a row; a snapshot replaces the one before it in one transaction, with the frames that it
makes superfluous. The file belongs to one process: a second one is refused, not allowed to damage it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.engine import codec
from turnkeeper.engine.config import Policy
from turnkeeper.engine.errors import DecodeError, JournalError, Locked, SchemaTooNew
from turnkeeper.engine.journal import Snapshot, decode_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Literal

__all__ = ["SqliteJournal"]

log = logging.getLogger("turnkeeper.journal")
SCHEMA = 1
BATCH_MAX = 4096
"""Frames of one transaction."""
TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS frames (
    n INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, at_ms INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS base (
    one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    rules INTEGER NOT NULL, policy BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS pictures (chat TEXT PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
"""
Committed = "Callable[[BaseException | None], None]"


class SqliteJournal:
    """A `Journal` in one SQLite file.

    Args:
        path: the file; made with mode 0600 if it is not there.
        sync: "full" makes every commit durable; "normal" may lose the newest commits at a power cut.
        linger_ms: how long a commit waits for more frames.

    Raises:
        Locked: another process has it open.
        SchemaTooNew: a newer version wrote it.
        JournalError: the file cannot be opened or is no journal; the text gives path and cause.

    """

    def __init__(self, path: str | Path, *, sync: Literal["full", "normal"] = "full", linger_ms: int = 1) -> None:
        self.path = Path(path)
        self.cut = 0
        """Damaged frames at the end that `load` cut off."""
        self._linger_s = linger_ms / 1000
        self._lock_file = self._lock()
        try:
            self._base = self._open(sync)
        except BaseException:
            self._unlock()
            raise
        self._waiting: deque[tuple[bytes, Callable[[BaseException | None], None]]] = deque()
        self._snapshots: deque[tuple[int, Snapshot, Callable[[BaseException | None], None]]] = deque()
        self._appended = 0
        self._written = 0
        self._failed: BaseException | None = None
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="turnkeeper-journal", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------ opening

    def _lock(self) -> int:
        """Take the lock file; it is held until `close` or the end of the process."""
        name = f"{self.path}.lock"
        try:
            held = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise JournalError(
                f"{self.path}: cannot be opened ({error.strerror}); journal.path names a file in a writable folder"
            ) from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(held)
            raise Locked(
                f"{self.path}: another process has this journal open ({name} is locked); stop it, or give another journal.path"
            ) from error
        return held

    def _unlock(self) -> None:
        os.close(self._lock_file)

    def _open(self, sync: str) -> sqlite3.Connection:
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            base = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            base.execute("PRAGMA journal_mode = WAL")
            base.execute(f"PRAGMA synchronous = {'FULL' if sync == 'full' else 'NORMAL'}")
            base.executescript(TABLES)
            base.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (SCHEMA,))
            (schema,) = base.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        except (sqlite3.Error, OSError) as error:
            raise JournalError(f"{self.path}: cannot be used as a journal ({_cause(error)})") from error
        if schema > SCHEMA:
            base.close()
            raise SchemaTooNew(
                f"{self.path}: has schema {schema}, this version reads up to {SCHEMA}; "
                "export it with the newer version (turnkeeper journal export --schema)"
            )
        return base

    # ------------------------------------------------------------ reading

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; its pictures are read one by one."""
        row = self._query("SELECT seq, at_ms, rules, policy FROM base").fetchone()
        if row is None:
            return None
        seq, at_ms, rules, policy = row
        return Snapshot(seq, at_ms, rules, codec.decode(policy, Policy), self._pictures())

    def _pictures(self) -> Iterator[tuple[str, bytes]]:
        for chat, data, crc in self._query("SELECT chat, data, crc FROM pictures ORDER BY rowid"):
            if codec.checksum(data) != crc:
                raise JournalError(f"{self.path}: the picture of a chat does not match its checksum; restore a copy")
            yield chat, data

    def load(self) -> Iterable[bytes]:
        """Yield the frames after the snapshot; a damaged end is cut off at the last whole frame, and told.

        Raises:
            JournalError: a frame that is not at the end is damaged.

        """
        rows = self._query("SELECT n FROM frames ORDER BY n").fetchall()
        for index, (n,) in enumerate(rows):
            (frame,) = self._query("SELECT data FROM frames WHERE n = ?", n).fetchone()
            try:
                decode_frame(frame)
            except SchemaTooNew:
                raise
            except DecodeError as error:
                if any(self._is_whole(later) for (later,) in rows[index + 1 :]):
                    raise JournalError(f"{self.path}: frame {n} is damaged and others follow it ({error})") from error
                self._cut_from(n, len(rows) - index)
                return
            yield frame

    def _is_whole(self, n: int) -> bool:
        (frame,) = self._query("SELECT data FROM frames WHERE n = ?", n).fetchone()
        try:
            decode_frame(frame)
        except DecodeError:
            return False
        return True

    def _cut_from(self, n: int, count: int) -> None:
        self.cut = count
        log.error("journal cut at its last whole frame", extra={"path": str(self.path), "frames_cut": count})
        self._query("DELETE FROM frames WHERE n >= ?", n)

    def _query(self, sql: str, *values: int) -> sqlite3.Cursor:
        try:
            return self._base.execute(sql, values)
        except sqlite3.Error as error:
            raise JournalError(f"{self.path}: cannot be read ({_cause(error)})") from error

    # ------------------------------------------------------------ writing

    def append(self, frame: bytes, committed: Callable[[BaseException | None], None]) -> None:
        """Queue a frame for the next commit."""
        with self._changed:
            self._waiting.append((frame, committed))
            self._appended += 1
            self._changed.notify_all()

    def keep(self, snapshot: Snapshot, kept: Callable[[BaseException | None], None]) -> None:
        """Queue a snapshot behind the frames that were appended before it."""
        with self._changed:
            self._snapshots.append((self._appended, snapshot, kept))
            self._changed.notify_all()

    def close(self) -> None:
        """Commit what waits, then release the file."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._base.close()
        self._unlock()

    def _run(self) -> None:
        """Commit batches until closed: the journal's own thread."""
        while True:
            with self._changed:
                while not (self._waiting or self._snapshots or self._closing):
                    self._changed.wait()
                if not (self._waiting or self._snapshots):
                    return
                if self._waiting and len(self._waiting) < BATCH_MAX and not self._closing and self._linger_s:
                    self._changed.wait(self._linger_s)
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_MAX))]
            self._commit(batch)
            self._keep_due()

    def _commit(self, batch: list[tuple[bytes, Callable[[BaseException | None], None]]]) -> None:
        error = self._failed
        if batch and error is None:
            try:
                self._write(batch)
            except (sqlite3.Error, OSError) as cause:
                error = self._failed = self._failure(cause)
        self._written += len(batch)
        for _, committed in batch:
            committed(error)

    def _write(self, batch: list[tuple[bytes, Callable[[BaseException | None], None]]]) -> None:
        base = self._base
        base.execute("BEGIN IMMEDIATE")
        try:
            base.executemany("INSERT INTO frames (last_seq, at_ms, data) VALUES (?, ?, ?)", map(_row, batch))
            base.execute("COMMIT")
        except BaseException:
            if base.in_transaction:
                base.execute("ROLLBACK")
            raise

    def _failure(self, cause: BaseException) -> JournalError:
        error = JournalError(f"{self.path}: could not be written ({_cause(cause)}); nothing unrecorded is released")
        error.__cause__ = cause
        log.error("journal failed", extra={"path": str(self.path), "error": type(cause).__name__})
        return error

    def _keep_due(self) -> None:
        """Write the snapshots whose frames are all committed."""
        while True:
            with self._changed:
                if not self._snapshots or self._snapshots[0][0] > self._written:
                    return
                _, snapshot, kept = self._snapshots.popleft()
            error = self._failed
            if error is None:
                try:
                    self._replace(snapshot)
                except (sqlite3.Error, OSError) as cause:
                    error = self._failure(cause)
            kept(error)

    def _replace(self, snapshot: Snapshot) -> None:
        base = self._base
        base.execute("BEGIN IMMEDIATE")
        try:
            base.execute("DELETE FROM pictures")
            base.executemany(
                "INSERT INTO pictures VALUES (?, ?, ?)",
                ((chat, data, codec.checksum(data)) for chat, data in snapshot.pictures),
            )
            base.execute(
                "INSERT OR REPLACE INTO base VALUES (1, ?, ?, ?, ?)",
                (snapshot.seq, snapshot.at_ms, snapshot.rules, codec.encode(snapshot.policy)),
            )
            base.execute("DELETE FROM frames WHERE last_seq <= ?", (snapshot.seq,))
            base.execute("COMMIT")
        except BaseException:
            if base.in_transaction:
                base.execute("ROLLBACK")
            raise
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _row(waiting: tuple[bytes, object]) -> tuple[int, int, bytes]:
    """Return the row of a frame: where it ends in the sequence, and when."""
    seq, at_ms = codec.end_of(waiting[0])
    return seq, at_ms, waiting[0]


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
