"""`turnkeeper simulate`: what is run, in how many processes, and what is printed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Turnkeeper
from turnkeeper.cli.seeds import Kind, Ranges, parts_of
from turnkeeper.engine.lab.simulation.script import Script
from turnkeeper.engine.lab.simulator import Simulated, rows_of_rules

BREACH = (19, 22, 57)
"""Seeds that breach in the runs that are made up here."""


def made_up(seed: int, kind: Kind) -> Simulated:
    """Stand in for a seed; the process that runs it leaves its number as a signal."""
    breaches = [f"made up: {kind.faults}"] if seed in BREACH else []
    return Simulated(seed, Script({}, ()), breaches, {("table", f"row {seed}")}, {str(os.getpid())}, 2)


def told(turnkeeper: Turnkeeper, tmp_path: Path, *options: str) -> Any:
    done = turnkeeper("simulate", "--json", "--out", tmp_path, *options)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("runtime", ["cell", "actors", "sqlite"])
def test_each_runtime_runs_seeds(turnkeeper: Turnkeeper, tmp_path: Path, runtime: str) -> None:
    found = told(turnkeeper, tmp_path, "--seeds", "3", "--from", "7", "--runtime", runtime, "--faults", "many")
    assert (found["seeds"], found["from"], found["runtime"], found["faults"]) == (3, 7, runtime, "many")
    assert found["breach"] is None


def test_nothing_goes_wrong_without_faults(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    found = told(turnkeeper, tmp_path, "--seeds", "40", "--faults", "none")
    reached = rows_of_rules() - {tuple(row) for row in found["rows"]["missing"]}
    assert {row for table, row in reached if table == "failure"} == set()
    assert {row for table, row in reached if table == "settlement"} == {"sent"}


def test_it_goes_on_for_so_many_minutes(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    assert told(turnkeeper, tmp_path, "--minutes", "0.001")["seeds"] >= 1


def test_seeds_or_minutes(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("simulate", "--seeds", "3", "--minutes", "1")
    assert done.exit_code == 2
    assert "give one of them" in done.output


def test_the_output_is_the_same_in_two_processes(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    one, two = (told(turnkeeper, tmp_path, "--seeds", "50", "--jobs", jobs) for jobs in ("1", "2"))
    assert {**one, "seeds_per_s": 0} == {**two, "seeds_per_s": 0}


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_first_breach_is_that_of_the_lowest_seed(jobs: int) -> None:
    """Whoever is ready first: what is counted ends with that seed."""
    parts = []
    for part in parts_of(Ranges(4, jobs, seeds=100), Kind(), jobs, made_up):
        parts.append(part)
        if part.breached is not None:
            break
    assert parts[-1].breached == BREACH[0]
    assert sum(part.seeds for part in parts) == BREACH[0] - 4 + 1
    assert set().union(*(part.rows for part in parts)) == {("table", f"row {n}") for n in range(4, BREACH[0] + 1)}


def test_ranges_end_with_the_seeds_or_with_the_time() -> None:
    assert [(one.start, one.stop) for one in Ranges(5, 2, seeds=20)] == [(5, 13), (13, 21), (21, 25)]
    assert list(Ranges(5, 1, seeds=20, minutes=0)) == []
    assert Ranges(5, 1, seeds=20, minutes=2).total == 120
