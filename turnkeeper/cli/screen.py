"""What commands share: text that a terminal may show, JSON, and a bar for long work."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from pathlib import Path
from types import TracebackType
from typing import Self

import click

__all__ = ["FILE", "Bar", "print_json", "quoted", "safe", "width", "wrapped"]

FILE = click.Path(path_type=Path, allow_dash=True)
"""A file that a command reads itself, so that its error names file and line; `-` is standard input."""

WIDTH = 100
"""Columns where nobody says how many there are."""
WIDTH_MIN, WIDTH_MAX = 40, 140
BAR_FILES_MIN = 20
"""Fewer are done before a bar could be seen."""
BAR_CELLS = 30


def safe(text: str) -> str:
    """Take control characters out: recordings hold other people's text, and a terminal obeys some of them."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def quoted(text: str, most: int = 80) -> str:
    """Write a text in quotation marks on one line, shortened."""
    line = " ".join(text.split())
    return f'"{line if len(line) <= most else line[: most - 1] + "…"}"'


def print_json(value: object) -> None:
    """Print one JSON object on one line."""
    click.echo(json.dumps(value))


def width() -> int:
    """Return how many columns to write for."""
    return max(WIDTH_MIN, min(WIDTH_MAX, shutil.get_terminal_size((WIDTH, 24)).columns))


def wrapped(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """Break a text into lines of so many columns, indented by `first` and then `rest` (default: the same)."""
    return textwrap.wrap(
        safe(text).replace("\n", " "),
        max(columns, 20),
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_on_hyphens=False,
    ) or [first]


class Bar:
    """A bar over files on standard error, if that is a terminal and there are many; else nothing at all."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shows = total >= BAR_FILES_MIN and sys.stderr.isatty()

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Take the bar away, before something else is printed."""
        if self._shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        self._draw()

    def _draw(self) -> None:
        if self._shows:
            full = BAR_CELLS * self._done // self._total
            sys.stderr.write(f"\r[{'#' * full}{'-' * (BAR_CELLS - full)}] {self._done} of {self._total}")
            sys.stderr.flush()
