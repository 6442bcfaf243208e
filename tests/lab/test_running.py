"""What a scenario's steps do, where the scenarios themselves do not say it."""

from pathlib import Path

import pytest

from turnkeeper.actors.misuse import Misuse
from turnkeeper.actors.runtime import ActorsRuntime
from turnkeeper.cli.playing import RuntimeName, maker_of
from turnkeeper.engine.lab import Lab
from turnkeeper.engine.lab.runner import ScenarioRunner
from turnkeeper.engine.lab.scenario import read_scenario

STORY = """{"scenario": "a reload, and a crash after it"}
{"turn_opened": {"turn_id": "P", "message": 1}}
{"reload": {"timers": {"stop_grace_ms": 50}}}
{"crash": true, "down_ms": 1000}
{"turn_opened": {"turn_id": "Q", "message": 2}}
{"stopped": {"text": "old", "turn_id": "P"}}
{"stopped": {"text": "new", "turn_id": "Q"}}
{"advance": 60}
{"state": {"turns.P.status": "open", "turns.Q.status": "settled"}}
{"advance": 2000}
{"state": {"turns.P.status": "settled"}}
"""


@pytest.mark.parametrize("runtime", ["cell", "actors"])
def test_a_restart_reads_the_configuration_that_was_reloaded(tmp_path: Path, runtime: str) -> None:
    """The old turn keeps the policy it opened with, the new one has the reloaded one, also behind a crash."""
    file = tmp_path / "s.jsonl"
    file.write_text(STORY, encoding="utf-8")
    result = ScenarioRunner(read_scenario(file), maker_of("cell" if runtime == "cell" else "actors")).run()
    assert result.passed, result.mismatch


def test_each_moment_knows_its_line(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(STORY, encoding="utf-8")
    runner = ScenarioRunner(read_scenario(file))
    runner.run()
    lines = {moment.title.split()[0]: moment.line for moment in runner.moments}
    assert lines["recovered"] == 4
    assert lines["stopped"] == 7
    assert lines["due:"] == 10


JUDGED = """{"scenario": "what the oracle has to say"}
{"turn_opened": {"turn_id": "P", "message": 1}}
{"complaints": []}
{"complaints": [], "ended": true}
"""


@pytest.mark.parametrize("runtime", ["cell", "actors"])
def test_a_file_may_ask_what_the_oracle_complains_of(tmp_path: Path, runtime: RuntimeName) -> None:
    """A turn that is open is no complaint, until everything had time to end."""
    file = tmp_path / "s.jsonl"
    file.write_text(JUDGED, encoding="utf-8")
    result = ScenarioRunner(read_scenario(file), maker_of(runtime)).run()
    assert result.mismatch is not None
    assert (result.mismatch.line, result.mismatch.expected) == (4, [])
    assert "P" in str(result.mismatch.actual)


def test_a_scenario_in_python_has_no_oracle() -> None:
    with Lab() as lab, pytest.raises(AssertionError, match="nobody watched"):
        lab.play({"complaints": []})


def test_a_process_of_threads_does_not_know_which_record_is_the_next() -> None:
    with Lab(runtime=ActorsRuntime) as lab, pytest.raises(Misuse, match="lockstep"):
        lab.play({"crash": True, "during": {"records": 1}}).turn_opened("P", message=1)
