"""A crash in the middle of a step: what only that shows is found, shrunk, written, and shown again by the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.mutants.planting import patched
from turnkeeper.cli import main
from turnkeeper.engine.commands import Command, TurnSettled
from turnkeeper.engine.confirmations import Confirmations

RUNTIMES = ("cell", "actors", "sqlite")


@contextmanager
def terminals_are_told_once() -> Iterator[None]:
    """Plant a bug: the end of a turn that a crash kept back is not told again."""
    expect = Confirmations.expect

    def forgetful(self: Confirmations, command: Command) -> Any:
        return None if isinstance(command, TurnSettled) else expect(self, command)

    with patched(Confirmations, "expect", forgetful):
        yield


def turnkeeper(*args: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, list(args))
    return done.exit_code, done.output


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_bug_that_only_a_cut_shows_is_shown_again_by_its_file(runtime: str, tmp_path: Path) -> None:
    with terminals_are_told_once():
        code, told = turnkeeper(
            *("simulate", "--runtime", runtime, "--faults", "many", "--seeds", "200", "--out", str(tmp_path))
        )
        assert code == 1, told
        (file,) = tmp_path.glob("seed-*.jsonl")
        steps = [json.loads(line) for line in file.read_text().splitlines()]
        assert any("during" in step for step in steps), steps
        for again in RUNTIMES:
            code, told = turnkeeper("run", "--runtime", again, str(file))
            assert code == 1, told
            assert "first mismatch" in told
    code, told = turnkeeper("run", "--runtime", "all", str(file))
    assert code == 0, told
