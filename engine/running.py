"""What a run is made of: owners as the cell sees them, and what one record led to."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from turnkeeper.engine.commands import Ack, Command
from turnkeeper.engine.deadlines import RANK
from turnkeeper.engine.events import Edit, Event, Reply
from turnkeeper.engine.ids import Address
from turnkeeper.engine.protocol import At, Count, Message, Transition
from turnkeeper.engine.signals import LimitReached, SetAside, Signal
from turnkeeper.engine.table import Decision

__all__ = ["Group", "House", "OwnerLike", "Run", "place", "set_aside"]


class House(Protocol):
    """What an owner needs of the cell that it is in."""

    at: At
    owners: dict[Address, OwnerLike]

    def owner(self, to: Address, message: Message, /) -> OwnerLike | None:
        """Return who takes a message."""
        ...


class OwnerLike(Protocol):
    """What the cell needs of an owner, plain or actor."""

    address: Address
    state: Any
    due_ms: int | None

    @property
    def cell(self) -> House:
        """The cell that it is in."""
        ...

    def tell(self, message: Message, /) -> None:
        """Let the message travel to the cell's FIFO."""
        ...

    def on_receive(self, message: Message, /) -> Transition[Any]:
        """Handle a message."""
        ...


def place(owner: OwnerLike) -> tuple[str, int, str]:
    """Return where an owner stands when all are told: chat by chat, each chat before its turns and channels."""
    return owner.address.chat, -RANK[owner.address.kind], owner.address.key


class Run(msgspec.Struct, eq=False, gc=False):
    """What one record led to."""

    commands: tuple[Command, ...] = ()
    signals: tuple[Signal, ...] = ()
    counts: tuple[Count, ...] = ()
    rows: tuple[Decision[object], ...] = ()
    steps: int = 0
    go: bool = False
    """The verdict on a hand-over."""
    error: BaseException | None = None
    """Why the record was set aside."""
    violated: tuple[str, ...] = ()
    """Invariants that do not hold any more."""

    def add(self, done: Transition[Any]) -> None:
        """Take in what one step led to; most steps have little of it."""
        self.steps += 1
        if done.commands:
            self.commands += done.commands
        if done.signals:
            self.signals += done.signals
        if done.counts:
            self.counts += done.counts
        if done.rows:
            self.rows += done.rows
        if done.go:
            self.go = True

    @property
    def outcome(self) -> str:
        """`ok`, or `set_aside`."""
        return "ok" if self.error is None else "set_aside"

    def refuse_chat(self, event: Event) -> None:
        """Tell that `limits.chats` makes no chat of this event; an agent's call is answered, its caller waits."""
        self.signals += (LimitReached(chat=event.chat, limit="chats"),)
        if isinstance(event, Reply | Edit):
            self.commands += (Ack(chat=event.chat, call_id=event.call_id, ok=False, error="rate limit"),)


def set_aside(chat: str, error: Exception) -> Run:
    """Return what a run comes to that was undone."""
    name = type(error).__name__
    return Run(signals=(SetAside(chat=chat, error=name),), counts=(Count("set_aside", (name,)),), error=error)


class Group:
    """The owners of one chat that is awake."""

    __slots__ = ("addresses", "used_ms")

    def __init__(self, used_ms: int) -> None:
        self.addresses: list[Address] = []
        self.used_ms = used_ms
