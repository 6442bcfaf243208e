"""The simulator over the whole engine: the same seeds on the actors and on SQLite, and what differs from the cell."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from turnkeeper.actors.runtime import ActorsRuntime, SqliteRuntime
from turnkeeper.engine.commands import Reconcile
from turnkeeper.engine.lab.runner import ScenarioRunner
from turnkeeper.engine.lab.runtime import RuntimeMaker
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.engine.lab.simulation.faults import FaultsName
from turnkeeper.engine.lab.simulation.player import Player
from turnkeeper.engine.lab.simulator import Simulated, play, simulate_seed

SEEDS = range(40)
MAKERS: dict[str, RuntimeMaker] = {"actors": ActorsRuntime, "sqlite": SqliteRuntime}


@cache
def on_the_cell(seed: int, faults: FaultsName = "some") -> Simulated:
    return simulate_seed(seed, faults=faults, paranoid=False)


def saw(player: Player | ScenarioRunner) -> dict[str, list[Any]]:
    """What the platform was told to do, by chat; ids number records, and a frame of several decides nothing."""
    told: dict[str, list[Any]] = {}
    for command in player.platform.performed:
        if not isinstance(command, Reconcile):
            told.setdefault(command.chat, []).append({**msgspec.to_builtins(command), "id": ""})
    return told


def dies_within(run: Simulated) -> bool:
    return any("during" in step for step in run.script.steps)


@pytest.mark.parametrize("faults", ["some", "many"])
@pytest.mark.parametrize("runtime", MAKERS)
def test_seeds_hold_on_the_engine(runtime: str, faults: FaultsName) -> None:
    """A seed without a crash in the middle of a step makes the same script there as on the cell."""
    for seed in SEEDS[: len(SEEDS) // 2] if faults == "some" else SEEDS[len(SEEDS) // 2 :]:
        run = simulate_seed(seed, faults=faults, maker=MAKERS[runtime])
        assert not run.breaches, f"turnkeeper simulate --seeds 1 --from {seed} --runtime {runtime} --faults {faults}"
        cell = on_the_cell(seed, faults)
        assert dies_within(cell) or run.script == cell.script


@pytest.mark.parametrize("faults", ["none", "some"])
def test_users_see_the_same_on_the_engine(faults: FaultsName) -> None:
    """Every command in its order, for scripts in which the process does not die in the middle of a step."""
    compared = 0
    for seed in SEEDS:
        script = on_the_cell(seed, faults).script
        if not dies_within(on_the_cell(seed, faults)):
            compared += 1
            assert saw(play(script, ActorsRuntime)) == saw(play(script)), f"seed {seed}"
    assert compared > len(SEEDS) // 2


@pytest.mark.parametrize("runtime", ["cell", *MAKERS])
def test_a_written_script_plays_as_it_was_found(runtime: str, tmp_path: Path) -> None:
    """With its crashes in the middle of steps, its quirks and its end."""
    maker = MAKERS.get(runtime)
    for seed in range(100, 106):
        script = on_the_cell(seed, "many").script
        player = play(script, maker)
        file = tmp_path / f"{seed}.jsonl"
        script.write(file, "a seed", "a test", player)
        runner = ScenarioRunner(read_scenario(file)) if maker is None else ScenarioRunner(read_scenario(file), maker)
        result = runner.run()
        assert result.passed, result.mismatch
        assert runner.platform.performed == player.platform.performed
