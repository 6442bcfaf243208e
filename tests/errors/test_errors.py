"""docs/ERRORS.md: every row is raised for real, and says what, where, what was found, and what to do."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import turnkeeper
from tests.errors import posting, reading, running
from turnkeeper import EngineError, Misuse, errors

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ERRORS.md").read_text(encoding="utf-8")
assert posting.__name__ != reading.__name__  # imported for what it registers


class Said(NamedTuple):
    """A row of the tables."""

    error: str
    when: str
    text: str


def rows() -> list[Said]:
    found = []
    for line in PAGE.splitlines():
        cells = re.split(r" \| ", line.strip("| "))
        if len(cells) == 3 and re.fullmatch(r"`\w+`", cells[0]):
            found.append(Said(cells[0].strip("`"), cells[1], cells[2]))
    return found


ROWS = rows()


def pattern(text: str) -> str:
    """Turn a text of the page into an expression: marks of bold and slanted gone, `{…}` is anything."""
    plain = re.sub(r"\*", "", text)
    return "".join(".+?" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{[^}]*\})", plain))


def test_every_row_is_raised_and_every_raiser_has_a_row() -> None:
    assert sorted(row.when for row in ROWS) == sorted(running.RAISERS)


@pytest.mark.parametrize("row", ROWS, ids=[row.when for row in ROWS])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_row_is_what_happens(row: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raiser = running.RAISERS[row.when]
    kind = TimeoutError if row.error == "TimeoutError" else getattr(turnkeeper, row.error)
    with pytest.raises(kind) as caught:  # noqa: PT012 - one call, in one of two ways
        if inspect.iscoroutinefunction(raiser):
            await raiser(tmp_path, monkeypatch)
        else:  # in a thread without a loop, as a plain host would
            await asyncio.to_thread(raiser, tmp_path, monkeypatch)
    assert type(caught.value) is kind
    said = str(caught.value)
    assert re.fullmatch(pattern(row.text), said, re.DOTALL), f"{said!r} is not {row.text!r}"
    assert len(said) < 1_000


@pytest.mark.parametrize("row", ROWS, ids=[row.when for row in ROWS])
def test_a_text_says_what_was_found_and_what_to_do(row: Said) -> None:
    assert len(re.findall(r"\*\*", row.text)) >= 2
    if row.error != "InvariantViolated":
        assert len(re.findall(r"(?<!\*)\*(?!\*)", row.text)) >= 2


def test_every_class_is_in_the_first_table_with_its_base_and_is_raised() -> None:
    first = PAGE.partition("\n## ")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| `(\w+)`", first, re.MULTILINE))
    tree = {name: getattr(errors, name) for name in errors.__all__} | {"Misuse": Misuse}
    del tree["EngineError"]
    assert listed == {name: kind.__bases__[0].__name__ for name, kind in tree.items()}
    assert {row.error for row in ROWS} == {*tree, "TimeoutError"}
    assert all(issubclass(kind, EngineError) for kind in tree.values())
