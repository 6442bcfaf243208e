"""Reading JSON Lines: numbered objects, and errors that name file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.transcript.lines import depth_of

__all__ = ["FILE_MAX_BYTES", "Line", "bytes_of", "lines_of", "parsed"]

LINE_MAX_BYTES = 16 << 20
FILE_MAX_BYTES = 256 << 20
"""A scenario file is not read further: nobody writes a longer one, and a fuzzer would."""
DEPTH_MAX = 64
"""Nesting of one line; what a scenario says stays below 10, and nothing that reads it has to fear for its stack."""
Line = tuple[int, dict[str, Any]]
"""Line number, and the object that stands there."""


def bytes_of(file: str | Path) -> bytes:
    """Read a file.

    Raises:
        DecodeError: it cannot be read; the text names the file.

    """
    try:
        with Path(file).open("rb") as opened:
            return opened.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        raise DecodeError(f"{file}: cannot be read ({error.strerror}); give the path of a JSON Lines file") from error


def lines_of(file: str | Path) -> list[Line]:
    """Read a JSON Lines file; raises as `bytes_of` and `parsed`."""
    return parsed(bytes_of(file), str(file))


def parsed(data: bytes, name: str) -> list[Line]:
    """Read JSON Lines that came from anywhere; blank lines are left out.

    Raises:
        DecodeError: it is no text, or a line is no JSON object; the text gives `name` and line.

    """
    if len(data) > FILE_MAX_BYTES:
        raise DecodeError(f"{name}: is larger than {FILE_MAX_BYTES} bytes; cut the recording into parts")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"{name}: is no UTF-8 text ({error.reason} at byte {error.start})") from error
    found = [
        (number, _object(line, f"{name}:{number}"))
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if not found:
        raise DecodeError(f'{name}: is empty; the first line is a header, {{"scenario": "…"}}')
    return found


def _object(line: str, where: str) -> dict[str, Any]:
    if len(line) > LINE_MAX_BYTES:
        raise DecodeError(f"{where}: the line is longer than {LINE_MAX_BYTES} bytes")
    if line.count("{") + line.count("[") > DEPTH_MAX and depth_of(line.encode()) > DEPTH_MAX:
        raise DecodeError(f"{where}: nested deeper than {DEPTH_MAX} levels")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{where}: is no JSON ({error}); one object a line") from error
    if not isinstance(value, dict) or not value:
        raise DecodeError(f"{where}: expected a JSON object with at least one key")
    return value
