"""JSON lines and msgpack of entries, without loss.

A transcript is written by other programs too, so a line is read as leniently as JSON allows and written back
value for value: big integers stay integers, and half a surrogate pair (a text that JavaScript cut in the
middle of an emoji) stays what it was. What JSON itself does not allow is a damaged line: it is reported and
skipped, never mended (RULES-transcript R36).
"""

from __future__ import annotations

import json
from typing import NoReturn, cast

import msgspec

from turnkeeper.engine.errors import DecodeError

__all__ = ["DEPTH_MAX", "Fields", "canonical", "depth_of", "dumps", "loads", "pack", "size_bytes", "unpack"]

Fields = dict[str, object]
"""A JSON object. Entries keep the one they were read from, unknown fields included."""

DEPTH_MAX = 128
"""Nesting of one line; real entries stay below 20, and no reader of ours has to fear its own stack."""

QUOTE, BACKSLASH = b'"\\'

JSON_TEXT = 1
"""Type code of the msgpack extension that carries what msgpack itself cannot: the value's JSON."""

_ENCODER = msgspec.json.Encoder()
_SORTED = msgspec.json.Encoder(order="sorted")


def loads(line: bytes) -> object:
    """Read one line.

    Raises:
        DecodeError: it is no JSON, not UTF-8, holds NaN or an infinity, or nests deeper than `DEPTH_MAX`.

    """
    if line.count(b"{") + line.count(b"[") > DEPTH_MAX and depth_of(line) > DEPTH_MAX:
        raise DecodeError(f"nested deeper than {DEPTH_MAX} levels")
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        # The second reader is slower and takes what the first refuses: half surrogate pairs.
        return _loads_leniently(line, str(error))


def _loads_leniently(line: bytes, first_error: str) -> object:
    try:
        value: object = json.loads(line, parse_constant=_refuse)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        raise DecodeError(first_error) from None
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def depth_of(line: bytes) -> int:
    """Measure the nesting of a line, strings left out."""
    depth = deepest = 0
    inside = escaped = False
    for byte in line:
        if inside:
            inside, escaped = escaped or byte != QUOTE, byte == BACKSLASH and not escaped
        elif byte == QUOTE:
            inside = True
        elif byte in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"}]":
            depth -= 1
    return deepest


def dumps(value: object) -> bytes:
    """Write one value as a line without its line feed; `loads` gives the same value back."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def canonical(value: object) -> bytes:
    """Write a value so that two are equal exactly when R21 E0 calls them equal.

    The order of a mapping's keys is ignored, an absent field equals null, lists keep their order, numbers
    compare by value; true is not 1.
    """
    normal = _normal(value)
    try:
        return _SORTED.encode(normal)
    except UnicodeEncodeError:
        return json.dumps(normal, separators=(",", ":"), sort_keys=True).encode()


def _normal(value: object) -> object:
    if isinstance(value, dict):
        return {key: _normal(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_normal(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def size_bytes(text: str) -> int:
    """Count a text's bytes in UTF-8; half a surrogate pair counts as the three bytes it would take."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def pack(value: object) -> bytes:
    """Write a value as msgpack; what msgpack cannot hold travels as JSON inside an extension."""
    try:
        return msgspec.msgpack.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return msgspec.msgpack.encode(msgspec.msgpack.Ext(JSON_TEXT, dumps(value)))


def unpack(data: bytes) -> object:
    """Read what `pack` wrote.

    Raises:
        DecodeError: the bytes are no msgpack, or an extension of another kind.

    """
    try:
        value = msgspec.msgpack.decode(data)
    except msgspec.DecodeError as error:
        raise DecodeError(f"no entry in msgpack: {error}") from None
    if not isinstance(value, msgspec.msgpack.Ext):
        return cast("object", value)
    if value.code != JSON_TEXT:
        raise DecodeError(f"a msgpack extension of type {value.code}; expected {JSON_TEXT}")
    return loads(bytes(value.data))
