"""OpenClaw's files: session transcripts, JSON lines of version 3, and trajectories (RULES-transcript 1).

A session file is a header and a tree of entries. A line that cannot be read is reported with its number and
skipped; the lines around it are untouched (R36), and what is written is value for value what was read (R3).
A trajectory is a recording of runs; its `prompt.submitted` events hold the messages that really went to the
model. It bounds what it records: more than 64 messages, or long texts, stand there as a note of their size.

Nothing here opens a file: lines come in and go out as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.transcript.entries import Entry, Row, Utterance, Voice, message_of, read_entry
from turnkeeper.engine.transcript.faults import MergeConflict
from turnkeeper.engine.transcript.lines import Fields, dumps, loads, pack, unpack
from turnkeeper.engine.transcript.shelf import Shelf, session_header
from turnkeeper.engine.transcript.store import Store

__all__ = [
    "Damaged",
    "Prompt",
    "SessionFile",
    "is_trajectory",
    "pack_session",
    "read_prompts",
    "read_session",
    "unpack_session",
    "write_session",
]

TRACE_SCHEMA = "openclaw-trajectory"
SUBMITTED = "prompt.submitted"
VERSIONS = (1, 2, 3)


class Damaged(msgspec.Struct, frozen=True, gc=False):
    """A line that was skipped, or that says something we cannot follow."""

    line: int
    why: str


class SessionFile(msgspec.Struct, frozen=True):
    """A session as a store, and what of its file could not be read."""

    store: Store
    damaged: list[Damaged]


class Prompt(msgspec.Struct, frozen=True, gc=False):
    """The messages of one `prompt.submitted` event."""

    line: int
    messages: list[Entry]
    recorded: bool
    """False: the recording has no messages of this prompt, or cut them."""


def read_session(lines: Iterable[bytes]) -> SessionFile:
    """Read a session file; never fails on its content."""
    damaged: list[Damaged] = []
    shelf: Shelf | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            raw = _object(line)
            if shelf is None:
                shelf = _begin(raw, number, damaged)
                if raw.get("type") == "session":
                    continue
            if raw.get("type") == "session":
                raise DecodeError("a second session header")
            shelf.add(raw)
        except (DecodeError, MergeConflict) as error:
            damaged.append(Damaged(number, str(error)))
    shelf = shelf or Shelf(session_header(""))
    shelf.end_history()
    lost = [
        f"leaf entry {ident!r} names an entry that is not there; the leaf stays" for ident in shelf.tree.leaf_errors
    ]
    return SessionFile(Store.of(shelf), damaged + [Damaged(0, why) for why in lost])


def _begin(first: Fields, number: int, damaged: list[Damaged]) -> Shelf:
    """Begin with the header; a file without one is read as a session without a name."""
    if first.get("type") != "session":
        damaged.append(Damaged(number, 'no session header; expected {"type": "session", …} first'))
        return Shelf(session_header(""))
    version = first.get("version", 1)
    if version not in VERSIONS:
        damaged.append(Damaged(number, f"version {version!r}; written by a newer program, read as version 3"))
    return Shelf(first)


def _object(line: bytes) -> Fields:
    value = loads(line)
    if not isinstance(value, dict):
        raise DecodeError(f"a line is a JSON object; found {type(value).__name__}")
    return value


def write_session(store: Store) -> Iterator[bytes]:
    """Yield the lines of a session file, each with its line feed."""
    for fields in (store.header, *store.export()):
        yield dumps(fields) + b"\n"


def pack_session(store: Store) -> bytes:
    """Write a session as msgpack: its header and its entries, each packed for itself."""
    return msgspec.msgpack.encode([pack(fields) for fields in (store.header, *store.export())])


def unpack_session(data: bytes) -> Store:
    """Read what `pack_session` wrote.

    Raises:
        DecodeError: it is something else.
        MergeConflict: two entries contradict each other.

    """
    try:
        packed = msgspec.msgpack.decode(data, type=list[bytes])
    except msgspec.DecodeError as error:
        raise DecodeError(f"no packed session: {error}") from None
    values = [unpack(one) for one in packed]
    fields = [value for value in values if isinstance(value, dict)]
    if not fields or len(fields) != len(values):
        raise DecodeError("no packed session: expected a header and entries")
    return Store.load(fields[0], fields[1:])


def is_trajectory(line: bytes) -> bool:
    """Tell from a file's first line whether it is a trajectory."""
    try:
        first = _object(line)
    except DecodeError:
        return False
    return first.get("traceSchema") == TRACE_SCHEMA or first.get("type") == SUBMITTED


def read_prompts(lines: Iterable[bytes], damaged: list[Damaged]) -> Iterator[Prompt]:
    """Yield the prompts of a trajectory; lines that cannot be read are added to `damaged`."""
    for number, line in enumerate(lines, start=1):
        if SUBMITTED.encode() not in line:
            if line.strip() and not _readable(line):
                damaged.append(Damaged(number, "not readable as JSON"))
            continue
        try:
            event = _object(line)
        except DecodeError as error:
            damaged.append(Damaged(number, str(error)))
            continue
        if event.get("type") == SUBMITTED:
            yield _prompt(number, event)


def _readable(line: bytes) -> bool:
    try:
        loads(line)
    except DecodeError:
        return False
    return True


def _prompt(number: int, event: Fields) -> Prompt:
    data = event.get("data")
    messages = data.get("messages") if isinstance(data, dict) else None
    if not isinstance(messages, list):
        return Prompt(number, [], recorded=False)
    entries = [_submitted(f"m{position}", message) for position, message in enumerate(messages, start=1)]
    whole = not any(isinstance(entry, Row) for entry in entries)
    return Prompt(number, entries, recorded=whole)


def _submitted(ident: str, message: object) -> Entry:
    """Read one message of a recorded prompt; what is no message, or was cut, takes part in nothing."""
    if not isinstance(message, dict):
        return Row(ident, {})
    raw: Fields = {"type": "message", "id": ident, "message": message}
    try:
        entry = read_entry(raw)
    except DecodeError:
        return Row(ident, raw)
    if _is_cut(message_of(raw).get("content")):
        return Utterance(ident, Voice.OTHER, raw)
    return entry


def _is_cut(content: object) -> bool:
    """Tell whether the recording replaced a content, or a text in it, by a note of its size."""
    parts = content if isinstance(content, list) else [content]
    values = [value for part in parts if isinstance(part, dict) for value in (part, *part.values())]
    return any(isinstance(value, dict) and value.get("truncated") is True for value in values)
