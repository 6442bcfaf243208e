"""What the metrics tests share: the incident, run on the plain cell with a strict probe."""

from pathlib import Path
from typing import Any

import pytest

from turnkeeper.engine.lab.runner import Result, run_scenario
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.metrics.probe import RegistryProbe

INCIDENT: list[dict[str, Any]] = [
    {"turn_opened": {"turn_id": "P", "message": 6406}},
    {"input_seen": {"turn_id": "P"}},
    {"input_folded": {"turn_id": "F", "source": "autosteer", "message": 6407}},
    {"reply": {"call_id": "k1", "turn_id": "F", "consumed_turn_ids": ["P", "F"], "text": "Both are done."}},
    {"stopped": {"text": "In short: done."}},
    {"advance": 2500},
]
"""One reply answers a message and its follow-up; at the end the agent says closing words."""


class Ran:
    """A scenario that was run, with its probe."""

    def __init__(self, probe: RegistryProbe, result: Result) -> None:
        self.probe = probe
        self.result = result

    def __getitem__(self, written: str) -> float:
        return self.probe.sample(written)


class Play:
    """Runs steps of a scenario that are given as values."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, steps: list[dict[str, Any]], config: dict[str, Any] | None = None) -> Ran:
        """Write the steps as a file, run it on the plain cell, and demand that nothing was unexpected."""
        import json

        header = {"scenario": "a test", "source": "a test", "config": config or {}}
        file = self.folder / "steps.jsonl"
        file.write_text("\n".join(map(json.dumps, [header, *steps])), encoding="utf-8")
        probe = RegistryProbe()
        result = run_scenario(read_scenario(file), CellRuntime, probe)
        assert result.mismatch is None, result.mismatch
        return Ran(probe, result)


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run steps, and read the metrics they led to."""
    return Play(tmp_path)
