"""Live equals replay, through the engine: every scenario's frames, read by a new process with other hashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from turnkeeper.actors.runtime import ActorsRuntime
from turnkeeper.engine import codec
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.journal import MemoryJournal
from turnkeeper.engine.lab.runner import ScenarioRunner
from turnkeeper.engine.lab.scenario import is_transcript, lines_of, read_scenario
from turnkeeper.engine.recovery import replay

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests" / "scenarios").glob("*.jsonl"))
CODE = """
import json, sys
from pathlib import Path
from tests.actors.test_replay_elsewhere import replayed
print(json.dumps({file.name: replayed(file) for file in sorted(Path(sys.argv[1]).glob("*.frames"))}))
"""


def told(cell: Cell, differs: int) -> dict[str, Any]:
    states = {f"{a.chat} {a}": codec.encode(owner.state).hex() for a, owner in cell.owners.items()}
    return {"states": states, "pending": list(cell.pending), "differs": differs}


def replayed(file: Path) -> dict[str, Any]:
    cell = Cell()
    found = replay(cell, [bytes.fromhex(line) for line in file.read_text().split()])
    return told(cell, len(found.differs))


def test_every_scenario_through_the_engine_is_the_same_when_it_is_replayed_elsewhere(tmp_path: Path) -> None:
    live: dict[str, Any] = {}
    for file in FILES:
        if is_transcript(lines_of(file)):
            continue
        runner = ScenarioRunner(read_scenario(file), ActorsRuntime)
        runner.run()
        runtime = runner.runtime
        assert isinstance(runtime, ActorsRuntime)
        assert isinstance(runtime.journal, MemoryJournal)
        frames = tmp_path / f"{file.stem}.frames"
        frames.write_text("\n".join(frame.hex() for frame in runtime.journal.frames))
        live[frames.name] = runtime.engine.look(lambda cell: told(cell, 0))
    assert len(live) > 100
    made = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert json.loads(made.stdout) == live
