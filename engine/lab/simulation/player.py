"""Plays steps of the scenario language on a runtime, and lets an oracle watch.

It differs from the scenario runner in two things: a step that cannot be played (what it settles was never sent,
in a shortened script) is passed over; and nothing is compared with expectations, the oracle judges instead.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnkeeper.engine.errors import DecodeError, InvariantViolated
from turnkeeper.engine.lab.platform import Directive, directive_from
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.scenario import scenario_config
from turnkeeper.engine.lab.simulation.platform import Quirks, WatchedPlatform
from turnkeeper.engine.lab.simulation.watcher import Watcher
from turnkeeper.engine.lab.stage import Stage
from turnkeeper.engine.lab.steps import crash_of, event_of, settling_of

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.config import Config
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.lab.runtime import RuntimeMaker
    from turnkeeper.engine.lab.steps import Crash

__all__ = ["Player", "Raw"]

Raw = dict[str, Any]
"""A step as JSON."""


class Player(Stage):
    """Plays one script.

    Args:
        config: in the shape of the TOML file.
        paranoid: on the plain cell, check that no step changes the state it was given.
        quirks: in what the host differs from a scenario's.
        maker: makes what it plays on; the plain cell if absent.

    """

    def __init__(
        self, config: Raw, *, paranoid: bool = False, quirks: Quirks | None = None, maker: RuntimeMaker | None = None
    ) -> None:
        read = scenario_config(config, "config")
        super().__init__(read, WatchedPlatform(self._performed, quirks or Quirks()))
        self.watcher = Watcher(read)
        self.oracle, self.breaches = self.watcher.oracle, self.watcher.breaches
        self.rows, self.signals = self.watcher.rows, self.watcher.signals
        self.played = 0
        self.steps: list[Raw] = []
        """The steps that did something, as a scenario file holds them."""
        self._first = config
        self._reloaded = False
        self._passed_over = False
        make = partial(CellRuntime, paranoid=paranoid) if maker is None else maker
        self.runtime = make(self.clock, self.platform, self._observe)
        self.runtime.lockstep = True
        self.start()

    @property
    def plain(self) -> CellRuntime:
        """The plain cell, where it plays on that."""
        assert isinstance(self.runtime, CellRuntime)
        return self.runtime

    def close(self) -> None:
        """End the runtime, in good order if it did nothing wrong."""
        if self.breaches:
            self.runtime.crash()
        self.runtime.stop()

    def _performed(self, command: Command) -> None:
        self.oracle.performed(command, self.runtime.now_ms())

    def _observe(self, record: Record, run: Run) -> None:
        self.committed(record)
        self.watcher.observe(record, run)

    def crashed(self, now_ms: int, *, answers_lost: bool) -> None:
        """Let the oracle know."""
        self.oracle.crashed(now_ms, answers_lost=answers_lost)

    def reconfigured(self, config: Config, now_ms: int) -> None:
        """Let the oracle know."""
        self.oracle.reloaded(config, now_ms)

    def play(self, raw: Raw) -> None:
        """Play one step."""
        self.played += 1
        kind = next(iter(raw))
        if kind == "crash" and self._reloaded:
            # Whoever restarts the process did not keep what was reloaded.
            raw = {**raw, "reload": self._first}
        self.steps.append(raw)
        if kind == "#":
            return
        if "during" in raw:
            self.crash(_crash(raw))
            return
        self.platform.step = directive_from(raw["deliver"]) if "deliver" in raw else self.platform.default
        armed, self._passed_over = self._armed is not None, False
        try:
            self.step(partial(self._step, kind, raw))
        except InvariantViolated as error:
            self.breaches.append(f"invariant: {error}")
        if self._passed_over:
            self._forget_step(armed=armed)

    def _forget_step(self, *, armed: bool) -> None:
        """The last step did nothing; a crash that was to come in it came in its place."""
        del self.steps[-1]
        if armed:
            self.steps[-1] = {name: value for name, value in self.steps[-1].items() if name != "during"}

    def _step(self, kind: str, raw: Raw) -> None:
        match kind:
            case "advance":
                self.advance(raw["advance"])
            case "deliver":
                self.platform.default = directive_from(raw["deliver"])
            case "settle":
                try:
                    event = self.platform.settle(settling_of(raw["settle"]))
                except DecodeError:
                    self._passed_over = True
                    return
                self.post(event)
            case "crash":
                self.crash(_crash(raw))
            case "reload":
                self._reloaded = True
                self.reload(scenario_config(raw["reload"], "reload"))
            case _:
                self.post(event_of(kind, raw[kind]))

    def judge(self, *, ended: bool = False) -> None:
        """Check that the owners of the whole cell agree; `ended`: and that nothing is missing any more."""
        self.breaches += [f"audit: {found}" for found in self.runtime.audit()]
        if ended:
            self.oracle.end()
        self.steps.append({"complaints": [], "ended": True} if ended else {"complaints": []})

    def released(self) -> None:
        """From here on the platform settles everything at once."""
        if self.platform.default != Directive():
            self.play({"deliver": "ok"})


def _crash(raw: Raw) -> Crash:
    return crash_of(raw, scenario_config(raw["reload"], "reload") if "reload" in raw else None)
