"""The simulator itself: 300 seeds hold, a seed is one run everywhere, a planted bug is found, shrunk and written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.mutants import ends, replies
from turnkeeper.cli.run import run
from turnkeeper.cli.simulate import simulate
from turnkeeper.engine.codec import digest
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.engine.lab.simulator import Simulated, play, rows_of_rules, shrunk, simulate_seed

CHUNK = 50
MUTANTS = {**replies.MUTANTS, **ends.MUTANTS}


@pytest.mark.parametrize("first", range(0, 300, CHUNK))
def test_seeds_hold(first: int) -> None:
    """No user, agent or host has anything to complain of."""
    for seed in range(first, first + CHUNK):
        done = simulate_seed(seed)
        assert not done.breaches, f"seed {seed}: {done.breaches}; turnkeeper simulate --seeds 1 --from {seed}"


def test_a_few_seeds_reach_most_rows() -> None:
    reached = {row for seed in range(300, 700) for row in simulate_seed(seed, paranoid=False).rows}
    missing = rows_of_rules() - reached
    assert len(missing) < len(rows_of_rules()) // 4, sorted(missing)


def summary(seeds: range) -> list[object]:
    """What some seeds did, in a form that two processes can compare."""
    told: list[object] = []
    for seed in seeds:
        done = simulate_seed(seed)
        commands = digest(play(done.script).platform.performed)
        told.append([seed, json.dumps(done.script.steps), done.steps, sorted(map(list, done.rows)), commands])
    return told


def test_a_seed_is_the_same_run_in_another_process() -> None:
    """Neither hashes nor the order of sets decide anything."""
    code = "import json; from tests.simulation.test_seeds import summary; print(json.dumps(summary(range(40))))"
    mine = json.loads(json.dumps(summary(range(40))))
    for hash_seed in ("1", "4711"):
        made = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        )
        assert json.loads(made.stdout) == mine


def first_breach(name: str, seeds: int = 600) -> Simulated:
    """Return the first seed that notices a planted bug."""
    found = next((done for done in map(simulate_seed, range(seeds)) if done.breaches), None)
    assert found is not None, f"{name}: not found in {seeds} seeds"
    return found


@pytest.mark.parametrize(
    "name",
    [
        "quote not reserved",
        "no in-flight count for only-open",
        "Stop does not wait",
        "ack on arrival",
        "unknown is failed",
    ],
)
def test_a_planted_bug_is_found_and_shrunk(name: str, tmp_path: Path) -> None:
    with MUTANTS[name]():
        found = first_breach(name)
        short = shrunk(found)
        played = play(short)
        assert played.breaches
    assert not play(short).breaches, "without the bug the script holds"
    assert len(short.steps) <= 12
    file = tmp_path / "short.jsonl"
    short.write(file, name, "a test", played)
    assert CliRunner().invoke(run, [str(file)]).exit_code == 0, "without the bug it passes"
    with MUTANTS[name]():
        assert CliRunner().invoke(run, [str(file)]).exit_code == 1, "with the bug it does not"


def test_the_command_tells_seeds_rate_and_rows(tmp_path: Path) -> None:
    told = json.loads(CliRunner().invoke(simulate, ["--seeds", "5", "--json", "--out", str(tmp_path)]).stdout)
    assert told["seeds"] == 5
    assert told["breach"] is None
    assert told["rows"]["reached"] + len(told["rows"]["missing"]) == len(rows_of_rules())
    text = CliRunner().invoke(simulate, ["--seeds", "2", "--from", "7", "--out", str(tmp_path)])
    assert text.exit_code == 0
    assert "2 seeds from 7" in text.stdout
    assert "not reached: " in text.stdout


def test_the_command_writes_the_file_of_a_breach(tmp_path: Path) -> None:
    with MUTANTS["quote not reserved"]():
        made = CliRunner().invoke(simulate, ["--seeds", "300", "--out", str(tmp_path)])
    assert made.exit_code == 1
    (file,) = tmp_path.glob("seed-*.jsonl")
    assert f"turnkeeper run {file}" in made.output
    assert read_scenario(file).judged


def test_rows_that_are_not_reached_fail_on_demand(tmp_path: Path) -> None:
    assert CliRunner().invoke(simulate, ["--seeds", "1", "--all-rows", "--out", str(tmp_path)]).exit_code == 1
