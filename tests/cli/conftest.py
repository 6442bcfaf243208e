"""What the tests of the command line share: the command in this process, and as a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from turnkeeper.cli import main

ROOT = Path(__file__).resolve().parents[2]
Turnkeeper = Callable[..., Result]


@pytest.fixture
def turnkeeper(monkeypatch: pytest.MonkeyPatch) -> Turnkeeper:
    """Run the command in this process, in the project's root and for 100 columns; `columns` says otherwise."""
    monkeypatch.chdir(ROOT)

    def run(*args: str | Path, stdin: str | bytes | None = None, columns: int = 100) -> Result:
        monkeypatch.setenv("COLUMNS", str(columns))
        return CliRunner().invoke(main, [str(arg) for arg in args], input=stdin)

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command as a user's shell does."""

    def run(*args: str | Path, stdin: str = "", columns: int = 100) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "turnkeeper", *map(str, args)],
            cwd=ROOT,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={"COLUMNS": str(columns), "PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "utf-8"},
        )

    return run
