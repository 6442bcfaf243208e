"""A chat under the hand of a test: post events, see commands, crash; nobody answers `rewind` by itself."""

from __future__ import annotations

from typing import Any, TypeVar

from turnkeeper.engine.chat.state import ChatState
from turnkeeper.engine.codec import encode, event_from
from turnkeeper.engine.commands import Command, Rewind
from turnkeeper.engine.events import Event
from turnkeeper.engine.ids import chat_at
from turnkeeper.engine.lab.clock import VirtualClock
from turnkeeper.engine.lab.platform import Platform
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.scenario import scenario_config
from turnkeeper.engine.signals import Signal

C = TypeVar("C", bound=Command)


class SilentPlatform(Platform):
    """Takes a rewind, and leaves the answer to the test."""

    def perform(self, command: Command) -> None:
        if isinstance(command, Rewind):
            if command.id not in self._ids:
                self._ids.add(command.id)
                self.performed.append(command)
        else:
            super().perform(command)


class Desk:
    """One chat, c1, on the plain cell."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        self.platform = SilentPlatform()
        self.clock = VirtualClock()
        self.signals: list[Signal] = []
        self.rows: list[tuple[str, str]] = []
        self.counts: list[tuple[str, tuple[str, ...]]] = []
        self.config = scenario_config(config or {}, "test")
        self.runtime = CellRuntime(self.clock, self.platform, self._observe)
        self.runtime.start(self.config, reconciles=False)

    def _observe(self, _: object, run: Any) -> None:
        assert run.error is None, run.error
        self.signals += run.signals
        self.rows += [(row.table, row.row) for row in run.rows]
        self.counts += [(one.metric, one.labels) for one in run.counts]

    def post(self, kind: str | Event, /, **fields: Any) -> Desk:
        event = event_from({"type": kind, "chat": "c1", **fields}) if isinstance(kind, str) else kind
        self.runtime.post(event)
        while (answer := self.platform.take()) is not None:
            self.runtime.post(answer)
        return self

    def hold(self, *, on: bool = True) -> Desk:
        from turnkeeper.engine.lab.platform import Directive

        self.platform.step = Directive("hold" if on else "ok")
        return self

    def advance(self, span_ms: int) -> Desk:
        self.clock.advance_to(self.clock.now_ms() + span_ms)
        self.runtime.quiesce()
        while (answer := self.platform.take()) is not None:
            self.runtime.post(answer)
        return self

    def crash(self) -> Desk:
        before = encode(self.state)
        self.restart()
        assert encode(self.state) == before, "a restart changed what the chat knows"
        return self

    def restart(self) -> None:
        self.runtime.crash()
        self.runtime.start(self.config, reconciles=False)
        assert not self.runtime.replayed.differs, "a replay led to other commands"

    @property
    def state(self) -> ChatState:
        owner = self.runtime.cell.owners.get(chat_at("c1"))
        return ChatState("c1") if owner is None else owner.state

    def done(self, kind: type[C]) -> list[C]:
        return [command for command in self.platform.performed if isinstance(command, kind)]

    @property
    def tags(self) -> list[str]:
        return [str(type(command).__struct_config__.tag) for command in self.platform.performed]
