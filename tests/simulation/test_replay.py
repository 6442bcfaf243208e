"""Live equals replay: the journal's bytes alone, read by a new process with other hashes, give the same states."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.simulation.playing import Story, play_story, stories
from turnkeeper.engine import codec
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.recovery import replay

CODE = """
import json, sys
from pathlib import Path
from tests.simulation.test_replay import states_of_frames
print(json.dumps({file.name: states_of_frames(file) for file in sorted(Path(sys.argv[1]).glob("*.journal"))}))
"""


def states(cell: Cell) -> dict[str, str]:
    """Every owner's state as bytes, by address."""
    return {
        f"{address.chat} {address}": codec.encode(owner.state).hex()
        for address, owner in sorted(cell.owners.items(), key=lambda item: (item[0].chat, str(item[0])))
    }


def states_of_frames(file: Path) -> dict[str, object]:
    """Replay a journal that lies in a file, one frame in hex a line."""
    cell = Cell()
    found = replay(cell, [bytes.fromhex(line) for line in file.read_text().split()])
    return {"states": states(cell), "differs": len(found.differs), "pending": sorted(cell.pending)}


def live(story: Story, file: Path) -> dict[str, object]:
    """Play a story and write down its journal."""
    runtime = play_story(story).plain
    file.write_text("\n".join(frame.hex() for frame in runtime.journal.frames))
    return {"states": states(runtime.cell), "differs": 0, "pending": sorted(runtime.cell.pending)}


def test_every_scenario_is_the_same_when_it_is_replayed_elsewhere(tmp_path: Path) -> None:
    """Digests of the commands, the states of all owners and what is unconfirmed."""
    expected = {f"{story.name}.journal": live(story, tmp_path / f"{story.name}.journal") for story in stories()}
    made = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)],
        env={**os.environ, "PYTHONHASHSEED": "99"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
    )
    told = json.loads(made.stdout)
    assert told.keys() == expected.keys()
    for name, want in expected.items():
        assert told[name] == want, name
