"""`turnkeeper compare`: the incident under two policies, readable on a terminal and by a program."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Turnkeeper

Process = Callable[..., subprocess.CompletedProcess[str]]
INCIDENT = "examples/incident.jsonl"
OFF = ("--set", "attribution.fold_proof=off")


def summary(output: str) -> str:
    return output.partition("What it came to")[2]


def test_two_answers_become_one(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("compare", INCIDENT, *OFF, "--json")
    assert done.exit_code == 0
    told = json.loads(done.output)
    assert told["runtime"] == "actors"
    assert told["set"] == {"attribution.fold_proof": "off"}
    proven, trusting = (side["summary"] for side in told["sides"])
    assert [answer["quote"] for answer in proven["answers"]] == [6406]
    assert [answer["quote"] for answer in trusting["answers"]] == [6407, 6406]
    assert [one["decided"]["row"] for one in proven["owned"]] == ["proven-fold"]
    assert [one["decided"]["row"] for one in trusting["owned"]] == ["late-fold"]
    assert [one["decided"]["row"] for one in proven["held_back"]] == ["suppressed"]
    assert trusting["held_back"] == proven["rescued"] == []
    assert [one["decided"]["row"] for one in trusting["rescued"]] == ["consumed-rescue"]
    assert [one["outcome"] for one in proven["ended"]] == ["final-reply"]
    assert [one["outcome"] for one in trusting["ended"]] == ["consumed-rescue"]
    assert {row for moment in told["sides"][0]["transcript"] for _, row, _ in moment["rows"]} >= {"proven-fold"}


def test_the_runtimes_tell_the_same_story(turnkeeper: Turnkeeper) -> None:
    cell, actors = (
        json.loads(turnkeeper("compare", INCIDENT, *OFF, "--json", "--runtime", runtime).output)
        for runtime in ("cell", "actors")
    )
    assert cell["sides"] == actors["sides"]


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_side_by_side(turnkeeper: Turnkeeper, columns: int) -> None:
    done = turnkeeper("compare", INCIDENT, *OFF, columns=columns)
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert max(map(len, lines)) <= columns
    bars = [line.index("│") for line in lines if "│" in line]
    assert len(bars) > 30
    assert len(set(bars)) == 1, "the bar between the two sides is one line"
    assert "proven-fold" in done.output
    assert "late-fold" in done.output
    assert done.output.endswith("A: 1 answer, quoting 6406. B: 2 answers, quoting 6407, then 6406.\n")


def test_one_below_the_other_where_it_is_narrow(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("compare", INCIDENT, *OFF, columns=60)
    assert "│" not in done.output
    assert max(map(len, done.output.splitlines())) <= 60
    assert "  A:\n" in done.output
    assert "  B:\n" in done.output
    assert "  A and B:\n" in done.output


def test_the_comments_of_the_file_tell_the_story(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("compare", INCIDENT, *OFF)
    at = [
        done.output.index(text)
        for text in ("Somebody asks", "A follow-up comes", "The agent answers both", "The agent stops")
    ]
    assert at == sorted(at)


def test_what_came_on_one_side_alone_says_so(turnkeeper: Turnkeeper) -> None:
    assert "[B only] settled: rescue:c1:P arrived as message 6410" in turnkeeper("compare", INCIDENT, *OFF).output


def test_a_scenario_is_run_without_what_it_expects(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("compare", "tests/scenarios/a01-combined-final.jsonl", *OFF)
    assert done.exit_code == 0
    assert "A: 1 answer, quoting 6406. B: 2 answers, quoting 6407, then 6406." in done.output


def test_a_change_that_changes_nothing(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("compare", INCIDENT, "--set", "timers.turn_max_ms=5400001")
    assert done.output.endswith("Both come to the same.\n")


def test_several_settings_and_every_form_of_a_value(turnkeeper: Turnkeeper) -> None:
    sets = [
        "timers.stop_grace_ms=100",
        "finalize.without_stop=true",
        "delivery.backoff_ms=[10, 20]",
        'finalize.final_reply="rescue-different"',
        "speech.home=tg/100",
    ]
    done = turnkeeper("compare", INCIDENT, *(part for one in sets for part in ("--set", one)), "--json")
    assert done.exit_code == 0
    assert json.loads(done.output)["set"] == {
        "timers.stop_grace_ms": 100,
        "finalize.without_stop": True,
        "delivery.backoff_ms": [10, 20],
        "finalize.final_reply": "rescue-different",
        "speech.home": "tg/100",
    }


def test_a_change_also_holds_after_a_reload(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(
        '{"scenario": "x"}\n{"reload": {"dedup": {"window_ms": 1}}}\n'
        '{"turn_opened": {"turn_id": "P", "message": 1}}\n'
        '{"stopped": {"text": "yes", "turn_id": "P"}}\n{"advance": 10}\n',
        encoding="utf-8",
    )
    told = json.loads(turnkeeper("compare", file, "--set", "timers.stop_grace_ms=5", "--json").output)
    assert [len(side["summary"]["answers"]) for side in told["sides"]] == [0, 1]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("fold_proof", "expected KEY=VALUE"),
        ("fold_proof=off", "expected KEY=VALUE"),
        ("attribution.fold_prof=off", "did you mean"),
        ("attribution.fold_proof=maybe", 'one of "consumed", "off"'),
        ("attributions.fold_proof=off", "did you mean"),
        ("timers.quiet_ms=soon", "timers.quiet_ms"),
        ("timers.quiet_ms=1\nquiet_ms = 2", "timers.quiet_ms"),
    ],
)
def test_a_setting_that_cannot_be_used(turnkeeper: Turnkeeper, setting: str, told: str) -> None:
    done = turnkeeper("compare", INCIDENT, "--set", setting)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: --set")
    assert told in done.stderr


def test_a_transcript_scenario_has_no_events_to_compare(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("compare", "tests/scenarios/v01-marked-receipt.jsonl", *OFF)
    assert done.exit_code == 2
    assert "is a transcript scenario" in done.stderr


def test_as_a_process(process: Process) -> None:
    done = process("compare", INCIDENT, *OFF)
    assert done.returncode == 0, done.stderr
    assert summary(done.stdout)
    assert "\x1b" not in done.stdout
