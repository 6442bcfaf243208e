"""A journal's file as tools see it: what is in it, whether it replays to what was recorded, and its records.

Nothing here writes. A journal that an engine has open is refused, as a second engine would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import msgspec

from turnkeeper.actors.sqlite_file import SCHEMA, JournalFile
from turnkeeper.engine import codec
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.journal import RULES, Record, decode_frame
from turnkeeper.engine.protocol import At
from turnkeeper.engine.recovery import Replayed, replay
from turnkeeper.engine.snapshot import ChatPicture, load_pictures, pictures_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from turnkeeper.engine.journal import Snapshot

    Progress = Callable[[Replayed], None]

__all__ = ["History", "Info", "Verified"]

PICTURED = "SELECT COUNT(DISTINCT chat) FROM pictures WHERE seq BETWEEN ? AND ? AND length(data) > 0"


class Info(msgspec.Struct, frozen=True):
    """What stands in a journal, without replaying it."""

    path: str
    bytes: int
    schema: int
    rules: int
    """Of the newest record."""
    frames: int
    first_seq: int
    last_seq: int
    first_ms: int
    last_ms: int
    snapshot_seq: int | None
    """Where a restart begins; None: at the first record."""
    chats: int
    """Chats in the snapshot."""
    frames_to_replay: int
    whole: bool
    """The history reaches back to the first record."""


class Verified(msgspec.Struct):
    """What a replay of a journal found."""

    records: int = 0
    """Replayed and compared by their digests."""
    from_seq: int = 1
    """Records before it are not there any more, or stand in the snapshot alone."""
    differs: list[int] = []
    """Records that are decided otherwise now."""
    other_rules: int = 0
    """Records of another version of the rules."""
    chats: int = 0
    """Chats whose state in the snapshot was compared with the replayed one."""
    states_differ: list[str] = []
    """Chats whose states are not the same."""
    cut: int = 0
    """Damaged frames at the end, which a restart would cut off."""

    @property
    def ok(self) -> bool:
        """Say whether the replay is what was recorded."""
        return not (self.differs or self.states_differ)


class History:
    """One journal's file, held until `close`.

    Raises:
        Locked: an engine has it open.
        SchemaTooNew: a newer version wrote it.
        JournalError: it cannot be read, or is no journal.

    """

    def __init__(self, path: Path) -> None:
        self._file = JournalFile(path)
        base = self._file.base()
        self.base_seq = 0 if base is None else base.seq
        """Where the snapshot stands; 0: there is none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others open it."""
        self._file.release()

    def frames(self, after_seq: int = 0) -> Iterator[bytes]:
        """Yield the frames that are kept, oldest first."""
        return self._file.frames(after_seq)

    def records(self) -> Iterator[Record]:
        """Yield the records that are kept, oldest first."""
        for frame in self.frames():
            yield from decode_frame(frame)

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""
        return self._file.snapshot()

    def count(self) -> int:
        """Count the frames that are kept."""
        (count,) = self._file.query("SELECT COUNT(*) FROM frames").fetchone()
        return int(count)

    def info(self) -> Info:
        """Return what stands in it."""
        ask = self._file.query
        first = next(self.records(), None)
        ends = ask("SELECT last_seq, at_ms, data FROM frames ORDER BY last_seq DESC LIMIT 1").fetchone()
        last_seq, last_ms, data = (0, 0, None) if ends is None else ends
        base = self._file.base()
        seq = None if base is None else base.seq
        return Info(
            path=str(self._file.path),
            bytes=self._file.path.stat().st_size,
            schema=SCHEMA,
            rules=RULES if data is None else decode_frame(data)[-1].rules,
            frames=self.count(),
            first_seq=0 if first is None else first.seq,
            last_seq=max(last_seq, seq or 0),
            first_ms=0 if first is None else first.at_ms,
            last_ms=last_ms if base is None else max(last_ms, base.at_ms),
            snapshot_seq=seq,
            chats=0 if base is None else ask(PICTURED, base.whole, base.seq).fetchone()[0],
            frames_to_replay=ask("SELECT COUNT(*) FROM frames WHERE last_seq > ?", self.base_seq).fetchone()[0],
            whole=first is not None and first.seq == 1,
        )

    # ------------------------------------------------------------ verify

    def verify(self, progress: Progress | None = None) -> Verified:
        """Replay what is kept; compare each digest and, where the history is whole, the states of the snapshot.

        Raises:
            JournalError: a frame or a picture is damaged.
            DecodeError: a record cannot be read.

        """
        first = next(self.records(), None)
        whole = first is not None and first.seq == 1
        cell, done = Cell(), Verified(differs=[], states_differ=[])
        if whole and self.base_seq:
            self._replay(cell, done, self._until_base(), progress)
            self._compare(cell, done)
        elif self.base_seq:
            snapshot = self.snapshot()
            if snapshot is not None:
                cell.at = At(snapshot.at_ms, snapshot.policy)
                load_pictures(cell, (data for _, data in snapshot.pictures))
            done.from_seq = self.base_seq + 1
        self._replay(cell, done, self.frames(self.base_seq), progress)
        done.cut = self._file.cut
        return done

    def _replay(self, cell: Cell, done: Verified, frames: Iterator[bytes], progress: Progress | None) -> None:
        before = done.records

        def forward(found: Replayed) -> None:
            if progress is not None:
                progress(msgspec.structs.replace(found, records=before + found.records))

        found = replay(cell, _noting(frames, done), forward)
        done.records += found.records
        done.differs += [differs.seq for differs in found.differs]

    def _until_base(self) -> Iterator[bytes]:
        for frame in self.frames():
            if codec.end_of(frame)[0] > self.base_seq:
                return
            yield frame

    def _compare(self, cell: Cell, done: Verified) -> None:
        """Compare pictures of the replayed chats with those of the snapshot, one by one."""
        snapshot = self.snapshot()
        left = {address.chat for address in cell.owners} | set(cell.asleep)
        for chat, kept in () if snapshot is None else snapshot.pictures:
            done.chats += 1
            left.discard(chat)
            mine = next((picture for _, picture in pictures_of(cell, (chat,))), b"")
            if mine != kept and (not mine or _picture(mine) != _picture(kept)):
                done.states_differ.append(chat)
        done.states_differ += sorted(left)


def _picture(data: bytes) -> Any:  # noqa: ANN401 - compared field by field, whatever the order of a map
    return msgspec.to_builtins(codec.decode(data, ChatPicture))


def _noting(frames: Iterator[bytes], done: Verified) -> Iterator[bytes]:
    """Count the records of other rules on the way."""
    for frame in frames:
        done.other_rules += sum(record.rules != RULES for record in decode_frame(frame))
        yield frame
