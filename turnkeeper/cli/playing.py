"""Playing a file on the runtimes that were asked for: scenarios, recordings and transcript scenarios."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from turnkeeper.engine.errors import DecodeError, EngineError
from turnkeeper.engine.lab import transcripts
from turnkeeper.engine.lab.lines import FILE_MAX_BYTES, bytes_of, parsed
from turnkeeper.engine.lab.runner import Mismatch, ScenarioRunner
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.scenario import Scenario, is_transcript, read_scenario
from turnkeeper.engine.lab.trace import Moment

if TYPE_CHECKING:
    from turnkeeper.engine.lab.runtime import RuntimeMaker

__all__ = ["RUNTIMES", "Played", "RuntimeName", "comments_of", "maker_of", "play_file", "read_bytes"]

RuntimeName = Literal["cell", "actors", "sqlite"]
RUNTIMES: dict[str, tuple[RuntimeName, ...]] = {
    "cell": ("cell",),
    "actors": ("actors",),
    "sqlite": ("sqlite",),
    "both": ("cell", "actors"),
    "all": ("cell", "actors", "sqlite"),
}
"""The words of `--runtime`."""
TRANSCRIPT = "transcript"
"""What stands for the runtime of a transcript scenario: it needs none."""


class Played(msgspec.Struct, frozen=True):
    """How a file went on one runtime."""

    file: str
    scenario: str
    runtime: str
    passed: bool
    mismatch: Mismatch | None = None
    checked: bool = True
    """False: a recording, in which nothing could fail."""
    moments: tuple[Moment, ...] = ()
    comments: tuple[tuple[int, str], ...] = ()
    """Line and text of each comment."""

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "file": self.file,
            "scenario": self.scenario,
            "runtime": self.runtime,
            "passed": self.passed,
            "mismatch": None if self.mismatch is None else msgspec.structs.asdict(self.mismatch),
        }


def read_bytes(file: Path) -> bytes:
    """Read a file, or standard input for `-`; raises as `bytes_of`."""
    return sys.stdin.buffer.read(FILE_MAX_BYTES + 1) if str(file) == "-" else bytes_of(file)


def play_file(file: Path, runtimes: tuple[RuntimeName, ...]) -> list[Played]:
    """Run a file of any kind.

    Raises:
        DecodeError: it cannot be read; the text names file, line and what is wrong.

    """
    data = read_bytes(file)
    lines = parsed(data, str(file))
    if is_transcript(lines):
        return [_play_transcript(str(file), data)]
    scenario = read_scenario(file, lines)
    return [_play(scenario, runtime) for runtime in runtimes]


def _play_transcript(name: str, data: bytes) -> Played:
    try:
        done = transcripts.run_transcript(transcripts.read_lines(data.splitlines()))
    except DecodeError as error:
        line, colon, wrong = str(error).removeprefix("line ").partition(": ")
        where = f"{name}:{line}: {wrong}" if colon and line.isdecimal() else f"{name}: {error}"
        raise DecodeError(where) from error
    missed = None if done.mismatch is None else Mismatch(**msgspec.structs.asdict(done.mismatch))
    return Played(name, done.scenario, TRANSCRIPT, done.passed, missed)


def maker_of(runtime: RuntimeName) -> RuntimeMaker:
    """Return what makes a runtime; pykka is only loaded for the one that needs it."""
    if runtime == "cell":
        return CellRuntime
    from turnkeeper.actors.runtime import ActorsRuntime, SqliteRuntime

    return ActorsRuntime if runtime == "actors" else SqliteRuntime


def _play(scenario: Scenario, runtime: RuntimeName) -> Played:
    from turnkeeper.metrics.probe import RegistryProbe

    runner = ScenarioRunner(scenario, maker_of(runtime), RegistryProbe())
    try:
        mismatch = runner.run().mismatch
    except DecodeError as error:
        raise DecodeError(f"{scenario.file}:{runner.line}: {error}") from error
    except (EngineError, TimeoutError) as error:
        # A bug of ours, or an engine that cannot go on: the scenario did not pass, and the others still run.
        mismatch = Mismatch(runner.line, "no error", f"{type(error).__name__}: {error}")
    return Played(
        scenario.file,
        scenario.name,
        runtime,
        mismatch is None,
        mismatch,
        scenario.checked,
        tuple(runner.moments),
        comments_of(scenario),
    )


def comments_of(scenario: Scenario) -> tuple[tuple[int, str], ...]:
    """Return line and text of each comment."""
    return tuple((step.line, str(step.raw["#"])) for step in scenario.steps if step.kind == "#")
