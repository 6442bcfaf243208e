"""The proven fold is what makes the difference: with the rule off the incident's scenarios fail, with it on they pass."""

from __future__ import annotations

import pytest

from tests.simulation.playing import SCENARIOS
from turnkeeper.engine.lab.runner import Result, run_scenario
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.metrics.probe import RegistryProbe

RULE_OFF: dict[str, dict[str, object]] = {"attribution": {"fold_proof": "off"}}
INCIDENT = (
    "a01-combined-final",
    "a05-edit-fold",
    "a07-failed-then-retried",
    "a08-interim-fold",
    "a09-non-interim-is-final",
)


def run(name: str, changes: dict[str, dict[str, object]] | None = None) -> Result:
    return run_scenario(read_scenario(SCENARIOS / f"{name}.jsonl", changes=changes), probe=RegistryProbe())


@pytest.mark.parametrize("name", INCIDENT)
def test_the_rule_makes_the_difference(name: str) -> None:
    on, off = run(name), run(name, RULE_OFF)
    print(f"{name}: rule on passes: {on.passed}; rule off passes: {off.passed}, first mismatch {off.mismatch}")
    assert on.passed
    assert not off.passed
