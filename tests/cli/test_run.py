"""`turnkeeper run`: exit codes, what is printed, what is JSON."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Turnkeeper

Process = Callable[..., subprocess.CompletedProcess[str]]

PASSES = (
    '{"scenario": "a reply"}\n'
    '{"turn_opened": {"turn_id": "P", "message": 1}}\n'
    '{"reply": {"call_id": "k", "turn_id": "P", "text": "yes"}}\n'
    '{"expect": [{"send": {"turn_id": "P", "quote": 1, "text": "yes"}}], "acks": [{"ok": true}]}\n'
    '{"metrics": {"turnkeeper_replies_total{owner=\\"echoed-open\\",interim=\\"false\\"}": 1}}\n'
)
FAILS = PASSES.replace('"quote": 1', '"quote": 2')
RECORDING = (
    '{"scenario": "a recording"}\n'
    '{"#": "somebody asks"}\n'
    '{"turn_opened": {"turn_id": "P", "message": 1}}\n'
    '{"stopped": {"text": "yes", "turn_id": "P"}}\n'
    '{"advance": 2500}\n'
)
TRANSCRIPT = (
    '{"transcript": "one answer"}\n'
    '{"entry": {"id": "m1", "parentId": null, "type": "message", "message": {"role": "user", "content": "hi"}}}\n'
    '{"view": ["m1"]}\n'
)


def write(folder: Path, text: str | bytes, name: str = "s.jsonl") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def objects(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_a_scenario_that_passes(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    file = write(tmp_path, PASSES)
    done = turnkeeper("run", file)
    assert done.exit_code == 0
    assert done.output == f"passed  {file} (cell, actors): a reply\n"


@pytest.mark.parametrize(("runtime", "ran"), [("cell", ["cell"]), ("actors", ["actors"]), ("both", ["cell", "actors"])])
def test_json_has_an_object_for_each_runtime(
    turnkeeper: Turnkeeper, tmp_path: Path, runtime: str, ran: list[str]
) -> None:
    file = write(tmp_path, PASSES)
    done = turnkeeper("run", file, "--json", "--runtime", runtime)
    assert done.exit_code == 0
    assert objects(done.output) == [
        {"file": str(file), "scenario": "a reply", "runtime": name, "passed": True, "mismatch": None} for name in ran
    ]


def test_both_is_the_default(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    done = turnkeeper("run", write(tmp_path, PASSES), "--json")
    assert [one["runtime"] for one in objects(done.output)] == ["cell", "actors"]


def test_a_mismatch_shows_the_transcript_and_what_differs(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    file = write(tmp_path, FAILS)
    done = turnkeeper("run", file)
    assert done.exit_code == 1
    assert f"FAILED  {file} (cell: no, actors: no): a reply" in done.output
    for part in (
        "turn_opened turn_id=P",
        "| attribution: echoed-open (the turn is still open)",
        "> send (reply) to tg/100: 'yes' for turn P, quoting 1",
        f"first mismatch, {file}:4",
        'expected  {"send": {"turn_id": "P", "quote": 2, "text": "yes"}}',
        "actual    send (reply) to tg/100: 'yes' for turn P, quoting 1",
    ):
        assert done.output.count(part) == 2, part


def test_a_mismatch_as_json(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    done = turnkeeper("run", write(tmp_path, FAILS), "--json", "--runtime", "cell")
    assert done.exit_code == 1
    (one,) = objects(done.output)
    assert not one["passed"]
    assert one["mismatch"] == {
        "line": 4,
        "expected": [{"send": {"turn_id": "P", "quote": 2, "text": "yes"}}],
        "actual": ["send (reply) to tg/100: 'yes' for turn P, quoting 1"],
    }


def test_a_command_that_nothing_expects_is_a_mismatch(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    more = '{"reply": {"call_id": "k2", "turn_id": "P", "text": "more"}}\n'
    done = turnkeeper("run", write(tmp_path, PASSES + more), "--json")
    assert done.exit_code == 1
    assert [one["mismatch"]["line"] for one in objects(done.output)] == [6, 6]


def test_a_wrong_sample_is_a_mismatch(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    done = turnkeeper("run", write(tmp_path, PASSES.replace('}": 1}}', '}": 2}}')), "--json")
    assert done.exit_code == 1
    sample = 'turnkeeper_replies_total{owner="echoed-open",interim="false"}'
    assert [one["mismatch"] for one in objects(done.output)] == [
        {"line": 5, "expected": {sample: 2}, "actual": {sample: 1.0}} for _ in "12"
    ]


def test_samples_outlive_a_crash_and_a_replay_counts_nothing(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    lines = PASSES.splitlines(keepends=True)
    assert turnkeeper("run", write(tmp_path, "".join([*lines[:4], '{"crash": true}\n', lines[4]]))).exit_code == 0


def test_a_recording_is_printed_with_its_comments(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    file = write(tmp_path, RECORDING)
    done = turnkeeper("run", file)
    assert done.exit_code == 0
    assert done.output.startswith(f"ran     {file} (cell, actors): a recording\n  on cell:\n")
    assert "# somebody asks" in done.output
    assert "| delivery: fallback (the answer is only in the Stop text)" in done.output
    assert done.output.endswith("  on actors: the same\n\n")


def test_a_recording_as_json(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    done = turnkeeper("run", write(tmp_path, RECORDING), "--json")
    assert done.exit_code == 0
    assert [one["passed"] for one in objects(done.output)] == [True, True]
    told = turnkeeper("run", write(tmp_path, RECORDING), "--json", "--transcript")
    assert any("> send (fallback)" in line for line in objects(told.output)[0]["transcript"])


def test_a_transcript_scenario(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    file = write(tmp_path, TRANSCRIPT)
    done = turnkeeper("run", file, "--json")
    assert done.exit_code == 0
    expected = {"file": str(file), "scenario": "one answer", "runtime": "transcript", "passed": True, "mismatch": None}
    assert objects(done.output) == [expected]


def test_a_transcript_scenario_that_fails(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    done = turnkeeper("run", write(tmp_path, TRANSCRIPT.replace('["m1"]', '["m2"]')), "--json")
    assert done.exit_code == 1
    assert objects(done.output)[0]["mismatch"] == {"line": 3, "expected": ["m2"], "actual": ["m1"]}


@pytest.mark.parametrize("text", [PASSES, TRANSCRIPT])
def test_standard_input(turnkeeper: Turnkeeper, text: str) -> None:
    done = turnkeeper("run", "-", "--json", stdin=text)
    assert done.exit_code == 0
    assert {one["file"] for one in objects(done.output)} == {"-"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", ": is empty"),
        (b"\xff\xfe", ": is no UTF-8 text"),
        (b"[]\n", ":1: expected a JSON object"),
        (b'{"scenario": "x"}\n\n{oops\n', ":3: is no JSON"),
        (b'{"scenario": "x"}\n{"turn_opned": {}}\n', ":2: 'turn_opned' is no step"),
        (b'{"scenario": "x"}\n{"metrics": {"a b{": 1}}\n', ":2: 'a b{' is no sample"),
        (b'{"scenario": "x", "config": {"timers": {"quiet": 1}}}\n', ":1: config: timers.quiet"),
        (b'{"transcript": "x"}\n{"foo": 1}\n', ":2: no step 'foo'"),
        (b'{"transcript": "x"}\n{"foo"\n', ":2: is no JSON"),
    ],
)
def test_a_file_that_cannot_be_read(turnkeeper: Turnkeeper, tmp_path: Path, text: bytes, told: str) -> None:
    file = write(tmp_path, text)
    done = turnkeeper("run", file, "--json")
    assert done.exit_code == 2
    assert f"Error: {file}{told}" in done.stderr
    assert done.stdout == ""


def test_the_others_still_run_beside_one_that_cannot_be_read(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    bad, good, wrong = (write(tmp_path, text, name) for text, name in ((b"", "a"), (PASSES, "b"), (FAILS, "c")))
    done = turnkeeper("run", bad, good, wrong, "--json", "--runtime", "cell")
    assert done.exit_code == 2
    assert [one["passed"] for one in objects(done.stdout)] == [True, False]


def test_control_characters_do_not_reach_the_terminal(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    file = write(tmp_path, RECORDING.replace("somebody asks", "\\u001b[2Jhi").replace("a recording", "\\u001b]0;x"))
    done = turnkeeper("run", file)
    assert done.exit_code == 0
    assert "\x1b" not in done.output


def test_as_a_process(process: Process, tmp_path: Path) -> None:
    good, bad = write(tmp_path, PASSES, "good.jsonl"), write(tmp_path, FAILS, "bad.jsonl")
    assert process("run", good).returncode == 0
    failed = process("run", good, bad)
    assert failed.returncode == 1
    assert "FAILED" in failed.stdout
    assert "\x1b" not in failed.stdout, "no colours outside a terminal"
    assert failed.stderr == "", "no bar outside a terminal"
    assert process("run", "-", stdin=PASSES).returncode == 0


def test_a_bar_over_many_files_is_for_terminals_only(tmp_path: Path) -> None:
    files = [write(tmp_path, PASSES, f"{number}.jsonl") for number in range(30)]
    command = [sys.executable, "-m", "turnkeeper", "run", "--runtime", "cell", *map(str, files)]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs) as running:
        os.close(theirs)
        output = running.communicate(timeout=60)[0]
    shown = os.read(ours, 1 << 16)
    os.close(ours)
    assert running.returncode == 0
    assert output.count(b"passed") == 30
    assert b"30 of 30" in shown
    assert shown.endswith(b"\r\x1b[K"), "the bar is gone at the end"
