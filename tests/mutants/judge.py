"""Who notices a fault: the scenarios that reach it, then seeds of the simulator that reach it.

A fault of a row can only show where the row decides, so each scenario and seed is run once without any fault
to learn which rows it reaches; a mutant is then judged by those alone, and by the first that fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from turnkeeper.engine.cell import Run
from turnkeeper.engine.errors import InvariantViolated
from turnkeeper.engine.journal import Body
from turnkeeper.engine.lab.runner import run_scenario
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.scenario import Scenario, is_transcript, lines_of, read_scenario
from turnkeeper.engine.lab.simulator import simulate_seed
from turnkeeper.metrics.probe import RegistryProbe

__all__ = ["Judge", "notices"]

SCENARIOS = Path(__file__).parents[1] / "scenarios"
Reached = frozenset[tuple[str, str]]


class BoundedRuntime(CellRuntime):
    """The plain cell, which a fault cannot keep busy for ever."""

    left = 5000

    def _run(self, body: Body, *also: Any) -> Run:
        self.left -= 1
        if not self.left:
            raise InvariantViolated("a fault goes on for ever")
        return super()._run(body, *also)


def _bounded(*given: Any) -> BoundedRuntime:
    return BoundedRuntime(*given, paranoid=False)


def notices(scenario: Scenario) -> bool:
    """Say whether a scenario fails; a raise is a failure too."""
    try:
        return not run_scenario(scenario, _bounded, RegistryProbe()).passed
    except Exception:  # noqa: BLE001 - whatever a fault breaks, it was noticed
        return True


def breaches(seed: int) -> bool:
    """Say whether a seed breaches."""
    try:
        return bool(simulate_seed(seed, paranoid=False).breaches)
    except Exception:  # noqa: BLE001 - as above
        return True


class Judge:
    """Scenarios and seeds, with the rows that each reaches.

    Args:
        seeds: how many seeds are asked when every scenario passes.

    """

    def __init__(self, seeds: int) -> None:
        self.scenarios: list[tuple[Scenario, Reached]] = []
        self.broken: list[str] = []
        """Scenarios that fail without any fault."""
        for file in sorted(SCENARIOS.glob("*.jsonl")):
            lines = lines_of(file)
            if not is_transcript(lines):
                self._add(read_scenario(file, lines))
        self._seeds = seeds
        self._reached: list[Reached] = []

    def _add(self, scenario: Scenario) -> None:
        result = run_scenario(scenario, probe=RegistryProbe())
        if result.passed:
            self.scenarios.append((scenario, result.rows))
        else:
            self.broken.append(scenario.file)

    def killer(self, row: tuple[str, str] | None) -> str:
        """Name who notices the fault that is applied now; empty if nobody does."""
        for scenario, rows in self.scenarios:
            if (row is None or row in rows) and notices(scenario):
                return Path(scenario.file).name
        for seed, rows in enumerate(self._reached):
            if (row is None or row in rows) and breaches(seed):
                return f"seed {seed}"
        return ""

    def learn_seeds(self) -> None:
        """Run the seeds without any fault: what they reach is what they can notice."""
        self._reached = [frozenset(simulate_seed(seed, paranoid=False).rows) for seed in range(self._seeds)]
