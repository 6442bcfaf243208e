"""The simulator over the whole engine: the same seeds on the actors and on SQLite, and what differs from the cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.mutants.planting import patched
from turnkeeper.actors.runtime import ActorsRuntime, PlatformGateway, SqliteRuntime
from turnkeeper.cli import main
from turnkeeper.engine.commands import Command, Notice
from turnkeeper.engine.lab.runner import ScenarioRunner
from turnkeeper.engine.lab.runtime import RuntimeMaker
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.engine.lab.simulation.faults import FaultsName
from turnkeeper.engine.lab.simulation.oracle import Oracle
from turnkeeper.engine.lab.simulator import Simulated, play, simulate_seed

SEEDS = range(40)
MAKERS: dict[str, RuntimeMaker] = {"actors": ActorsRuntime, "sqlite": SqliteRuntime}


@cache
def on_the_cell(seed: int, faults: FaultsName = "some") -> Simulated:
    return simulate_seed(seed, faults=faults, paranoid=False)


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


@contextmanager
def notices_are_lost() -> Iterator[None]:
    """Plant a bug that only the engine has: its gateway never hears of a notice."""
    perform = PlatformGateway.perform

    async def deaf(self: PlatformGateway, command: Command) -> None:
        if not isinstance(command, Notice):
            await perform(self, command)

    with patched(PlatformGateway, "perform", deaf):
        yield


def test_what_only_the_engine_does_is_found_shrunk_and_written(tmp_path: Path) -> None:
    """By comparing it with the cell; the file expects what the cell shows."""
    with notices_are_lost():
        told = CliRunner().invoke(main, ["simulate", "--runtime", "actors", "--faults", "none", "--out", str(tmp_path)])
        assert "differs from the cell" in told.output
        (file,) = tmp_path.glob("seed-*.jsonl")
        assert CliRunner().invoke(main, ["run", "--runtime", "actors", str(file)]).exit_code == 1
    assert CliRunner().invoke(main, ["run", "--runtime", "all", str(file)]).exit_code == 0


def test_users_see_the_same_on_the_engine() -> None:
    """Every command in its order: scripts that are full of crashes, but not in the middle of a step."""
    for seed in range(200, 215):
        script = on_the_cell(seed, "many").script
        between = tuple(raw for raw in script.steps if "during" not in raw)
        player = play(msgspec.structs.replace(script, steps=between), ActorsRuntime)
        assert not player.breaches, f"seed {seed}: {player.breaches}"


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


@pytest.mark.parametrize("watches", ["performed", "ran"])
def test_what_an_oracle_raises_is_raised_where_the_run_is_driven(watches: str) -> None:
    """Not logged by the engine as an observer's, nor taken for a gateway that failed."""

    def wrong(*_: object) -> None:
        raise ZeroDivisionError

    with patched(Oracle, watches, wrong), pytest.raises(ZeroDivisionError):
        simulate_seed(1, maker=ActorsRuntime)
