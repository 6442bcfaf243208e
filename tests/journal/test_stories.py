"""Every scenario on the SQLite journal: it passes, and what was recorded replays to the same."""

from __future__ import annotations

import json
import os
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.test_scenarios import STORIES, failure, played_on
from turnkeeper.actors.history import History
from turnkeeper.actors.runtime import SqliteRuntime
from turnkeeper.cli.playing import play_file
from turnkeeper.engine.lab.recording import recording_of
from turnkeeper.engine.lab.runner import ScenarioRunner
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.metrics.probe import RegistryProbe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnkeeper.cli.playing import Played
    from turnkeeper.engine.lab.runtime import RuntimeMaker

CRASHING = [file for file in STORIES if b'"crash"' in file.read_bytes()]
BOTH_SIDES = ("admission", "commit", "release", "settlement", "ack", "quote", "wake", "anchor", "fallback")
"""What a crash must not come between: for each a scenario that crashes before it, and one that does after."""


@pytest.mark.parametrize("file", CRASHING, ids=lambda file: file.stem)
def test_a_scenario_with_a_crash_passes_on_files(file: Path) -> None:
    played = played_on(file, "sqlite")
    assert played.passed, failure(played)
    assert told(played) == told(played_on(file, "cell"))


def told(played: Played) -> list[str]:
    """What happened, but for how many events were replayed: a snapshot saves most of them."""
    return [re.sub(r"recovered events=\d+", "recovered", str(moment)) for moment in played.moments]


def test_there_are_crashes_on_both_sides_of_everything() -> None:
    assert len(CRASHING) >= 40
    stems = {file.stem for file in CRASHING}
    for what in BOTH_SIDES:
        for side in ("before", "after"):
            assert any(stem.startswith(f"z-{what}-{side}") for stem in stems), f"z-{what}-{side}"


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """In memory, where there is such a place: some six hundred journals need no disk to be compared."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


def test_live_equals_replay_on_the_journals_of_all_scenarios(quick_folder: Path) -> None:
    """Digests of every record; and the states of the snapshot that the stop left, with those of a whole replay."""
    chats = records = 0
    for file in STORIES:
        path = quick_folder / f"{file.stem}.journal"
        maker: RuntimeMaker = partial(SqliteRuntime, path=path)
        ScenarioRunner(read_scenario(file), maker, RegistryProbe()).run()
        with History(path) as history:
            found = history.verify()
            assert history.info().whole
        assert found.ok, (file.name, found)
        assert found.from_seq == 1
        chats += found.chats
        records += found.records
    assert chats > len(STORIES) * 0.9
    assert records > 10 * len(STORIES)


@pytest.mark.parametrize(
    "name", ["a01-combined-final", "z05-in-the-grace", "z02-in-flight-reconciled", "a64-flood-wait", "b08"]
)
def test_a_dumped_journal_runs_as_a_recording(name: str, tmp_path: Path) -> None:
    """The recording of a story's journal shows users the same."""
    (file,) = [file for file in STORIES if file.stem == name]
    path, dumped = tmp_path / "journal", tmp_path / "dumped.jsonl"
    runner = ScenarioRunner(read_scenario(file), partial(SqliteRuntime, path=path))
    runner.run()
    with History(path) as history:
        dumped.write_text("\n".join(json.dumps(line) for line in recording_of(history.records, name)))
    (again,) = play_file(dumped, ("cell",))
    assert again.passed, again.mismatch
    commands = [line for moment in again.moments for line in moment.commands]
    assert commands == [line for moment in runner.moments for line in moment.commands]
