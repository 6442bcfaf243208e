"""Plays steps of the scenario language on a runtime, as the scenario runner does, and lets an oracle watch.

It differs from the runner in three things: a step that cannot be played (what it settles was never sent, in a
shortened script) is passed over; a crash can come in the middle of the step before it, after any record; and
nothing is compared with expectations, the oracle judges instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnkeeper.engine.errors import DecodeError, InvariantViolated
from turnkeeper.engine.invariants import audit
from turnkeeper.engine.lab.clock import VirtualClock
from turnkeeper.engine.lab.platform import Directive, directive_from
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.scenario import scenario_config
from turnkeeper.engine.lab.simulation.oracle import Oracle
from turnkeeper.engine.lab.simulation.platform import Quirks, WatchedPlatform
from turnkeeper.engine.lab.steps import event_of, settling_of

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.events import Event
    from turnkeeper.engine.journal import Body, Record
    from turnkeeper.engine.signals import Signal

__all__ = ["CUT", "Player", "Raw"]

Raw = dict[str, Any]
"""A step as JSON."""
CUT = "# cut"
"""A step that only a simulation has: crash during the next step, before or after its n-th record."""
RECORDS_MAX = 50_000


class Cut(BaseException):
    """The process died here."""


class FragileRuntime(CellRuntime):
    """The plain cell, in a process that dies when it is told to."""

    left = RECORDS_MAX
    """Records until something is wrong: nothing that is simulated takes so many."""
    cut: int | None = None
    """Records until it dies; None: it lives."""
    cut_before = False
    """It dies before the record is written, and so after what the last one led to was performed."""

    def _run(self, body: Body, *also: Signal) -> Run:
        self.left -= 1
        if not self.left:
            raise InvariantViolated(f"more than {RECORDS_MAX} records; something goes on for ever")
        if self.cut is None:
            return super()._run(body, *also)
        self.cut -= 1
        if self.cut <= 0 and self.cut_before:
            raise Cut
        run = super()._run(body, *also)
        if self.cut <= 0:
            raise Cut
        return run


class Player:
    """Plays one script.

    Args:
        config: in the shape of the TOML file.
        paranoid: check that no step changes the state it was given.
        quirks: in what the host differs from a scenario's.

    """

    def __init__(self, config: Raw, *, paranoid: bool = False, quirks: Quirks | None = None) -> None:
        self.config = scenario_config(config, "config")
        self.clock = VirtualClock()
        self.rows: set[tuple[str, str]] = set()
        self.signals: set[str] = set()
        self.breaches: list[str] = []
        self.played = 0
        self.oracle = Oracle(self.config, self.breaches)
        self.platform = WatchedPlatform(self._performed, quirks or Quirks())
        self.runtime = FragileRuntime(self.clock, self.platform, self._observe, paranoid=paranoid)
        self._chats: dict[str, None] = {}
        self._cut: Raw | None = None
        self._posting: Event | None = None
        """What was posted and is not committed yet."""
        self.runtime.start(self.config, reconciles=False)

    def _performed(self, command: Command) -> None:
        self.oracle.performed(command, self.clock.now_ms())

    def _observe(self, record: Record, run: Run) -> None:
        if record.body.event is self._posting:
            self._posting = None
        for row in run.rows:
            self.rows.add((row.table, row.row))
        self.breaches += [f"invariant {name}" for name in run.violated]
        if run.error is not None:
            self.breaches.append(f"set aside: {type(run.error).__name__}: {run.error}")
        for signal in run.signals:
            self.signals.add(str(type(signal).__struct_config__.tag))
        self.oracle.ran(record.body, run, self.clock.now_ms())

    def play(self, raw: Raw) -> None:
        """Play one step."""
        self.played += 1
        kind = next(iter(raw))
        if kind == CUT:
            self._cut = raw[CUT]
            return
        self.platform.step = directive_from(raw["deliver"]) if "deliver" in raw else self.platform.default
        cut, self._cut = self._cut, None
        try:
            if cut is None:
                self._step(kind, raw)
            else:
                self._cut_short(cut, kind, raw)
        except InvariantViolated as error:
            self.breaches.append(f"invariant: {error}")

    def _cut_short(self, cut: Raw, kind: str, raw: Raw) -> None:
        """Die in the middle of a step; one that is too short for that is followed by the crash."""
        self.runtime.cut, self.runtime.cut_before = cut["records"], cut["before"]
        died = False
        try:
            self._step(kind, raw)
        except Cut:
            died = True
        self.runtime.cut = None
        down: Raw = {name: cut[name] for name in ("down_ms", "reconcile") if name in cut}
        self._crash(down, answers_lost=died)
        unread, self._posting = self._posting, None
        if unread is not None:
            # It was never admitted, so its sender posts it again.
            self._post(unread)

    def _step(self, kind: str, raw: Raw) -> None:
        match kind:
            case "advance":
                self._advance(raw["advance"])
            case "deliver":
                self.platform.default = directive_from(raw["deliver"])
            case "settle":
                try:
                    event = self.platform.settle(settling_of(raw["settle"]))
                except DecodeError:
                    return
                self._post(event)
            case "crash":
                self._crash(raw)
            case "reload":
                config = scenario_config(raw["reload"], "reload")
                self.oracle.reloaded(config, self.clock.now_ms())
                self.runtime.reload(config)
            case "#":
                pass
            case _:
                self._post(event_of(kind, raw[kind]))

    def _post(self, event: Event) -> None:
        self._chats[event.chat] = None
        self._posting = event
        self.runtime.post(event)
        self._settle_all()

    def _settle_all(self) -> None:
        self._plan()
        while (event := self.platform.take()) is not None:
            self.runtime.post(event)
            self._plan()

    def _plan(self) -> None:
        for chat in self._chats:
            self.platform.plan(self.runtime.queued(chat))

    def _advance(self, span_ms: int) -> None:
        until_ms = self.clock.now_ms() + span_ms
        while (due_ms := self.runtime.next_due_ms()) is not None and due_ms <= until_ms:
            self.clock.advance_to(due_ms)
            self.runtime.quiesce()
            self._settle_all()
        self.clock.advance_to(until_ms)
        self.runtime.quiesce()
        self._settle_all()

    def _crash(self, raw: Raw, *, answers_lost: bool = False) -> None:
        self.platform.lose_answers()
        self.runtime.crash()
        self.oracle.crashed(self.clock.now_ms(), answers_lost=answers_lost)
        self.clock.advance_to(self.clock.now_ms() + raw.get("down_ms", 0))
        self.platform.reconciliation = raw.get("reconcile", {})
        self.oracle.reloaded(self.config, self.clock.now_ms())
        self.runtime.start(self.config, reconciles="reconcile" in raw)
        self.breaches += [f"replay differs at {one.seq}" for one in self.runtime.replayed.differs]
        self._settle_all()

    def audit(self) -> None:
        """Check that the owners of the whole cell agree."""
        self.breaches += [f"audit: {found}" for found in audit(self.runtime.cell.owners)]

    def released(self) -> None:
        """From here on the platform settles everything at once."""
        self.platform.default = Directive()
