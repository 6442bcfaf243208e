"""Inputs that ask for much: depth, lengths that lie, numbers that are long, lines and files that are large."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["BOMBS"]

HEADER = b'{"scenario": "s"}\n'
SESSION = b'{"type":"session","version":3,"id":"s1"}\n'
DEEP = 200_000
MIB = 1 << 20


def _nested_msgpack() -> bytes:
    return b"\x82\xa4type\xa5reply\xb1consumed_turn_ids" + b"\x91" * DEEP + b"\xc0"


def _lying_lengths() -> bytes:
    return b"\x91" + b"\xdd\xff\xff\xff\xff" * 400


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "msgpack nested deep": ("wire", _nested_msgpack),
    "msgpack lengths that lie": ("wire", _lying_lengths),
    "msgpack map of a length that lies": ("wire", lambda: b"\xdf\xff\xff\xff\xff" * 400),
    "msgpack text of a length that lies": ("wire", lambda: b"\x81\xdb\xff\xff\xff\xff"),
    "a journal of nothing": ("journal", lambda: b"\x00" * (8 * MIB)),
    "TOML nested deep": ("config", lambda: b"a = " + _nested(DEEP)),
    "TOML of many keys": ("config", lambda: b"".join(b"a%d.b = 1\n" % n for n in range(20_000))),
    "TOML with a long number": ("config", lambda: b"a = " + b"9" * 200_000),
    "TOML that is large": ("config", lambda: b"#" * (64 * MIB)),
    "a step nested deep": ("scenario", lambda: HEADER + b'{"reply": ' + _nested(DEEP) + b"}\n"),
    "a step nested as deep as is read": ("scenario", lambda: HEADER + b'{"reply": {"text": ' + _nested(62) + b"}}\n"),
    "a step nested a little deeper": ("scenario", lambda: HEADER + b'{"reply": {"text": ' + _nested(900) + b"}}\n"),
    "a step with a long number": ("scenario", lambda: HEADER + b'{"advance": ' + b"9" * 200_000 + b"}\n"),
    "a long line": ("scenario", lambda: HEADER + b'{"#": "' + b"x" * (32 * MIB) + b'"}\n'),
    "many lines": ("scenario", lambda: HEADER + b'{"#": ""}\n' * 200_000),
    "many blank lines": ("scenario", lambda: HEADER + b"\n" * (16 * MIB)),
    "an entry nested deep": (
        "openclaw",
        lambda: SESSION + b'{"type":"message","id":"a","message":' + _nested(DEEP) + b"}\n",
    ),
    "an entry with a long number": ("openclaw", lambda: SESSION + b'{"id":"a","n":' + b"9" * 200_000 + b"}\n"),
    "many copies of one entry": ("openclaw", lambda: SESSION + b'{"type":"message","id":"a","message":{}}\n' * 20_000),
    "a packed session that lies": ("openclaw", lambda: b"\xdd\xff\xff\xff\xff"),
}
"""By name: the decoder, and what makes the bytes."""
