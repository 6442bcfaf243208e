"""Reading JSON Lines: numbered objects, and errors that name file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from turnkeeper.engine.errors import DecodeError

__all__ = ["Line", "bytes_of", "lines_of", "parsed"]

LINE_MAX_BYTES = 16 << 20
Line = tuple[int, dict[str, Any]]
"""Line number, and the object that stands there."""


def bytes_of(file: str | Path) -> bytes:
    """Read a file.

    Raises:
        DecodeError: it cannot be read; the text names the file.

    """
    try:
        return Path(file).read_bytes()
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
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{where}: is no JSON ({error}); one object a line") from error
    if not isinstance(value, dict) or not value:
        raise DecodeError(f"{where}: expected a JSON object with at least one key")
    return value
