"""Running a scenario: feed the steps, move the clock, compare what came with what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from turnkeeper.engine.errors import DecodeError, InvariantViolated
from turnkeeper.engine.lab.clock import VirtualClock
from turnkeeper.engine.lab.expectations import Expectations, Mismatch, Unexpected
from turnkeeper.engine.lab.platform import Platform
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.trace import Moment, moment_of

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
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


class ScenarioRunner:
    """Runs one scenario on one runtime.

    Args:
        scenario: the file, read.
        maker: makes the runtime; the plain cell by default.
        probe: counts for `metrics` steps; without one such a step cannot pass.

    """

    def __init__(self, scenario: Scenario, maker: RuntimeMaker = CellRuntime, probe: Probe | None = None) -> None:
        self.scenario = scenario
        self.clock = VirtualClock()
        self.platform = Platform(scenario.next_message)
        self.moments: list[Moment] = []
        self.signals: list[Signal] = []
        self.rows: set[tuple[str, str]] = set()
        self._probe = probe
        self.line = 0
        """The line of the step that runs or ran last."""
        self._config = scenario.config
        """What a host's file says now: a restart after a reload reads the same."""
        self._chats: dict[str, None] = {}
        self._broken: list[InvariantViolated] = []
        self.runtime = maker(self.clock, self.platform, self._observe)
        self._expectations = Expectations(
            self.platform, self.signals, self.runtime.inspect, None if probe is None else probe.sample
        )

    def _observe(self, record: Record, run: Run) -> None:
        """Take in a live run; a runtime may call this from a thread of its own, so nothing is raised here."""
        self.signals.extend(run.signals)
        self.rows.update((row.table, row.row) for row in run.rows)
        moment = moment_of(record, run, self.line)
        if moment is not None:
            self.moments.append(moment)
        if run.violated:
            self._broken.append(InvariantViolated(f"invariants broken: {', '.join(run.violated)}"))
        if self._probe is not None:
            try:
                self._probe.observe(record, run)
            except InvariantViolated as error:
                self._broken.append(error)

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
        self.runtime.start(self._config, reconciles=False)

    def play(self, step: Step) -> None:
        """Play one step.

        Raises:
            Unexpected: it is not as expected.
            InvariantViolated: a bug of ours.

        """
        self.line = step.line
        self.platform.step = step.deliver if step.deliver is not None else self.platform.default
        self._step(step)
        if self._broken:
            raise self._broken[0]

    def all_covered(self) -> None:
        """Check that no command is left that no `expect` has covered; raises `Unexpected`."""
        self._expectations.uncovered()

    def _step(self, step: Step) -> None:
        match step.kind:
            case "event":
                self._event(step)
            case "deliver":
                self.platform.default = self.platform.step
            case "advance":
                self._advance(step.raw["advance"])
            case "settle":
                self._settle(step)
            case "crash":
                self._crash(step.raw)
            case "reload":
                self._reload(step)
            case _:
                self._expectations.check(step.kind, step.raw)

    def _event(self, step: Step) -> None:
        if step.event is not None:
            self._chats[step.event.chat] = None
            self.runtime.post(step.event)
            self._settle_all()

    def _settle_all(self) -> None:
        """Post what the platform has to say, until it has nothing more to say."""
        self._plan()
        while (event := self.platform.take()) is not None:
            self.runtime.post(event)
            self._plan()

    def _plan(self) -> None:
        for chat in self._chats:
            self.platform.plan(self.runtime.queued(chat))

    def _advance(self, span_ms: int) -> None:
        """Move the clock, stopping at every deadline on the way."""
        until_ms = self.clock.now_ms() + span_ms
        while (due_ms := self.runtime.next_due_ms()) is not None and due_ms <= until_ms:
            self.clock.advance_to(due_ms)
            self.runtime.quiesce()
            self._settle_all()
        self.clock.advance_to(until_ms)
        self.runtime.quiesce()
        self._settle_all()

    def _settle(self, step: Step) -> None:
        if step.settling is None:
            return
        try:
            event = self.platform.settle(step.settling)
        except DecodeError as error:
            raise Unexpected(step.raw["settle"], str(error)) from error
        self.runtime.post(event)
        self._settle_all()

    def _crash(self, raw: dict[str, Any]) -> None:
        self.runtime.crash()
        self.clock.advance_to(self.clock.now_ms() + raw.get("down_ms", 0))
        self.platform.reconciliation = raw.get("reconcile", {})
        self.runtime.start(self._config, reconciles="reconcile" in raw)
        self._settle_all()

    def _reload(self, step: Step) -> None:
        if step.config is not None:
            self._config = step.config
            self.runtime.reload(step.config)
            self.runtime.quiesce()
            self._settle_all()


def run_scenario(scenario: Scenario, maker: RuntimeMaker = CellRuntime, probe: Probe | None = None) -> Result:
    """Run a scenario on a runtime; a bug of ours raises, a mismatch is a result."""
    return ScenarioRunner(scenario, maker, probe).run()
