"""A journal written once more, in the schema of an older version (docs/ROLLBACK.md)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine import codec
from turnkeeper.engine.errors import JournalError

if TYPE_CHECKING:
    from pathlib import Path

    from turnkeeper.actors.history import History

__all__ = ["export_as"]

FOREVER_DAYS = 1_000_000
ROUND = 1000
"""Frames that wait for their commit, at most."""


class Told:
    """Waits for what a journal tells."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(ROUND)
        self._kept = threading.Event()
        self.error: BaseException | None = None

    def room(self) -> None:
        """Wait until fewer frames wait."""
        self._free.acquire()

    def committed(self, error: BaseException | None) -> None:
        """A frame was committed."""
        self.error = self.error or error
        self._free.release()

    def kept(self, error: BaseException | None) -> None:
        """The snapshot was written."""
        self.error = self.error or error
        self._kept.set()

    def wait_kept(self) -> None:
        """Wait for the snapshot."""
        self._kept.wait()


def export_as(history: History, schema: int, out: Path) -> int:
    """Write the history and its snapshot into a new journal whose frames state `schema`; returns the frames.

    Raises:
        DecodeError: this version cannot write that schema.
        JournalError: the new file could not be written.

    """
    told, count = Told(), 0
    target = SqliteJournal(out, linger_ms=0, retain_days=FOREVER_DAYS)
    try:
        snapshot = history.snapshot()
        for frame in history.frames():
            if snapshot is not None and codec.end_of(frame)[0] > snapshot.seq:
                target.keep(snapshot, told.kept)
                told.wait_kept()
                snapshot = None
            told.room()
            target.append(codec.frame_as(frame, schema), told.committed)
            count += 1
        if snapshot is not None:
            target.keep(snapshot, told.kept)
            told.wait_kept()
    finally:
        target.close()
    if told.error is not None:
        raise told.error if isinstance(told.error, JournalError) else JournalError(f"{out}: {told.error}")
    return count
