"""Apply every fault of the checklist of what a turn answers, and see that scenarios notice.

`python -m tests.mutants.run_answers` prints killed or survived for each; exit 1 if one survives.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.mutants.answers import MUTANTS
from turnkeeper.engine.lab.runner import run_scenario
from turnkeeper.engine.lab.scenario import Scenario, read_scenario
from turnkeeper.metrics.probe import RegistryProbe

__all__ = ["killers", "scenarios"]

SCENARIOS = Path(__file__).parents[1] / "scenarios"
GIVEN = ("b*", "n*", "z*")
OURS = ("r-b*",)


def scenarios(families: tuple[str, ...] = (*GIVEN, *OURS)) -> list[Scenario]:
    """Read the scenarios of what a turn answers."""
    return [read_scenario(file) for family in families for file in sorted(SCENARIOS.glob(f"{family}.jsonl"))]


def noticed(scenario: Scenario) -> bool:
    """Say whether the scenario fails; a raise is a failure too."""
    try:
        return not run_scenario(scenario, probe=RegistryProbe()).passed
    except Exception:  # noqa: BLE001 - whatever a fault breaks, it was noticed
        return True


def killers(name: str, all_of_them: list[Scenario]) -> list[str]:
    """Name the first scenario that fails under this fault."""
    with MUTANTS[name]():
        return next(([Path(one.file).name] for one in all_of_them if noticed(one)), [])


def main() -> int:
    """Run them all."""
    read = scenarios()
    healthy = [Path(one.file).name for one in read if noticed(one)]
    if healthy:
        print(f"fails without any fault: {', '.join(healthy)}")
        return 1
    survivors = 0
    for name in MUTANTS:
        killed_by = killers(name, read)
        survivors += not killed_by
        print(f"{'killed  ' if killed_by else 'SURVIVED'}  {name}  {', '.join(killed_by)}")
    print(f"{len(MUTANTS) - survivors} of {len(MUTANTS)} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
