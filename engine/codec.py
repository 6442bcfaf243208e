"""The wire and the journal: msgpack of the vocabulary, typed on the way in, with a schema version.

msgspec gives the types, checks them, and writes and reads the bytes; what it refuses goes through msgpack, which
carries half a surrogate pair and says what is wrong with damaged bytes. Each writes what the other reads. A frame is
what is committed at once: a marker, the schema version, a crc32 of the payload, and the payload, an array of records.
"""

from __future__ import annotations

import difflib
import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

import msgpack
import msgspec

from turnkeeper.engine.commands import Command
from turnkeeper.engine.errors import DecodeError, SchemaTooNew
from turnkeeper.engine.events import PLACES, Event
from turnkeeper.engine.ids import ChannelRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "SCHEMA",
    "checksum",
    "decode",
    "digest",
    "encode",
    "end_of",
    "event_from",
    "frame_as",
    "frame_of",
    "payload_of",
]

SCHEMA = 1
"""Grows when older readers could misread a frame; fields that are only added do not."""
MARK = b"TK"
HEAD = struct.Struct(">2sHIqq")
"""Marker, schema version, crc32 of the payload, seq and time of the last record."""
DOWN: dict[int, Callable[[bytes], bytes]] = {}
"""For each schema above 1, how its payload is written for the version before; additive fields need nothing."""
T = TypeVar("T")
_write = msgspec.msgpack.Encoder().encode


def encode(value: object) -> bytes:
    """Write a message, state or record as msgpack."""
    try:
        return _write(value)
    except Exception:  # noqa: BLE001 - half a surrogate pair; what nobody can write is told by the slower one
        return _write_any(value)


def _write_any(value: object) -> bytes:
    plain = msgspec.to_builtins(value)
    packer: Any = msgpack.Packer(use_bin_type=True, unicode_errors="surrogatepass")
    packed: bytes = packer.pack(plain)
    return packed


def _unpack(data: bytes) -> object:
    try:
        return msgpack.unpackb(data, strict_map_key=True, unicode_errors="surrogatepass")
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise DecodeError(
            f"{len(data)} bytes are no msgpack ({type(error).__name__}); the data is cut or damaged"
        ) from error


def decode(data: bytes, kind: type[T]) -> T:
    """Read what `encode` wrote, as the given type.

    Raises:
        DecodeError: the bytes are no msgpack, or a field has another type; the text names the field's path.

    """
    try:
        found: T = _reader(kind)(data)  # type: ignore[arg-type]  # a type is hashable
        return found
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_any(data, kind)


@cache
def _reader(kind: Any) -> Callable[[bytes], Any]:  # noqa: ANN401 - a type, or a union of types
    """Return the fast reader of a type; it is made once."""
    read: Callable[[bytes], Any] = msgspec.msgpack.Decoder(kind).decode
    return read


def _read_any(data: bytes, kind: type[T]) -> T:
    """Read slowly: half a surrogate pair is carried, and what cannot be read is named."""
    try:
        return msgspec.convert(_unpack(data), type=kind)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        raise DecodeError(f"{error}") from error


def digest(commands: Sequence[Command]) -> int:
    """Return the crc32 of commands as written on the wire; 0 for none."""
    return crc32(b"".join(map(encode, commands)))


def checksum(data: bytes) -> int:
    """Return the crc32 of bytes."""
    return crc32(data)


def frame_of(records: Sequence[bytes], last_seq: int, at_ms: int) -> bytes:
    """Join encoded records into one frame; the last one's place and time stand in its head."""
    packer: Any = msgpack.Packer()
    payload: bytes = packer.pack_array_header(len(records)) + b"".join(records)
    head: bytes = HEAD.pack(MARK, SCHEMA, crc32(payload), last_seq, at_ms)
    return head + payload


def end_of(frame: bytes) -> tuple[int, int]:
    """Return (seq, at_ms) of a frame's last record, from its head alone."""
    _, _, _, last_seq, at_ms = _head(frame)
    return last_seq, at_ms


def _head(frame: bytes) -> tuple[bytes, int, int, int, int]:
    try:
        mark, schema, crc, last_seq, at_ms = HEAD.unpack_from(frame)
    except struct.error as error:
        raise DecodeError(f"a frame of {len(frame)} bytes is cut; at least {HEAD.size} are needed") from error
    return mark, schema, crc, last_seq, at_ms


def payload_of(frame: bytes) -> bytes:
    """Return the payload of a frame, an array of records.

    Raises:
        SchemaTooNew: a newer version wrote it.
        DecodeError: it is cut, damaged, or no frame.

    """
    mark, schema, crc, _, _ = _head(frame)
    if mark != MARK:
        raise DecodeError(f"{mark!r} begins no frame; expected {MARK!r}")
    if schema > SCHEMA:
        raise SchemaTooNew(
            f"the frame has schema {schema}, this version reads up to {SCHEMA}; export it with the newer version"
        )
    payload = frame[HEAD.size :]
    if crc32(payload) != crc:
        raise DecodeError(f"a frame of {len(payload)} bytes does not match its checksum; it is damaged")
    return payload


def frame_as(frame: bytes, schema: int) -> bytes:
    """Write a frame once more as an older version reads it: its payload taken down one schema after the other.

    Raises:
        DecodeError: there is no way to that schema.

    """
    mark, found, _, last_seq, at_ms = _head(frame)
    payload = payload_of(frame)
    while found > schema:
        down = DOWN.get(found)
        if down is None:
            raise DecodeError(f"schema {found} cannot be written as schema {schema}; there is no way down from {found}")
        payload, found = down(payload), found - 1
    return HEAD.pack(mark, found, crc32(payload), last_seq, at_ms) + payload


def event_from(raw: Mapping[str, object]) -> Event:
    """Read an event from a mapping, strictly: unknown fields are errors, with the nearest known name.

    Raises:
        DecodeError: the type or a field is unknown, missing, or of another type.

    """
    tag = raw.get("type")
    kind = EVENT_TYPES.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise DecodeError(f"{tag!r} is no event; {_nearest(str(tag), EVENT_TYPES)}")
    for name in raw:
        if name != "type" and name not in kind.__struct_fields__:
            raise DecodeError(f"{tag}.{name} is no field; {_nearest(name, dict.fromkeys(kind.__struct_fields__))}")
    for place in PLACES & raw.keys():
        _check_place(f"{tag}.{place}", raw[place])
    try:
        event: Event = msgspec.convert(raw, type=kind)
        return event
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: half a surrogate pair in a fixed word
        raise DecodeError(f"{tag}: {error}") from error


def _check_place(where: str, value: object) -> None:
    """A channel written as a map has the fields of a channel, and no others."""
    known = dict.fromkeys(ChannelRef.__struct_fields__)
    for name in value if isinstance(value, dict) else ():
        if name not in known:
            raise DecodeError(f"{where}.{name} is no field; {_nearest(str(name), known)}")


def _nearest(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


EVENT_TYPES: dict[str, Any] = {kind.__struct_config__.tag: kind for kind in Event.__args__}
