"""Scenarios in Python: events as methods, expectations as values; a failure prints what decided what.

    with Lab() as lab:
        lab.turn_opened("P", message=6406).input_seen("P")
        lab.reply("hello", turn_id="P")
        lab.expect(send("hello", turn_id="P", quote=6406))

A step runs when it is said. What is not as expected is an `AssertionError` with the transcript: each event, the
rows that decided it with their why, each command. Leaving the `with` checks that every command was expected.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from turnkeeper.engine.lab.expectations import Unexpected
from turnkeeper.engine.lab.platform import FIRST_MESSAGE, Platform
from turnkeeper.engine.lab.runner import Probe, ScenarioRunner
from turnkeeper.engine.lab.runtime import CellRuntime, RuntimeMaker
from turnkeeper.engine.lab.saying import EventMethods
from turnkeeper.engine.lab.scenario import CHAT, Scenario, scenario_config, step_of
from turnkeeper.engine.lab.trace import Moment

__all__ = ["Lab", "command", "preview", "react", "send", "turn_settled"]

Expected = dict[str, dict[str, Any]]
"""A command by its name, with the fields that must match; None: the field must be absent."""


def command(name: str, **fields: Any) -> Expected:
    """Expect a command of any type."""
    return {name: fields}


def send(text: str, **fields: Any) -> Expected:
    """Expect a message with this text."""
    return {"send": {"text": text, **fields}}


def preview(text: str, **fields: Any) -> Expected:
    """Expect a snapshot with this text."""
    return {"preview": {"text": text, **fields}}


def react(message: int | str, **fields: Any) -> Expected:
    """Expect a mark on a message."""
    return {"react": {"message": message, **fields}}


def turn_settled(turn_id: str, outcome: str, **fields: Any) -> Expected:
    """Expect the end of a turn."""
    return {"turn_settled": {"turn_id": turn_id, "outcome": outcome, **fields}}


class Lab(EventMethods):
    """One scenario, played as it is said.

    Args:
        config: settings in the shape of the TOML file.
        title: what it shows; the header of the file that `write` makes.
        next_message: the first message id that the simulated platform gives.
        runtime: what runs it: the plain cell, or `turnkeeper.actors.runtime.ActorsRuntime` for the whole engine.
        probe: counts for `metrics`: `turnkeeper.metrics.probe.RegistryProbe()`.

    """

    def __init__(
        self,
        config: dict[str, Any] | None = None,
        *,
        title: str = "lab",
        next_message: int = FIRST_MESSAGE,
        runtime: RuntimeMaker = CellRuntime,
        probe: Probe | None = None,
    ) -> None:
        self.steps: list[dict[str, Any]] = []
        """The steps so far, as the lines of a scenario file."""
        self._header: dict[str, Any] = {"scenario": title, "platform": {"next_message": next_message}}
        if config:
            self._header["config"] = config
        scenario = Scenario(title, title, scenario_config(config or {}, title), (), next_message)
        self._runner = ScenarioRunner(scenario, runtime, probe)
        self._calls = 0
        self._expected = False
        self._runner.begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._expected:
                self._insist(self._runner.all_covered)
        finally:
            self._runner.runtime.stop()

    # ------------------------------------------------------------ what happens

    def say(self, kind: str, fields: dict[str, Any]) -> Self:
        """Play one event; `deliver` among its fields says how the platform settles what it causes."""
        given = dict(fields)
        extra = {"deliver": given.pop("deliver")} if "deliver" in given else {}
        return self.play({kind: given, **extra})

    def next_call(self) -> str:
        """Make the id of a call that names none: call-1, call-2 …."""
        self._calls += 1
        return f"call-{self._calls}"

    def play(self, raw: dict[str, Any]) -> Self:
        """Play one step as a scenario file holds it.

        Raises:
            DecodeError: it is no step, or a value is none that is allowed.
            AssertionError: something is not as it says.

        """
        line = len(self.steps) + 2
        step = step_of(f"step {line - 1}", line, raw)
        self.steps.append(raw)
        self._insist(lambda: self._runner.play(step))
        return self

    def advance(self, span_ms: int, **extra: Any) -> Self:
        """Move the clock, and fire what is due on the way."""
        return self.play({"advance": span_ms, **extra})

    def deliver(self, way: str | dict[str, Any]) -> Self:
        """Say how the platform settles from here on: ok, fail, fail-permanent, unknown, hold, or {"fail": …}."""
        return self.play({"deliver": way})

    def settle(self, outcome: str, **named: Any) -> Self:
        """Settle what is held: named by `call_id`, by `turn_id` and `purpose`, or by `delivery`."""
        return self.play({"settle": {"outcome": outcome, **named}})

    def crash(self, *, down_ms: int = 0, reconcile: dict[str, str] | None = None) -> Self:
        """Keep the journal's bytes alone, and recover from them."""
        extra = {} if reconcile is None else {"reconcile": reconcile}
        return self.play({"crash": True, "down_ms": down_ms, **extra})

    def reload(self, config: dict[str, Any]) -> Self:
        """Apply another configuration."""
        return self.play({"reload": config})

    # ------------------------------------------------------------ what is expected

    def expect(self, *commands: Expected, acks: list[dict[str, Any]] | None = None, ordered: bool = False) -> Self:
        """Insist on exactly these commands since the last `expect`; acks are compared where they are given."""
        self._expected = True
        raw: dict[str, Any] = {"expect": list(commands)}
        if acks is not None:
            raw["acks"] = acks
        return self.play({**raw, "ordered": True} if ordered else raw)

    def signals(self, *items: str | Expected, ordered: bool = False) -> Self:
        """Insist that these signals came since the start; others may have come as well."""
        raw: dict[str, Any] = {"signals": list(items)}
        return self.play({**raw, "ordered": True} if ordered else raw)

    def never(self, *names: str) -> Self:
        """Insist that no such signal came."""
        return self.play({"never": list(names)})

    def state(self, paths: dict[str, Any], chat: str = CHAT) -> Self:
        """Insist on values of `Engine.inspect(chat)`, by path."""
        return self.play({"state": paths, "chat": chat})

    def metrics(self, samples: dict[str, float]) -> Self:
        """Insist on samples by their written names; needs a probe."""
        return self.play({"metrics": samples})

    # ------------------------------------------------------------ looking

    @property
    def platform(self) -> Platform:
        """The simulated platform: what was performed, and what users saw."""
        return self._runner.platform

    @property
    def moments(self) -> list[Moment]:
        """What happened so far: each record with its rows, signals and commands."""
        return self._runner.moments

    def transcript(self) -> str:
        """Write what happened so far."""
        return "\n".join(line for moment in self.moments for line in moment.lines())

    def write(self, file: str | Path) -> None:
        """Write the steps so far as a scenario file, for `turnkeeper run` and `turnkeeper explore`."""
        lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in (self._header, *self.steps))
        Path(file).write_text("".join(lines), encoding="utf-8")

    def _insist(self, check: Any) -> None:  # noqa: ANN401 - anything that raises Unexpected
        try:
            check()
        except Unexpected as found:
            raise AssertionError(
                f"{self.transcript()}\n\nstep {max(1, len(self.steps))} is not as expected\n"
                f"expected: {_shown(found.expected)}\nactual:   {_shown(found.actual)}"
            ) from None


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "\n          ".join(map(_shown, value)) or "nothing"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
