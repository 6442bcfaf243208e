"""What a run is made of: owners as the cell sees them, and what one record led to."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.commands import Ack, Command
from turnkeeper.engine.deadlines import RANK
from turnkeeper.engine.errors import InvariantViolated
from turnkeeper.engine.events import Edit, Event, Reply
from turnkeeper.engine.ids import Address
from turnkeeper.engine.journal import Body
from turnkeeper.engine.protocol import At, Count, Message, Transition
from turnkeeper.engine.signals import LimitReached, SetAside, Signal
from turnkeeper.engine.table import Decision

__all__ = ["Group", "House", "OwnerLike", "Run", "place", "set_aside", "watched"]


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
    failed: tuple[tuple[str, BaseException], ...] = ()
    """Of a restart: the chats whose step raised, which stay as they were, and what it raised."""
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

    def join(self, chat: str, part: Run) -> None:
        """Take in what a restart led to in one chat."""
        if part.error is not None:
            self.failed += ((chat, part.error),)
            part.signals = (SetAside(chat=chat, error=type(part.error).__name__),)
        self.steps += part.steps
        self.commands += part.commands
        self.signals += part.signals
        self.counts += part.counts
        self.rows += part.rows
        self.violated += part.violated

    @property
    def outcome(self) -> str:
        """`ok`, or `set_aside`."""
        return "ok" if self.error is None else "set_aside"

    def refuse_chat(self, event: Event) -> None:
        """Tell that `limits.chats` makes no chat of this event; an agent's call is answered, its caller waits."""
        self.signals += (LimitReached(chat=event.chat, limit="chats"),)
        if isinstance(event, Reply | Edit):
            self.commands += (Ack(chat=event.chat, call_id=event.call_id, ok=False, error="rate limit"),)


def watched(owner: OwnerLike, message: Message) -> Transition[Any]:
    """Have a message handled, and insist that the step left alone what it was given."""
    state, written = owner.state, codec.encode(owner.state)
    done = owner.on_receive(message)
    if codec.encode(state) == written:
        return done
    raise InvariantViolated(f"a step of {owner.address} changed the state it had ({type(message).__name__})")


def set_aside(body: Body, error: Exception) -> Run:
    """Return what a run comes to that was undone."""
    about = body.event or body.due
    chat, name = "" if about is None else about.chat, type(error).__name__
    return Run(signals=(SetAside(chat=chat, error=name),), counts=(Count("set_aside", (name,)),), error=error)


class Group:
    """The owners of one chat that is awake."""

    __slots__ = ("addresses", "used_ms")

    def __init__(self, used_ms: int) -> None:
        self.addresses: list[Address] = []
        self.used_ms = used_ms
