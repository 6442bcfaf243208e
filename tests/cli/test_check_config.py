"""`turnkeeper check-config`: what the engine would say of a file."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Turnkeeper
from turnkeeper.engine.config import example_toml


def test_the_example_can_be_used_and_changes_nothing(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(example_toml(), encoding="utf-8")
    done = turnkeeper("check-config", file)
    assert done.exit_code == 0
    assert done.output == f"{file}: can be used; no settings differ from the default\n"


def test_what_differs_is_listed(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[timers]\nquiet_ms = 2000\n[attribution]\nfold_proof = "off"\n', encoding="utf-8")
    done = turnkeeper("check-config", file)
    assert done.exit_code == 0
    assert "  timers.quiet_ms = 2000\n" in done.output
    assert "  attribution.fold_proof = 'off'\n" in done.output
    told = json.loads(turnkeeper("check-config", file, "--json").output)
    assert told == {
        "file": str(file),
        "ok": True,
        "error": None,
        "changed": {"attribution.fold_proof": "off", "timers.quiet_ms": 2000},
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[timers]\nquiet = 1\n", "quiet_ms"),
        ("[timers]\nquiet_ms = -1\n", "timers.quiet_ms is -1"),
        ("[timer]\n", "timers"),
        ("timers = 1\n", "timers"),
        ("[timers\n", "is no TOML"),
        (None, "cannot be read"),
    ],
)
def test_what_cannot_be_used(turnkeeper: Turnkeeper, tmp_path: Path, text: str | None, told: str) -> None:
    file = tmp_path / "config.toml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    done = turnkeeper("check-config", file)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"Error: {file}")
    assert told in done.stderr
    as_json = turnkeeper("check-config", file, "--json")
    assert as_json.exit_code == 1
    assert told in json.loads(as_json.output)["error"]
