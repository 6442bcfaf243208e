"""Running a scenario: feed the steps, move the clock, compare what came with what was expected."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from turnkeeper.engine.errors import DecodeError, InvariantViolated
from turnkeeper.engine.lab.expectations import Expectations, Mismatch, Unexpected
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.simulation.platform import WatchedPlatform
from turnkeeper.engine.lab.simulation.watcher import Watcher
from turnkeeper.engine.lab.stage import Stage
from turnkeeper.engine.lab.steps import CHECKING
from turnkeeper.engine.lab.trace import Moment, moment_of

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.config import Config
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.lab.runtime import RuntimeMaker
    from turnkeeper.engine.lab.scenario import Scenario, Step
    from turnkeeper.engine.signals import Signal

__all__ = ["Mismatch", "Probe", "Result", "ScenarioRunner", "run_scenario"]


class Probe(Protocol):
    """Counts what runs led to, and reads a sample by its written name, `name{label="value"}`."""

    def observe(self, record: Record, run: Run, /) -> None:
        """Take in a live run."""
        ...

    def sample(self, written: str, /) -> float:
        """Return a sample; 0 if it is absent."""
        ...


class Result(msgspec.Struct, frozen=True):
    """How a scenario went on one runtime."""

    file: str
    scenario: str
    runtime: str
    passed: bool
    mismatch: Mismatch | None
    moments: tuple[Moment, ...]
    rows: frozenset[tuple[str, str]] = frozenset()
    """(table, row) of every decision."""


class ScenarioRunner(Stage):
    """Runs one scenario on one runtime.

    Args:
        scenario: the file, read.
        maker: makes the runtime; the plain cell by default.
        probe: counts for `metrics` steps; without one such a step cannot pass.

    """

    def __init__(self, scenario: Scenario, maker: RuntimeMaker = CellRuntime, probe: Probe | None = None) -> None:
        super().__init__(scenario.config, WatchedPlatform(self._performed, scenario.quirks, scenario.next_message))
        self.scenario = scenario
        self.moments: list[Moment] = []
        self.signals: list[Signal] = []
        self.rows: set[tuple[str, str]] = set()
        self._probe = probe
        self.line = 0
        """The line of the step that runs or ran last."""
        self._broken: list[InvariantViolated] = []
        self._watcher = Watcher(scenario.config) if scenario.judged else None
        self.runtime = maker(self.clock, self.platform, self._observe)
        if scenario.judged or scenario.dies_within:
            # The oracle is for one thread, and the n-th record of a step must be the same one at each run.
            self.runtime.lockstep = True
        self._expectations = Expectations(
            self.platform, self.signals, self.runtime.inspect, None if probe is None else probe.sample
        )

    def _observe(self, record: Record, run: Run) -> None:
        """Take in a live run; a runtime may call this from a thread of its own."""
        self.committed(record)
        self.signals.extend(run.signals)
        self.rows.update((row.table, row.row) for row in run.rows)
        moment = moment_of(record, run, self.line)
        if moment is not None:
            self.moments.append(moment)
        if run.violated:
            self._broken.append(InvariantViolated(f"invariants broken: {', '.join(run.violated)}"))
        try:
            if self._probe is not None:
                self._probe.observe(record, run)
            if self._watcher is not None:
                self._watcher.observe(record, run)
        except InvariantViolated as error:
            self._broken.append(error)

    def _performed(self, command: Command) -> None:
        if self._watcher is not None:
            self._watcher.oracle.performed(command, self.runtime.now_ms())

    def crashed(self, now_ms: int, *, answers_lost: bool) -> None:
        """Let the oracle know."""
        if self._watcher is not None:
            self._watcher.oracle.crashed(now_ms, answers_lost=answers_lost)

    def reconfigured(self, config: Config, now_ms: int) -> None:
        """Let the oracle know."""
        if self._watcher is not None:
            self._watcher.oracle.reloaded(config, now_ms)

    def run(self) -> Result:
        """Run every step; stop at the first mismatch.

        Raises:
            InvariantViolated: a bug of ours.

        """
        mismatch = None
        self.begin()
        try:
            for step in self.scenario.steps:
                self.play(step)
            if not self.scenario.recording:
                self.all_covered()
        except Unexpected as found:
            mismatch = Mismatch(self.line, found.expected, found.actual)
        finally:
            self.runtime.stop()
        return Result(
            self.scenario.file,
            self.scenario.name,
            self.runtime.name,
            mismatch is None,
            mismatch,
            tuple(self.moments),
            frozenset(self.rows),
        )

    def begin(self) -> None:
        """Start the runtime."""
        self.start()

    def play(self, step: Step) -> None:
        """Play one step.

        Raises:
            Unexpected: it is not as expected.
            InvariantViolated: a bug of ours.

        """
        self.line = step.line
        if step.kind == "#":
            return
        if step.kind in CHECKING:
            self._check(step)
        elif step.crash is not None and step.crash.during is not None:
            self.crash(step.crash)
        else:
            self.platform.step = step.deliver if step.deliver is not None else self.platform.default
            self.step(partial(self._step, step))
        if self._broken:
            raise self._broken[0]

    def all_covered(self) -> None:
        """Check that no command is left that no `expect` has covered; raises `Unexpected`."""
        self._expectations.uncovered()

    def _step(self, step: Step) -> None:
        match step.kind:
            case "deliver":
                self.platform.default = self.platform.step
            case "advance":
                self.advance(step.raw["advance"])
            case "settle":
                self._settle(step)
            case _:
                self._act(step)

    def _act(self, step: Step) -> None:
        if step.event is not None:
            self.post(step.event)
        elif step.crash is not None:
            self.crash(step.crash)
        elif step.config is not None:
            self.reload(step.config)

    def _settle(self, step: Step) -> None:
        if step.settling is None:
            return
        try:
            event = self.platform.settle(step.settling)
        except DecodeError as error:
            raise Unexpected(step.raw["settle"], str(error)) from error
        self.post(event)

    def _check(self, step: Step) -> None:
        if step.kind == "complaints":
            self._complaints(step.raw)
        else:
            self._expectations.check(step.kind, step.raw)

    def _complaints(self, raw: dict[str, Any]) -> None:
        """Compare what the oracle and the audit complain of so far; `ended`: of what never came as well."""
        watcher = self._watcher
        if watcher is None:
            raise Unexpected(raw["complaints"], "nobody watched: a scenario with this step is read as a whole")
        watcher.breaches += [f"audit: {one}" for one in self.runtime.audit()]
        if raw.get("ended"):
            watcher.oracle.end()
        if watcher.breaches != raw["complaints"]:
            raise Unexpected(raw["complaints"], watcher.breaches)


def run_scenario(scenario: Scenario, maker: RuntimeMaker = CellRuntime, probe: Probe | None = None) -> Result:
    """Run a scenario on a runtime; a bug of ours raises, a mismatch is a result."""
    return ScenarioRunner(scenario, maker, probe).run()
