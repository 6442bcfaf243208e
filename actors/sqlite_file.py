"""The journal's file: opened, locked, checked and read. Who writes it is `turnkeeper.actors.sqlite`.

A frame is a row, keyed by the place of its last record. A snapshot is a row of `base` and, for each chat, its
newest picture that is not younger than `base`: pictures of a snapshot that was never finished are not read.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnkeeper.engine import codec
from turnkeeper.engine.config import Policy
from turnkeeper.engine.errors import DecodeError, JournalError, Locked, SchemaTooNew
from turnkeeper.engine.journal import Snapshot, decode_frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

__all__ = ["SCHEMA", "Base", "JournalFile", "cause_of"]

log = logging.getLogger("turnkeeper.journal")
SCHEMA = 1
"""Of the tables; that of the frames is `codec.SCHEMA`."""
TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS frames (last_seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS base (
    one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    rules INTEGER NOT NULL, policy BLOB NOT NULL, whole INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS pictures (
    chat BLOB NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (chat, seq)) STRICT, WITHOUT ROWID;
COMMIT;
"""
MAGIC = b"SQLite format 3\0"
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises for a damaged file: the latter where its message or a name quotes bytes that are no text."""


class Base(NamedTuple):
    """Where a replay begins."""

    seq: int
    at_ms: int
    rules: int
    policy: bytes
    whole: int
    """Pictures that are older are of no chat any more."""


class JournalFile:
    """One journal's file, held by this process alone until `release`.

    Args:
        path: the file.
        sync: "full" makes every commit durable; "normal" may lose the newest commits at a power cut.
        make: for the writer: make it, with mode 0600, if it is not there. A tool gets an error then, and changes nothing.

    Raises:
        Locked: another process has it open.
        SchemaTooNew: a newer version wrote it.
        JournalError: the file cannot be opened or is no journal; the text gives path and cause.

    """

    def __init__(self, path: str | Path, *, sync: Literal["full", "normal"] = "full", make: bool = False) -> None:
        self.path = Path(path)
        self.cut = 0
        """Damaged frames at the end that were cut off."""
        self._makes = make
        if not make:
            self._check_kind()
        self._lock_file = self._lock()
        try:
            self.db = self._open(sync)
        except BaseException:
            os.close(self._lock_file)
            raise

    def _check_kind(self) -> None:
        """A tool changes nothing in a file that is no journal, and makes none."""
        try:
            with self.path.open("rb") as file:
                found = file.read(len(MAGIC))
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be read ({error.strerror}); give the path of a journal") from error
        if found != MAGIC:
            raise JournalError(f"{self.path}: is no journal; expected a file that `journal.path` named")

    def _lock(self) -> int:
        """Take the lock file; it is held until `release` or the end of the process."""
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
                f"{self.path}: another process has this journal open ({name} is locked); "
                "stop it, or give another journal.path"
            ) from error
        return held

    def release(self) -> None:
        """Close the file and let others open it."""
        self.db.close()
        os.close(self._lock_file)

    def _open(self, sync: str) -> sqlite3.Connection:
        try:
            if self._makes:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            if self._makes:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute(f"PRAGMA synchronous = {'FULL' if sync == 'full' else 'NORMAL'}")
                db.executescript(TABLES)
                db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (SCHEMA,))
            else:
                db.execute("PRAGMA query_only = ON")
                if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'frames'").fetchone() is None:
                    raise JournalError(f"{self.path}: is a database and no journal, or nothing was recorded yet")
            row = db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
            if row is None:
                raise JournalError(f"{self.path}: is a database and no journal, or nothing was recorded yet")
            (schema,) = row
        except (*UNREADABLE, OSError) as error:
            raise JournalError(
                f"{self.path}: cannot be used as a journal ({cause_of(error)}); "
                "journal.path names a journal, or a file that does not exist yet"
            ) from error
        if schema > SCHEMA:
            db.close()
            raise SchemaTooNew(
                f"{self.path}: has schema {schema}, this version reads up to {SCHEMA}; "
                "export it with the newer version (turnkeeper journal export --schema)"
            )
        return db

    # ------------------------------------------------------------ reading

    def query(self, sql: str, *values: int | bytes) -> sqlite3.Cursor:
        """Run a statement.

        Raises:
            JournalError: the file cannot be read; the text gives path and cause.

        """
        try:
            return self.db.execute(sql, values)
        except UNREADABLE as error:
            raise self.unreadable(error) from error

    def unreadable(self, cause: BaseException) -> JournalError:
        """Return what to raise for a file that cannot be read."""
        return JournalError(f"{self.path}: cannot be read ({cause_of(cause)}); restore a copy")

    def base(self) -> Base | None:
        """Return where the newest snapshot stands."""
        row = self.query("SELECT seq, at_ms, rules, policy, whole FROM base").fetchone()
        return None if row is None else Base(*self._typed(row, int, int, int, bytes, int))

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; its pictures are read one by one."""
        base = self.base()
        if base is None:
            return None
        try:
            policy = codec.decode(base.policy, Policy)
        except DecodeError as error:
            raise self.unreadable(error) from error
        return Snapshot(base.seq, base.at_ms, base.rules, policy, self._pictures(base))

    def _pictures(self, base: Base) -> Iterator[tuple[str, bytes]]:
        """Yield the newest picture of each chat, of those that belong to the snapshot."""
        newest: tuple[bytes, bytes, int] | None = None
        for chat, data, crc in self._rows(
            "SELECT chat, data, crc FROM pictures WHERE seq BETWEEN ? AND ? ORDER BY chat, seq", base.whole, base.seq
        ):
            self._typed((chat, data, crc), bytes, bytes, int)
            if newest is not None and newest[0] != chat:
                yield from self._picture(*newest)
            newest = (chat, data, crc)
        if newest is not None:
            yield from self._picture(*newest)

    def _picture(self, chat: bytes, data: bytes, crc: int) -> Iterator[tuple[str, bytes]]:
        if codec.checksum(data) != crc:
            raise JournalError(f"{self.path}: the picture of a chat does not match its checksum; restore a copy")
        if data:
            yield chat.decode("utf-8", "surrogatepass"), data

    def _rows(self, sql: str, *values: int) -> Iterator[Any]:
        """Yield rows; a page may turn out to be damaged at any of them."""
        cursor = self.query(sql, *values)
        while True:
            try:
                row = cursor.fetchone()
            except UNREADABLE as error:
                raise self.unreadable(error) from error
            if row is None:
                return
            yield row

    def _typed(self, row: Any, *kinds: type) -> Any:  # noqa: ANN401 - a row of any table
        """Insist on the types of a row: where the file's schema is damaged, SQLite holds to none."""
        if any(not isinstance(value, kind) for value, kind in zip(row, kinds, strict=True)):
            raise JournalError(f"{self.path}: a row holds values of other types; restore a copy")
        return row

    def frames(self, after_seq: int) -> Iterator[bytes]:
        """Yield the frames behind a place, oldest first; a damaged end is cut off at the last whole frame, and told.

        Raises:
            JournalError: a frame that is not at the end is damaged.

        """
        while (row := self._frame_after(after_seq)) is not None:
            last_seq, frame = row
            try:
                codec.payload_of(frame)
            except SchemaTooNew as error:
                raise SchemaTooNew(f"{self.path}: {error}") from error
            except DecodeError as error:
                self._cut_from(last_seq, error)
                return
            yield frame
            after_seq = last_seq

    def _frame_after(self, seq: int) -> tuple[int, bytes] | None:
        found = "SELECT last_seq, data FROM frames WHERE last_seq > ? ORDER BY last_seq LIMIT 1"
        row = next(self._rows(found, seq), None)
        return None if row is None else self._typed(row, int, bytes)

    def _cut_from(self, last_seq: int, error: DecodeError) -> None:
        later, self.cut = last_seq, 1
        while (row := self._frame_after(later)) is not None:
            later, frame = row
            self.cut += 1
            if _is_whole(frame):
                raise JournalError(
                    f"{self.path}: frame {last_seq} is damaged and others follow it ({error}); restore a copy"
                ) from error
        if self._makes:
            self.query("DELETE FROM frames WHERE last_seq >= ?", last_seq)
            log.error("journal cut at its last whole frame", extra={"path": str(self.path), "frames_cut": self.cut})


def _is_whole(frame: bytes) -> bool:
    try:
        decode_frame(frame)
    except DecodeError:
        return False
    return True


def cause_of(error: BaseException) -> str:
    """Write what went wrong."""
    return f"{type(error).__name__}: {error}"
