"""What a step is given beside the message, and what it returns."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from turnkeeper.engine.commands import Command
from turnkeeper.engine.config import Policy
from turnkeeper.engine.ids import Address
from turnkeeper.engine.protocol.messages import Message
from turnkeeper.engine.signals import Signal
from turnkeeper.engine.table import Decision

__all__ = ["At", "Count", "Draft", "Transition"]

S = TypeVar("S")


class At(msgspec.Struct, frozen=True, gc=False):
    """When a step runs and under which policy: both are arguments, never looked up."""

    now_ms: int
    policy: Policy


class Count(msgspec.Struct, frozen=True, gc=False):
    """One more of a metric: its name without prefix and suffix, and its label values in order."""

    metric: str
    labels: tuple[str, ...] = ()


class Transition(msgspec.Struct, Generic[S], frozen=True, gc=False):
    """What a step returns."""

    state: S | None
    """The owner's next state; None: the owner leaves."""
    tells: tuple[tuple[Address, Message], ...] = ()
    commands: tuple[Command, ...] = ()
    signals: tuple[Signal, ...] = ()
    due_ms: int | None = None
    """The earliest deadline in the state."""
    counts: tuple[Count, ...] = ()
    rows: tuple[Decision[object], ...] = ()
    """Every table row that decided, in order."""
    go: bool = False
    """The verdict on `Handed`."""


class Draft(Generic[S]):
    """A transition in the making; lives for one step."""

    __slots__ = ("at", "commands", "counts", "go", "rows", "signals", "state", "tells")

    def __init__(self, state: S, at: At) -> None:
        self.state: S = state
        self.at = at
        self.tells: list[tuple[Address, Message]] = []
        self.commands: list[Command] = []
        self.signals: list[Signal] = []
        self.counts: list[Count] = []
        self.rows: list[Decision[object]] = []
        self.go = False

    def set(self, **changes: object) -> None:
        """Replace fields of the state."""
        self.state = msgspec.structs.replace(self.state, **changes)  # type: ignore[type-var]

    def tell(self, to: Address, message: Message) -> None:
        """Tell another owner; it is handled after this step, before the next event."""
        self.tells.append((to, message))

    def command(self, command: Command) -> None:
        """Ask the host to do something."""
        self.commands.append(command)

    def signal(self, signal: Signal, decision: Decision[object] | None = None) -> None:
        """Say what was decided, naming the row that did."""
        if decision is not None:
            # The signal was made for this call, nobody has seen it yet.
            for name in ("table", "row", "why"):
                msgspec.structs.force_setattr(signal, name, getattr(decision, name))
        self.signals.append(signal)

    def count(self, metric: str, *labels: str) -> None:
        """Add one to a metric."""
        self.counts.append(Count(metric, labels))

    def decided(self, decision: Decision[object]) -> None:
        """Note the row that decided."""
        self.rows.append(decision)

    def close(self, due_ms: int | None, *, leaves: bool = False) -> Transition[S]:
        """Return the transition."""
        return Transition(
            None if leaves else self.state,
            tuple(self.tells),
            tuple(self.commands),
            tuple(self.signals),
            None if leaves else due_ms,
            tuple(self.counts),
            tuple(self.rows),
            self.go,
        )
