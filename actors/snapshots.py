"""Snapshots of a running cell: captured between two events, written by the journal on its own thread.

States never change, so capturing is collecting references; encoding them is left to whoever reads the
pictures. A `MemoryJournal` gets none unless it is asked for: it is for tests, and its frames are the history.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from turnkeeper.actors.clock import ticks_ns
from turnkeeper.actors.log import log
from turnkeeper.engine.journal import RULES, Journal, MemoryJournal, Snapshot
from turnkeeper.engine.protocol import At
from turnkeeper.engine.snapshot import Still, load_pictures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turnkeeper.actors.sequencer import Entry
    from turnkeeper.engine.cell import Cell

__all__ = ["Forgetful", "Snapshots", "begin_from"]


class Snapshots:
    """Bounds the replay: a snapshot every `journal.snapshot_every_events`, and at the end. Shard's thread only.

    The first of a journal pictures every chat; those that follow only the chats that were touched since. While one is being
    written no other is begun, so that a disk that is slower than the events costs replay, not memory.
    """

    def __init__(self, journal: Journal, every: int) -> None:
        self.every = every
        self.pause_ns = 0
        """How long the longest capture held the shard's thread."""
        self._journal = journal
        self._wanted = not isinstance(journal, MemoryJournal | Forgetful)
        self._since = 0
        self._touched: set[str] | None = None
        """None: any chat may have been."""
        self._writing = False
        self._failed = False

    def restarted(self, cell: Cell, replayed: set[str]) -> None:
        """The journal's snapshot was loaded, and records of these chats were replayed; a restart follows."""
        self._touched = {chat for chat in replayed if chat} | {address.chat for address in cell.owners}

    def ran(self, entries: Iterable[Entry], cell: Cell, seq: int) -> None:
        """These were run and appended; take a snapshot if it is time."""
        if not self._wanted:
            return
        for entry in entries:
            self._since += 1
            if self._touched is None:
                continue
            if entry.body.configured is not None:
                self._touched.update(address.chat for address in cell.owners)  # another policy moves deadlines
            elif entry.chat:
                self._touched.add(entry.chat)
        if self._since >= self.every and not self._writing:
            self.take(cell, seq)

    def ended(self, cell: Cell, seq: int) -> None:
        """Everything was run and appended; nothing follows."""
        if self._wanted and self._since:
            self.take(cell, seq)

    def take(self, cell: Cell, seq: int, kept: Callable[[BaseException | None], None] | None = None) -> None:
        """Capture the cell as it is after `seq`."""
        began_ns = ticks_ns()
        touched = None if self._failed else self._touched
        still = Still(cell, touched)
        self._since, self._touched, self._failed, self._writing = 0, set(), False, True
        snapshot = Snapshot(seq, cell.at.now_ms, RULES, cell.at.policy, still.pictures(), whole=touched is None)
        self._journal.keep(snapshot, partial(self._kept, kept))
        self.pause_ns = max(self.pause_ns, ticks_ns() - began_ns)

    def _kept(self, kept: Callable[[BaseException | None], None] | None, error: BaseException | None) -> None:
        """The journal wrote it, or could not; on any thread."""
        if error is not None:
            self._failed = True
            log.error("a snapshot failed; the one before it stands", extra={"error": type(error).__name__})
        self._writing = False
        if kept is not None:
            kept(error)


def begin_from(cell: Cell, journal: Journal) -> Snapshot | None:
    """Take the journal's snapshot into an empty cell, if there is one.

    Raises:
        DecodeError: a picture is damaged.

    """
    snapshot = journal.snapshot()
    if snapshot is not None:
        cell.at = At(snapshot.at_ms, snapshot.policy)
        load_pictures(cell, (data for _, data in snapshot.pictures))
    return snapshot


class Forgetful:
    """The journal of an engine that was given none: nobody could ever read it, so it keeps nothing."""

    def snapshot(self) -> Snapshot | None:
        """There is none."""
        return None

    def load(self) -> tuple[bytes, ...]:
        """Return nothing: the first start is the only one."""
        return ()

    def append(self, frame: bytes, committed: Callable[[BaseException | None], None]) -> None:
        """Say at once that it is committed."""
        committed(None)

    def keep(self, snapshot: Snapshot, kept: Callable[[BaseException | None], None]) -> None:
        """Keep nothing."""
        kept(None)

    def close(self) -> None:
        """Nothing to release."""
