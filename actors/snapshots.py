"""Snapshots of a running cell: captured between two events, written by the journal on its own thread.

States never change, so capturing is collecting references; encoding them is left to whoever reads the
pictures. A `MemoryJournal` gets none unless it is asked for: it is for tests, and its frames are the history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from turnkeeper.actors.log import log
from turnkeeper.engine.cell import Cell, Owner
from turnkeeper.engine.journal import RULES, Journal, MemoryJournal, Snapshot
from turnkeeper.engine.protocol import At
from turnkeeper.engine.snapshot import load_pictures, pictures_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.cell import OwnerLike
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.ids import Address

__all__ = ["Forgetful", "Snapshots", "begin_from"]


class Still:
    """A cell at one instant, as far as a picture needs it."""

    def __init__(self, cell: Cell) -> None:
        self.owners: dict[Address, OwnerLike] = {}
        for address, owner in cell.owners.items():
            still = self.owners[address] = Owner(address, owner.state, cell)
            still.due_ms = owner.due_ms
        self.pending: dict[str, Command] = dict(cell.pending)


class Snapshots:
    """Bounds the replay: a snapshot every `journal.snapshot_every_events`, and at the end. Shard's thread only."""

    def __init__(self, journal: Journal, every: int) -> None:
        self.every = every
        self._journal = journal
        self._wanted = not isinstance(journal, MemoryJournal | Forgetful)
        self._since = 0

    def ran(self, count: int, cell: Cell, seq: int) -> None:
        """So many events were run and appended; take a snapshot if it is time."""
        self._since += count
        if self._wanted and self._since >= self.every:
            self.take(cell, seq)

    def ended(self, cell: Cell, seq: int) -> None:
        """Everything was run and appended; nothing follows."""
        if self._wanted and self._since:
            self.take(cell, seq)

    def take(self, cell: Cell, seq: int, kept: Callable[[BaseException | None], None] | None = None) -> None:
        """Capture the cell as it is after `seq`."""
        self._since = 0
        pictures = pictures_of(cast(Cell, Still(cell)))
        snapshot = Snapshot(seq, cell.at.now_ms, RULES, cell.at.policy, pictures)
        self._journal.keep(snapshot, _told if kept is None else kept)


def _told(error: BaseException | None) -> None:
    if error is not None:
        log.error("a snapshot failed; the one before it stands", extra={"error": type(error).__name__})


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
