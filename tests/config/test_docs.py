"""docs/CONFIG.md says what the code says."""

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from turnkeeper.engine.config import Config, Limits, allowed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "CONFIG.md").read_text(encoding="utf-8")


def rows() -> list[str]:
    """Write the row of every setting: key, default, what is allowed, meaning."""
    written = []
    for section in msgspec.structs.fields(Config):
        for setting in msgspec.structs.fields(section.type):
            meta = get_args(setting.type)[-1]
            value = "absent" if setting.default is None else f"`{plain(setting.default)}`"
            may_be = allowed(setting.type, setting.name)
            written.append(f"| `{section.name}.{setting.name}` | {value} | {may_be} | {meta.description} |")
    return written


def plain(value: object) -> str:
    """Write a default as the file does."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{item:_}" for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else f"{value:_}"


@pytest.mark.parametrize("row", rows())
def test_every_setting_has_its_row(row: str) -> None:
    """A row that is missing here stands in the test's name, ready to be copied into the page."""
    assert row in PAGE.splitlines()


def test_no_row_is_left_over() -> None:
    keys = [line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    assert [key for key in keys if "." in key] == [row.split("`")[1] for row in rows()]


def test_every_bound_says_what_happens() -> None:
    """The second table under `[limits]` speaks of each limit."""
    table = PAGE.partition("| when it decides |")[2].partition("\n## ")[0]
    said = {word for line in table.splitlines() for word in line.split(" | ")[0].split("`")[1::2]}
    exempt = {"waiters", "dead_letters"}
    assert said == set(Limits.__struct_fields__) - exempt
