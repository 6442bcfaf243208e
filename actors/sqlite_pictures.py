"""Snapshots on their way into the journal's file: a slice at a time, between the commits of frames.

Theory of operation. The pictures of a snapshot are encoded and written a slice at a time, in the transactions
of the frames that are committed meanwhile, so that a commit waits for a slice and never for a snapshot. They
are of no account until `base` names their place, which is one small transaction. Then what the new snapshot
made superfluous is deleted, a slice at a time as well: older pictures, and frames older than `retain_days`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from turnkeeper.engine import codec

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from turnkeeper.engine.journal import Snapshot

__all__ = ["Arrival", "Arrivals"]

SLICE_PICTURES, SLICE_BYTES = 64, 256 * 1024
"""What is encoded and written between two commits, at most."""
SLICE_DELETED = 512
DAY_MS = 86_400_000
Row = tuple[bytes, int, bytes, int]


class Arrival:
    """A snapshot that is being written."""

    def __init__(self, snapshot: Snapshot, after: int, kept: Callable[[BaseException | None], None]) -> None:
        self.snapshot = snapshot
        self.after = after
        """It follows so many frames."""
        self.kept = kept
        self._pictures = iter(snapshot.pictures)
        self._written: deque[bytes] = deque()
        self.ended = False
        """Every picture was taken."""

    def slice(self) -> list[Row]:
        """Encode the next pictures."""
        rows: list[Row] = []
        size = 0
        while len(rows) < SLICE_PICTURES and size < SLICE_BYTES:
            picture = next(self._pictures, None)
            if picture is None:
                self.ended = True
                break
            chat, data = picture
            rows.append((chat.encode("utf-8", "surrogatepass"), self.snapshot.seq, data, codec.checksum(data)))
            size += len(data)
        return rows

    def write(self, db: sqlite3.Connection, rows: list[Row]) -> None:
        """Write a slice, inside a transaction; with the last one the snapshot counts."""
        if not self._written:
            db.execute("INSERT OR REPLACE INTO meta VALUES ('arriving', ?)", (self.snapshot.seq,))
        db.executemany("INSERT OR REPLACE INTO pictures VALUES (?, ?, ?, ?)", rows)
        self._written.extend(row[0] for row in rows)
        if self.ended:
            snapshot = self.snapshot
            values = (snapshot.seq, snapshot.at_ms, snapshot.rules, codec.encode(snapshot.policy), snapshot.seq)
            if snapshot.whole:
                db.execute("INSERT OR REPLACE INTO base VALUES (1, ?, ?, ?, ?, ?)", values)
            else:
                db.execute("UPDATE base SET seq = ?, at_ms = ?, rules = ?, policy = ?", values[:4])

    def tidy(self, db: sqlite3.Connection, retain_days: int) -> Iterator[None]:
        """Delete what this snapshot made superfluous, a slice at each step."""
        seq, oldest_ms = self.snapshot.seq, self.snapshot.at_ms - retain_days * DAY_MS
        while self._written:
            chats = [self._written.popleft() for _ in range(min(SLICE_DELETED, len(self._written)))]
            db.executemany("DELETE FROM pictures WHERE chat = ? AND seq < ?", ((chat, seq) for chat in chats))
            yield
        if self.snapshot.whole:
            db.execute("DELETE FROM pictures WHERE seq < ?", (seq,))
            yield
        while (last := _last_of_old(db, seq, oldest_ms)) is not None:
            db.execute("DELETE FROM frames WHERE last_seq <= ?", (last,))
            yield


def _last_of_old(db: sqlite3.Connection, seq: int, oldest_ms: int) -> int | None:
    """Find how far history may be deleted in one step; None: nothing is too old."""
    last = None
    found = "SELECT last_seq, at_ms FROM frames WHERE last_seq <= ? ORDER BY last_seq LIMIT ?"
    for last_seq, at_ms in db.execute(found, (seq, SLICE_DELETED)):
        if at_ms >= oldest_ms:
            break
        last = last_seq
    return last


class Arrivals:
    """The snapshots that wait for their turn, and the one that is being written. The journal's thread only."""

    def __init__(self, db: sqlite3.Connection, retain_days: int) -> None:
        self._db = db
        self._retain_days = retain_days
        self._queue: deque[Arrival] = deque()
        self._tidying: Iterator[None] | None = None
        self._broken: BaseException | None = None
        """A snapshot failed: what is pictured only in it is missing until the next whole one."""

    def forget_unfinished(self, base_seq: int) -> None:
        """Drop the pictures of a snapshot that a crash cut short; at the start."""
        arriving = self._db.execute("SELECT value FROM meta WHERE name = 'arriving'").fetchone()
        if arriving is not None and arriving[0] > base_seq:
            self._db.execute("DELETE FROM pictures WHERE seq > ?", (base_seq,))

    def put(self, arrival: Arrival) -> None:
        """Let a snapshot wait for the frames before it."""
        if arrival.snapshot.whole:
            self._broken = None
        if self._broken is None:
            self._queue.append(arrival)
        else:
            arrival.kept(self._broken)

    def busy(self, written: int) -> bool:
        """Say whether there is something to do, now that so many frames are written."""
        return self._tidying is not None or bool(self._queue and self._queue[0].after <= written)

    def current(self, written: int) -> Arrival | None:
        """Return the snapshot to write a slice of."""
        if self._tidying is None and self._queue and self._queue[0].after <= written:
            return self._queue[0]
        return None

    def done(self, arrival: Arrival) -> None:
        """It counts: tidy up after it."""
        self._queue.popleft()
        self._tidying = arrival.tidy(self._db, self._retain_days)
        arrival.kept(None)

    def failed(self, error: BaseException) -> None:
        """The first of the queue cannot be written, nor what builds on it; the snapshot before it stands."""
        self._broken = error
        waiting, self._queue = self._queue, deque()
        waiting.popleft().kept(error)
        for arrival in waiting:
            self.put(arrival)

    def tidy(self) -> None:
        """Delete a slice, in a transaction of its own."""
        tidying, self._tidying = self._tidying, None
        if tidying is None:
            return
        if next(tidying, self) is self:
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        else:
            self._tidying = tidying
