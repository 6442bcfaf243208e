"""What a host may write passes mypy --strict and pyright's strict mode; each wrong call is refused by both, on its line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RIGHT = [ROOT / "tests/typing/right.py", ROOT / "examples/embed_asyncio.py", ROOT / "examples/embed_threads.py"]

HEAD = """\
from turnkeeper import ChannelRef, Engine, commands, events, load_config

class Good:
    async def perform(self, command: commands.Command) -> events.Settled | None:
        return None

class Words:
    def perform(self, command: commands.Command) -> str:
        return "sent"

class Narrow:
    def perform(self, command: commands.Send) -> None:
        return None

class Misnamed:
    def performs(self, command: commands.Command) -> None:
        return None

async def wrong(engine: Engine, reply: events.Reply, send: commands.Send) -> None:
"""
WRONG = [
    # engines
    "Engine({})",
    "Engine(5, Good())",
    "Engine({}, object())",
    "Engine({}, Words())",
    "Engine({}, Narrow())",
    "Engine({}, Misnamed())",
    "Engine({}, Good(), None)",
    "Engine({}, Good(), journal='/tmp/journal')",
    "load_config(5)",
    # calls
    "engine.post('hello')",
    "engine.post(send)",
    "engine.post({'type': 'activity', 'chat': 'c1', 'cause': 'x'})",
    "await engine.ask(events.Stopped('c1', 'done'))",
    "engine.call(events.Activity('c1', 'x'))",
    "engine.call(reply, timeout_s='5')",
    "engine.ask(reply).ok",
    "(await engine.ask(reply)).message_id",
    "(await engine.post(reply)).message",
    "engine.post(reply).wait('10')",
    "await engine.turn_settled('c1')",
    "engine.stop('30')",
    "engine.inspect()",
    "engine.reload(5)",
    "engine.poste(reply)",
    # events
    "events.TurnOpened('c1')",
    "events.TurnOpened('c1', 'P', source='main')",
    "events.TurnOpened('c1', 'P', message=6.5)",
    "events.TurnOpened('c1', 'P', channel=100)",
    "events.InputFolded('c1', 'F', 'autosteering')",
    "events.Inbound('c1', kind='msg')",
    "events.Reply('c1')",
    "events.Reply('c1', 'k1', reply_to=5)",
    "events.Settled('c1', 'd1')",
    "events.Settled('c1', 'd1', 'ok')",
    "events.Settled('c1', 'd1', 'sent', messages=9001)",
    "events.Settled('c1', 'd1', 'failed', retry_after_ms='3000')",
    "events.Stopping('c1')",
    "ChannelRef('tg')",
    "ChannelRef('tg', 100)",
    # commands
    "send.quotes",
    "send.text = 'other'",
    "commands.Send('c1', 'd1', ChannelRef('tg', '100'), 'hello')",
    "reply.chat = 'c2'",
]


def checked(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


def mypy(files: list[Path], home: Path) -> dict[int, str]:
    """Return line → what mypy says; turnkeeper itself is the project's own check."""
    ini = home / "mypy.ini"
    ini.write_text(f"[mypy]\nmypy_path = {ROOT}\n[mypy-turnkeeper.*]\nignore_errors = True\n", encoding="utf-8")
    cache = str(ROOT / ".mypy_cache" / "typing")
    options = ["--strict", "--config-file", str(ini), "--output", "json", "--cache-dir", cache]
    done = checked([sys.executable, "-m", "mypy", *options, *map(str, files)], home)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["line"]: one["message"] for one in said if one["severity"] == "error"}


def pyright(files: list[Path], home: Path) -> dict[int, str]:
    """Return line → what pyright says."""
    project = {"include": [file.name for file in files], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    # A call whose result is not used is how each wrong call is written.
    project |= {"pythonVersion": "3.11", "reportUnusedCoroutine": "none", "reportUnusedExpression": "none"}
    (home / "pyrightconfig.json").write_text(json.dumps(project), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(home)]
    done = checked(command, home)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] == len(files)
    return {
        one["range"]["start"]["line"] + 1: one["message"]
        for one in said["generalDiagnostics"]
        if one["severity"] == "error"
    }


CHECKERS = {"mypy": mypy, "pyright": pyright}


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_a_host_writes_is_right(checker: str, tmp_path: Path) -> None:
    copies = [Path(shutil.copy(file, tmp_path)) for file in RIGHT]
    assert CHECKERS[checker](copies, tmp_path) == {}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_wrong_call_is_refused_on_its_line(checker: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + "".join(f"    {call}\n" for call in WRONG), encoding="utf-8")
    first = HEAD.count("\n") + 1
    said = CHECKERS[checker]([program], tmp_path)
    expected = dict(enumerate(WRONG, start=first))
    assert [call for line, call in expected.items() if line not in said] == []
    assert {line: text for line, text in said.items() if line not in expected} == {}


def test_the_right_host_runs() -> None:
    done = checked([sys.executable, "-W", "error", str(RIGHT[0])], ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['Done.']\n", "")
