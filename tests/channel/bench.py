"""A cell under the hand of a test: every hand-over and every settlement is the test's own."""

from __future__ import annotations

from typing import Any, TypeVar

from turnkeeper.engine.cell import Cell, Run
from turnkeeper.engine.channel.state import ChannelState
from turnkeeper.engine.codec import event_from
from turnkeeper.engine.commands import Command, Settleable
from turnkeeper.engine.config import as_policy
from turnkeeper.engine.ids import ChannelRef, channel_at
from turnkeeper.engine.journal import Body, DueBody, HandedBody, RecoveredBody
from turnkeeper.engine.lab.scenario import scenario_config
from turnkeeper.engine.signals import Signal

C = TypeVar("C", bound=Command)
DUES_MAX = 200
"""More deadlines at one instant are an owner that spins."""


class Bench:
    """Chat c1 on a cell that nobody else drives."""

    def __init__(self, config: dict[str, Any] | None = None, *, reconciles: bool = False) -> None:
        self.cell = Cell(paranoid=True)
        self.now_ms = 0
        self.seq = 0
        self.commands: list[Command] = []
        self.signals: list[Signal] = []
        self.rows: list[tuple[str, str]] = []
        self.apply(Body(configured=as_policy(scenario_config(config or {}, "test"), reconciles=reconciles)))

    def apply(self, body: Body) -> Run:
        self.seq += 1
        run = self.cell.apply(body, self.now_ms, self.seq)
        if run.error is not None:
            raise run.error
        assert not run.violated
        self.commands += run.commands
        self.signals += run.signals
        self.rows += [(row.table, row.row) for row in run.rows]
        return run

    def post(self, kind: str, /, **fields: Any) -> Bench:
        """Post an event, and fire what is due in that instant."""
        self.apply(Body(event=event_from({"type": kind, "chat": "c1", **fields})))
        self.fire()
        return self

    def fire(self) -> None:
        """Fire every deadline that came; an owner whose deadline stays in the past would spin here."""
        owner: DueBody | None = None
        for _ in range(DUES_MAX):
            body = self.cell.take_due(self.now_ms)
            if body is None:
                return
            owner = body.due
            self.apply(body)
        raise AssertionError(f"{owner} is due for ever at {self.now_ms}")

    def advance(self, span_ms: int) -> Bench:
        """Move the clock, stopping at every deadline on the way."""
        until_ms = self.now_ms + span_ms
        while (due_ms := self.cell.next_due_ms()) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.fire()
        self.now_ms = until_ms
        return self

    def hand(self, command: Settleable) -> bool:
        """Hand a command over; returns the verdict."""
        return self.apply(Body(handed=HandedBody(command.id, command.delivery, command.attempt))).go

    def settle(self, command: Settleable, outcome: str, **fields: Any) -> Bench:
        """Settle the attempt that this command is."""
        more = {"attempt": command.attempt, "channel": str(command.channel), **fields}
        return self.post("settled", delivery=command.delivery, outcome=outcome, **more)

    def recover(self, down_ms: int = 0) -> Bench:
        """Tell every owner of a restart."""
        self.now_ms += down_ms
        self.apply(Body(recovered=RecoveredBody(down_ms)))
        self.fire()
        return self

    def done(self, kind: type[C]) -> list[C]:
        """List the commands of a kind so far."""
        return [command for command in self.commands if isinstance(command, kind)]

    def channel(self, written: str = "tg/100") -> ChannelState:
        """Return the state of a channel."""
        state: ChannelState = self.cell.owners[channel_at("c1", ChannelRef.parse(written))].state
        return state
