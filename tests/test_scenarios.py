"""Every scenario of the project, on the plain cell and on the whole engine."""

from functools import cache
from pathlib import Path

import pytest

from turnkeeper.cli.playing import Played, RuntimeName, play_file

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.jsonl"))
TRANSCRIPTS = [file for file in FILES if b'"transcript"' in file.read_bytes().partition(b"\n")[0]]
STORIES = [file for file in FILES if file not in TRANSCRIPTS]


@cache
def played_on(file: Path, runtime: RuntimeName) -> Played:
    (played,) = play_file(file, (runtime,))
    return played


def failure(played: Played) -> str:
    """The transcript and the mismatch, as `turnkeeper run` prints them."""
    lines = [line for moment in played.moments for line in moment.lines()]
    return "\n".join([*lines, f"{played.file}:{played.mismatch}"])


@pytest.mark.parametrize("runtime", ["cell", "actors"])
@pytest.mark.parametrize("file", STORIES, ids=lambda file: file.stem)
def test_a_scenario_passes(file: Path, runtime: RuntimeName) -> None:
    played = played_on(file, runtime)
    assert played.passed, failure(played)


@pytest.mark.parametrize("file", STORIES, ids=lambda file: file.stem)
def test_both_runtimes_tell_the_same_story(file: Path) -> None:
    cell, actors = played_on(file, "cell"), played_on(file, "actors")
    assert list(map(str, cell.moments)) == list(map(str, actors.moments))


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_a_transcript_scenario_passes(file: Path) -> None:
    played = played_on(file, "cell")
    assert played.passed, failure(played)


def test_there_are_scenarios_of_each_kind() -> None:
    assert len(STORIES) > 100
    assert len(TRANSCRIPTS) > 40
