"""One mutant, one process: the changed module takes the place of the file's, and scenarios run until one differs.

Nothing is written to the disk. The process is forked before the engine is imported, so the changed module is the
one that everything else imports.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from tests.mutation.plan import ROOT, Mutant

__all__ = ["Reached", "forked", "reached_by", "try_out"]

SCENARIOS = ROOT / "tests" / "scenarios"
PATIENCE_S = 30
Reached = dict[tuple[str, int], list[str]]
"""(file, first line of a function) → the scenarios that call it."""


def forked(work: Callable[[], Any]) -> Any:
    """Do some work in a process of its own; None if it died or took too long."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(work(), pipe)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(told) if told else None  # noqa: S301 - our own process wrote it


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module another text."""

    def __init__(self, name: str, path: Path, code: str) -> None:
        self._name, self._path, self._code = name, path, code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the changed module, and leave the others to others."""
        if fullname != self._name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self._path))

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed text."""
        exec(compile(self._code, str(self._path), "exec"), module.__dict__)  # noqa: S102 - that is what it is for


def try_out(mutant: Mutant, stems: list[str], seeds: int = 0) -> tuple[str, str]:
    """Run scenarios with a mutant until one notices; returns (how it ended, which scenario noticed).

    A survivor may be given to the simulator for so many seeds: then it is told that it was noticed there.
    """
    name = "turnkeeper." + mutant.file.removesuffix(".py").replace("/", ".")
    sys.meta_path.insert(0, Changed(name, mutant.path, mutant.code()))
    signal.alarm(PATIENCE_S)
    warnings.simplefilter("ignore")  # a change may compare a literal by identity
    try:
        from turnkeeper.engine.lab.runner import ScenarioRunner
        from turnkeeper.engine.lab.runtime import CellRuntime
        from turnkeeper.engine.lab.scenario import read_scenario
        from turnkeeper.metrics.probe import RegistryProbe
    except Exception as error:  # noqa: BLE001 - a table that is incomplete says so at import
        return "refused at import", type(error).__name__
    for stem in stems:
        try:
            scenario = read_scenario(SCENARIOS / f"{stem}.jsonl")
            runner = ScenarioRunner(scenario, _quick(CellRuntime), RegistryProbe())
            passed = runner.run().passed
        except Exception:  # noqa: BLE001 - a step that raises is noticed as well
            passed = False
        if not passed:
            return "killed", stem
    return _simulated(seeds) if seeds else ("survived", "")


def _simulated(seeds: int) -> tuple[str, str]:
    from turnkeeper.engine.lab.simulator import simulate_seed

    signal.alarm(PATIENCE_S * 4)
    for seed in range(seeds):
        if simulate_seed(seed, paranoid=False).breaches:
            return "noticed by the simulator", f"seed {seed}"
    return "survived", "the simulator, too"


def _quick(runtime: Any) -> Any:
    return lambda clock, platform, observe: runtime(clock, platform, observe, paranoid=False)


def reached_by() -> tuple[Reached, list[str]]:
    """Run every scenario once, and note which functions of the rules it calls; returns those that pass, too."""
    from turnkeeper.engine.lab.lines import lines_of
    from turnkeeper.engine.lab.runner import ScenarioRunner
    from turnkeeper.engine.lab.runtime import CellRuntime
    from turnkeeper.engine.lab.scenario import is_transcript, read_scenario
    from turnkeeper.metrics.probe import RegistryProbe

    reached: Reached = {}
    passing: list[str] = []
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    for file in sorted(SCENARIOS.glob("*.jsonl")):
        lines = lines_of(file)
        if is_transcript(lines):
            continue
        called.clear()
        runner = ScenarioRunner(read_scenario(file, lines), _quick(CellRuntime), RegistryProbe())
        sys.setprofile(note)
        try:
            passed = runner.run().passed
        finally:
            sys.setprofile(None)
        if not passed:
            continue
        passing.append(file.stem)
        for code in called:
            if "/engine/" in code.co_filename:
                path = "engine/" + code.co_filename.rpartition("/engine/")[2]
                reached.setdefault((path, code.co_firstlineno), []).append(file.stem)
    return reached, passing
