"""What a user gets wrong is told in a line or two, and never with a traceback: the whole program, run as it is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT

INCIDENT = str(ROOT / "examples" / "incident.jsonl")
HEADER = b'{"scenario": "s"}\n'
FILES = {
    "binary": b"\xff\xfe",
    "empty": b"",
    "ok": HEADER,
    "deep": HEADER + b'{"reply": {"call_id": "k", "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}\n",
    "long": HEADER + b'{"advance": 1' + b"0" * 5_000 + b"}\n",
    "nan": HEADER + b'{"advance": NaN}\n',
    "list": b"[1]\n",
    "surrogate": b'{"scenario": "\\ud800"}\n{"reply": {"call_id": "k", "turn_id": "P", "text": "\\udc00"}}\n',
    "deep.toml": b"a = " + b"[" * 5_000 + b"]" * 5_000,
    "long.toml": b"[timers]\nquiet_ms = " + b"9" * 5_000,
    "latin.toml": b'[refusal]\nmark = "\xe9"\n',
}
MISTAKES = {
    "foo": (2, "No such command 'foo'"),
    "run": (2, "Missing argument 'FILES...'"),
    "run no": (2, "no: cannot be read (No such file or directory); give the path of a JSON Lines file"),
    "run .": (2, ".: cannot be read (Is a directory)"),
    "run binary": (2, "binary: is no UTF-8 text"),
    "run empty": (2, "empty: is empty; the first line is a header"),
    "run deep": (2, "deep:2: nested deeper than 64 levels"),
    "run long": (2, "long:2: is no JSON (Exceeds the limit"),
    "run nan": (2, "nan:2: advance is nan; expected milliseconds, 0 or more"),
    "run list": (2, "list:1: expected a JSON object"),
    "run --json no": (2, "no: cannot be read"),
    "run --runtime x ok": (2, "'x' is not one of"),
    "run surrogate": (0, ""),
    "run -": (2, "-: is empty"),
    "compare ok": (2, "Missing option '--set'"),
    "compare ok --set x": (2, "--set x: expected KEY=VALUE"),
    "compare ok --set timers.quit_ms=5": (2, "did you mean timers.quiet_ms?"),
    f"compare ok --set timers.quiet_ms={'9' * 5_000}": (2, "--set: timers.quiet_ms is "),
    f"compare ok --set delivery.backoff_ms={'[' * 5_000}": (2, "--set: delivery.backoff_ms is "),
    "compare surrogate --set timers.quiet_ms=5": (0, ""),
    "simulate --seeds 0": (2, "0 is not in the range"),
    "simulate --out no/folder": (2, "'no/folder' does not exist"),
    "explain-rules attributio": (2, "did you mean attribution?"),
    "explain-rules attribution --diagram": (2, "give one of TABLE"),
    "explain-rules --write empty": (2, "'empty' is a file"),
    "check-config no": (1, "no: cannot be read"),
    "check-config deep.toml": (1, "deep.toml: is no TOML (maximum recursion depth exceeded"),
    "check-config long.toml": (1, "long.toml: is no TOML (Exceeds the limit"),
    "check-config latin.toml": (1, "latin.toml: is no TOML ('utf-8' codec"),
    "transcript view no": (2, "no: No such file or directory"),
    "transcript check empty": (2, "empty: it is empty"),
    "transcript view binary": (2, "binary: no session file"),
    "journal info no": (2, "no: cannot be read"),
    "journal dump ok": (2, "ok: is no journal"),
}


def program(*arguments: str, cwd: Path, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "turnkeeper", *arguments]
    options: dict[str, object] = {"stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL, "check": False} | more
    return subprocess.run(command, cwd=cwd, stderr=subprocess.PIPE, text=True, timeout=60, **options)  # type: ignore[call-overload, no-any-return]  # noqa: PLW1510


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (home / name).write_bytes(content)
    return home


@pytest.mark.parametrize("line", MISTAKES, ids=lambda line: line[:40])
def test_a_mistake_is_told(line: str, folder: Path) -> None:
    code, said = MISTAKES[line]
    done = program(*line.split(), cwd=folder)
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == code
    assert said in done.stderr
    assert len(done.stderr) < 1_000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux")
@pytest.mark.parametrize("line", ["explain-rules", "explain-rules attribution --json", f"run {INCIDENT}"])
def test_an_output_that_is_full_is_told(line: str, folder: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = program(*line.split(), cwd=folder, stdout=full)
    assert "Traceback" not in done.stderr
    assert "the output cannot be written (No space left on device)" in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize("env", [{"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"COLUMNS": "none"}, {"COLUMNS": "1"}])
def test_an_odd_terminal_gets_an_answer(env: dict[str, str], folder: Path) -> None:
    line = ("compare", INCIDENT, "--set", "attribution.fold_proof=off")
    done = program(*line, cwd=folder, env=os.environ | env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "quoting 6407" in done.stdout
