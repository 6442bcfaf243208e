"""Running a scenario: feed the steps, move the clock, compare what came with what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.lab.clock import VirtualClock
from turnkeeper.engine.lab.matching import at_path, matches, pair_up, plain
from turnkeeper.engine.lab.platform import HIDDEN, Platform
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.trace import Moment, describe, moment_of
from turnkeeper.engine.commands import Ack

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.lab.runtime import RuntimeMaker
    from turnkeeper.engine.lab.scenario import Scenario, Step
    from turnkeeper.engine.signals import Signal

__all__ = ["Mismatch", "Probe", "Result", "ScenarioRunner", "run_scenario"]

Named = tuple[str, dict[str, Any]]


class Probe(Protocol):
    """Counts what runs led to, and reads a sample by its written name, `name{label="value"}`."""

    def observe(self, record: Record, run: Run, /) -> None:
        """Take in a live run."""
        ...

    def sample(self, written: str, /) -> float:
        """Return a sample; 0 if it is absent."""
        ...


class Mismatch(msgspec.Struct, frozen=True):
    """The first thing that was not as expected."""

    line: int
    expected: Any
    actual: Any


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


class Unexpected(Exception):  # noqa: N818 - control flow of the runner, never seen outside
    """A step was not as expected."""

    def __init__(self, expected: object, actual: object) -> None:
        super().__init__()
        self.expected = expected
        self.actual = actual


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
        self._chats: dict[str, None] = {}
        self._covered = 0
        self.runtime = maker(self.clock, self.platform, self._observe)

    def _observe(self, record: Record, run: Run) -> None:
        self.signals.extend(run.signals)
        self.rows.update((row.table, row.row) for row in run.rows)
        if run.violated:
            raise AssertionError(f"invariants broken: {', '.join(run.violated)}")
        moment = moment_of(record, run)
        if moment is not None:
            self.moments.append(moment)
        if self._probe is not None:
            self._probe.observe(record, run)

    def run(self) -> Result:
        """Run every step; stop at the first mismatch."""
        line, mismatch = 0, None
        self.runtime.start(self.scenario.config, reconciles=False)
        try:
            for step in self.scenario.steps:
                line = step.line
                self._step(step)
            self._uncovered()
        except Unexpected as found:
            mismatch = Mismatch(line, found.expected, found.actual)
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

    def _step(self, step: Step) -> None:
        if step.kind == "deliver" and step.deliver is not None:
            self.platform.default = step.deliver
            return
        self.platform.step = step.deliver if step.deliver is not None else self.platform.default
        match step.kind:
            case "event" if step.event is not None:
                self._chats[step.event.chat] = None
                self.runtime.post(step.event)
                self._settle_all()
            case "advance":
                self._advance(step.raw["advance"])
            case "settle" if step.settling is not None:
                self._settle(step)
            case "crash":
                self._crash(step.raw)
            case "reload" if step.config is not None:
                self.runtime.reload(step.config)
            case "expect":
                self._expect(step.raw)
            case "signals" | "never":
                self._signals(step.raw)
            case "metrics":
                self._metrics(step.raw["metrics"])
            case "state":
                self._state(step.raw)

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
        self.runtime.start(self.scenario.config, reconciles="reconcile" in raw)
        self._settle_all()

    def _expect(self, raw: dict[str, Any]) -> None:
        ordered = raw.get("ordered", False)
        new = self.platform.performed[self._covered :]
        self._covered = len(self.platform.performed)
        shown = [command for command in new if not isinstance(command, HIDDEN)]
        wanted = [_item(item) for item in raw["expect"]]
        if not _same(wanted, [(_tag(command), plain(command)) for command in shown], ordered=ordered):
            raise Unexpected(raw["expect"], [describe(command) for command in shown])
        if "acks" in raw:
            acks = [command for command in new if isinstance(command, Ack)]
            wanted = [("ack", fields) for fields in raw["acks"]]
            if not _same(wanted, [("ack", plain(ack)) for ack in acks], ordered=ordered):
                raise Unexpected({"acks": raw["acks"]}, [describe(ack) for ack in acks])

    def _uncovered(self) -> None:
        left = [c for c in self.platform.performed[self._covered :] if not isinstance(c, HIDDEN)]
        if left and not self.scenario.recording:
            raise Unexpected("no command that an expect has not covered", [describe(command) for command in left])

    def _signals(self, raw: dict[str, Any]) -> None:
        came = [(_tag(signal), plain(signal)) for signal in self.signals]
        wanted = [_item(item) for item in raw.get("signals", [])]
        found = _subsequence(wanted, came) if raw.get("ordered", False) else pair_up(wanted, came)
        if not found:
            raise Unexpected(raw.get("signals"), [name for name, _ in came])
        banned = set(raw.get("never", []))
        bad = [name for name, _ in came if name in banned]
        if bad:
            raise Unexpected({"never": sorted(banned)}, bad)

    def _metrics(self, wanted: dict[str, float]) -> None:
        if self._probe is None:
            raise Unexpected(wanted, "no metrics are collected here; run it by `turnkeeper run`")
        actual = {name: self._probe.sample(name) for name in wanted}
        if actual != wanted:
            raise Unexpected(wanted, actual)

    def _state(self, raw: dict[str, Any]) -> None:
        seen = self.runtime.inspect(raw.get("chat", "c1"))
        actual = {path: at_path(seen, path) for path in raw["state"]}
        if actual != raw["state"]:
            raise Unexpected(raw["state"], actual)


def _tag(value: msgspec.Struct) -> str:
    return str(type(value).__struct_config__.tag)


def _item(item: object) -> Named:
    """Read an expected item: a name, or a name with fields."""
    if isinstance(item, str):
        return item, {}
    if isinstance(item, dict) and len(item) == 1:
        name, fields = next(iter(item.items()))
        return str(name), fields if isinstance(fields, dict) else {}
    raise DecodeError(f"{item!r} is no expected item; write a name or {{name: {{fields}}}}")


def _same(wanted: list[Named], came: list[Named], *, ordered: bool) -> bool:
    if len(wanted) != len(came):
        return False
    if ordered:
        return all(w[0] == c[0] and matches(w[1], c[1]) for w, c in zip(wanted, came, strict=True))
    return pair_up(wanted, came)


def _subsequence(wanted: list[Named], came: list[Named]) -> bool:
    rest = iter(came)
    return all(any(w[0] == c[0] and matches(w[1], c[1]) for c in rest) for w in wanted)


def run_scenario(scenario: Scenario, maker: RuntimeMaker = CellRuntime, probe: Probe | None = None) -> Result:
    """Run a scenario on a runtime; a bug of ours raises, a mismatch is a result."""
    return ScenarioRunner(scenario, maker, probe).run()
