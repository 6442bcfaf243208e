"""What the engine remembers: records of what was sequenced, and the port they go through.

A record holds one body, what became of it, and a digest of the commands it led to. Replaying the records
through the same rules gives the same states and commands; a digest that differs is told, never emitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.config import Policy
from turnkeeper.engine.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "RULES",
    "Body",
    "DoneBody",
    "DueBody",
    "HandedBody",
    "Journal",
    "MemoryJournal",
    "Record",
    "RecoveredBody",
    "decode_frame",
    "encode_frame",
]

RULES = 1
"""Grows whenever a rule decides otherwise for the same record."""


class DueBody(msgspec.Struct, frozen=True, gc=False):
    """A deadline of an owner came."""

    chat: str
    owner: str
    """`chat`, `turn:<id>` or `channel:<ref>`."""


class HandedBody(msgspec.Struct, frozen=True, gc=False):
    """A command is about to be handed to the host."""

    id: str
    delivery: str
    attempt: int


class DoneBody(msgspec.Struct, frozen=True, gc=False):
    """`perform` returned for a command without settlement."""

    id: str


class RecoveredBody(msgspec.Struct, frozen=True, gc=False):
    """The process restarted."""

    down_ms: int


class Body(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Exactly one of these."""

    event: Event | None = None
    due: DueBody | None = None
    handed: HandedBody | None = None
    done: DoneBody | None = None
    configured: Policy | None = None
    recovered: RecoveredBody | None = None


class Record(msgspec.Struct, frozen=True, gc=False):
    """One entry of the journal."""

    seq: int
    at_ms: int
    rules: int
    body: Body
    outcome: Literal["ok", "set_aside"]
    digest: int
    """crc32 of the commands, as written on the wire."""


def encode_frame(records: Sequence[Record]) -> bytes:
    """Write records, at least one, as one frame."""
    last = records[-1]
    return codec.frame_of([codec.encode(record) for record in records], last.seq, last.at_ms)


def decode_frame(frame: bytes) -> list[Record]:
    """Read a frame; raises what `codec.payload_of` and `codec.decode` raise."""
    return codec.decode(codec.payload_of(frame), list[Record])


class Snapshot(msgspec.Struct, frozen=True):
    """Where a replay may begin: the state after `seq`, as one picture a chat."""

    seq: int
    at_ms: int
    rules: int
    policy: Policy
    pictures: Iterable[tuple[str, bytes]]
    """(chat, picture), read or written one by one; an empty picture is of a chat that is no more."""
    whole: bool = True
    """Every chat is pictured; else those that are not keep the picture that they have."""


class Journal(Protocol):
    """Where frames of records are made durable, in order, and where snapshots bound the replay."""

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot, if there is one; called once, before `load`."""
        ...

    def load(self) -> Iterable[bytes]:
        """Yield every committed frame after the snapshot, oldest first; called once, before the first append.

        Each is whole by its checksum; what it holds is for the caller to read.
        """
        ...

    def append(self, frame: bytes, committed: Callable[[BaseException | None], None]) -> None:
        """Make a frame durable, then call `committed` once, with None or the error; never raises.

        Frames are committed in the order of their append. After an error every later frame fails too.
        """
        ...

    def keep(self, snapshot: Snapshot, kept: Callable[[BaseException | None], None]) -> None:
        """Replace the snapshot, all or nothing, after every frame appended before; then call `kept` once.

        The pictures are read on another thread, after this returned.
        """
        ...

    def close(self) -> None:
        """Commit what was appended and release the journal."""
        ...


class MemoryJournal:
    """A journal in memory: as durable as the process, and the only thing that survives a simulated crash."""

    def __init__(self, frames: Sequence[bytes] = (), snapshot: Snapshot | None = None) -> None:
        """Start from the bytes of an earlier journal."""
        self.frames: list[bytes] = list(frames)
        self.kept = snapshot

    def snapshot(self) -> Snapshot | None:
        """Return the snapshot that was kept last."""
        return self.kept

    def load(self) -> Iterable[bytes]:
        """Yield the frames after the snapshot."""
        return tuple(self.frames)

    def append(self, frame: bytes, committed: Callable[[BaseException | None], None]) -> None:
        """Keep the frame and say so at once."""
        self.frames.append(frame)
        committed(None)

    def keep(self, snapshot: Snapshot, kept: Callable[[BaseException | None], None]) -> None:
        """Keep the snapshot; the frames before it are not needed any more."""
        pictures = {} if snapshot.whole or self.kept is None else dict(self.kept.pictures)
        pictures.update(snapshot.pictures)
        left = tuple((chat, picture) for chat, picture in pictures.items() if picture)
        self.kept = msgspec.structs.replace(snapshot, pictures=left, whole=True)
        self.frames.clear()
        kept(None)

    def close(self) -> None:
        """Nothing to release."""
