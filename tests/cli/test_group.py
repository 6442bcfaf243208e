"""The group: what it lists, its version, and that nobody who mistypes sees a traceback."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.cli.conftest import ROOT, Turnkeeper
from turnkeeper.cli import COMMANDS, main

Process = Callable[..., subprocess.CompletedProcess[str]]
OURS = ("run", "compare", "explain-rules", "check-config")
SPEAK_JSON = (*OURS, "simulate", "explore")


def test_help_lists_every_command(turnkeeper: Turnkeeper) -> None:
    shown = turnkeeper("--help")
    assert shown.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in shown.output


@pytest.mark.parametrize("name", list(COMMANDS))
def test_each_command_says_what_it_does(turnkeeper: Turnkeeper, name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.help
    assert turnkeeper(name, "--help").exit_code == 0


@pytest.mark.parametrize("name", SPEAK_JSON)
def test_each_command_speaks_json(turnkeeper: Turnkeeper, name: str) -> None:
    assert "--json" in turnkeeper(name, "--help").output


def test_the_version_is_that_of_the_project(process: Process) -> None:
    shown = process("--version")
    assert shown.returncode == 0
    assert shown.stdout == "turnkeeper 0.1.0\n"


def test_the_command_line_loads_neither_actors_nor_exporter_before_it_needs_them() -> None:
    check = (
        "import sys; from turnkeeper.cli import main\n"
        "main(['explain-rules'], standalone_mode=False)\n"
        "print([name for name in ('pykka', 'prometheus_client') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize(
    "args",
    [
        ("frobnicate",),
        ("run",),
        ("run", "--runtime", "threads", "x.jsonl"),
        ("run", "no/such/file.jsonl"),
        ("run", "tests"),
        ("compare", "examples/incident.jsonl"),
        ("compare", "no/such/file.jsonl", "--set", "timers.quiet_ms=1"),
        ("explain-rules", "no such table"),
        ("explain-rules", "stop", "--diagram"),
        ("explain-rules", "--write", "README.md"),
        ("check-config",),
    ],
)
def test_a_users_mistake_is_told_in_words(process: Process, args: tuple[str, ...]) -> None:
    told = process(*args)
    assert told.returncode == 2
    assert "Error: " in told.stderr
    assert "Traceback" not in told.stderr + told.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "_TURNKEEPER_COMPLETE"
    assert f"{variable}={shell}_source turnkeeper" in (ROOT / "docs" / "CLI.md").read_text(encoding="utf-8")
    if shell == "bash":
        return  # click asks the bash of this machine for its version first
    command = Path(sys.executable).parent / "turnkeeper"
    done = subprocess.run(
        [command], env={variable: f"{shell}_source"}, capture_output=True, text=True, check=True, timeout=60
    )
    assert "turnkeeper" in done.stdout


def test_json_lines_are_json(turnkeeper: Turnkeeper) -> None:
    for line in turnkeeper("explain-rules", "--json").output.splitlines():
        assert json.loads(line)["table"]
