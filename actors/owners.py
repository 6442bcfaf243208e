"""The owners as pykka actors: they hold the states, and their `tell` travels through their references.

They run on the shard's one thread and share nothing. An owner that is not used drops its actor and keeps its
state: 100,000 idle chats cost states, not actors. The engine opens owners; a host reaches a chat through
`Engine.chat(name)`, which is a real reference.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any, NoReturn

import pykka

from turnkeeper.actors.inbox import House, Inbox
from turnkeeper.actors.misuse import Misuse
from turnkeeper.actors.waiting import EngineFuture
from turnkeeper.engine.cell import Cell, Owner, OwnerLike, Run, receive
from turnkeeper.engine.errors import InvariantViolated
from turnkeeper.engine.protocol import Message, Recover, Transition

if TYPE_CHECKING:
    from threading import Event

    from turnkeeper.engine.ids import Address

__all__ = ["AWAKE_MAX", "ChannelActor", "ChatActor", "OwnerActor", "Roster", "TurnActor"]

AWAKE_MAX = 4096
"""Owners with an actor; of those above, the ones longest unused go to sleep."""


class OwnerRef(pykka.ActorRef[Any]):
    """A reference to an owner: between two owners of one run it needs no envelope and no look at who has stopped."""

    def tell(self, message: Any) -> None:  # noqa: ANN401 - pykka's signature
        """Send a message: inside a run into the cell's FIFO, else as pykka does, through the inbox to the door."""
        inbox: Any = self.actor_inbox  # one of ours
        actor = inbox.actor
        if actor is not None and inbox.house.in_run():
            inbox.house.cell.fifo.append((actor, message))
        else:
            super().tell(message)


class OwnerActor(pykka.Actor):
    """An owner that runs on the shard's thread, inside a run only."""

    def __init__(self, address: Address, state: Any, house: House, stopped: Event) -> None:  # noqa: ANN401 - one of three state types
        # What pykka's constructor sets, but for the urn: random numbers for one cost as much as four events.
        self.actor_urn = f"urn:turnkeeper:{address.chat}:{address}"
        self.actor_stopped = stopped
        """One flag tells every reference of this engine that it stopped."""
        inbox = self._create_actor_inbox()
        inbox.actor, inbox.address, inbox.house, inbox.shell = self, address, house, None
        self.actor_inbox = inbox
        self._actor_ref = OwnerRef(self)
        self.tell = self._actor_ref.tell
        self.address = address
        self.state = state
        self.house = house
        self.cell: Cell = house.cell
        self.due_ms: int | None = None
        self.used = True
        """Since it was last considered for sleep."""

    @classmethod
    def start(cls, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse: an owner that nobody told of would not be in the journal."""
        raise Misuse(
            f"{cls.__name__}.start() opens no owner; the engine does when an event needs it: use Engine.chat(name)"
        )

    @staticmethod
    def _create_actor_inbox() -> Inbox:
        return Inbox()

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return EngineFuture()

    def _start_actor_loop(self) -> None:
        """Start nothing: the shard's thread runs every actor."""

    def on_receive(self, message: Message) -> Transition[Any]:
        """Run the step; on any thread but the shard's that would be a race."""
        if not self.house.in_run():
            raise InvariantViolated(f"{self.address} of chat {self.address.chat} was run outside of the shard's run")
        self.used = True
        return receive(self, message)


class ChatActor(OwnerActor):
    """Ledger, attribution, sameness, anchor, wakes and directory of one chat."""


class TurnActor(OwnerActor):
    """Pair, quote, what is in flight, record and end of one turn."""


class ChannelActor(OwnerActor):
    """Order, retries, preview and receipts of one channel of a chat."""


KINDS: dict[str, type[OwnerActor]] = {"chat": ChatActor, "turn": TurnActor, "channel": ChannelActor}


class Sleeper(Owner):
    """An owner without an actor: its state, and how to wake it.

    One that took a message while it slept sleeps on until the run ends, so that no run knows an owner twice.
    """

    __slots__ = ("engaged", "roster")

    def __init__(self, address: Address, state: Any, cell: Cell, roster: Roster) -> None:  # noqa: ANN401 - one of three state types
        super().__init__(address, state, cell)
        self.roster = roster
        self.engaged = False

    def tell(self, message: Message) -> None:
        """Wake up for it; a replay and a restart, which concern everybody, wake nobody."""
        if self.engaged or self.roster.replaying or isinstance(message, Recover):
            self.roster.engage(self)
            self.cell.put(self, message)
        else:
            self.roster.wake(self).tell(message)

    def on_receive(self, message: Message) -> Transition[Any]:
        """Handle a message asleep."""
        self.roster.engage(self)
        return receive(self, message)


class Roster:
    """Who is awake. Used on the shard's thread only."""

    def __init__(self, house: House, stopped: Event, awake_max: int = AWAKE_MAX) -> None:
        self.replaying = False
        """States are being rebuilt: owners open asleep."""
        self._house = house
        self._stopped = stopped
        self._awake_max = awake_max
        self._ring: deque[OwnerActor] = deque()
        self._woken: list[tuple[OwnerActor, Sleeper]] = []
        self._engaged: list[Sleeper] = []

    def spawn(self, address: Address, state: Any, cell: Cell) -> OwnerLike:  # noqa: ANN401 - one of three state types
        """Open an owner."""
        return Sleeper(address, state, cell, self) if self.replaying else self._actor(address, state)

    def wake(self, sleeper: Sleeper) -> OwnerActor:
        """Give an owner its actor."""
        actor = self._actor(sleeper.address, sleeper.state)
        actor.due_ms = sleeper.due_ms
        actor.cell.owners[sleeper.address] = actor
        self._woken.append((actor, sleeper))
        return actor

    def engage(self, sleeper: Sleeper) -> None:
        """Let it sleep until the run ends."""
        if not sleeper.engaged and not self.replaying:
            sleeper.engaged = True
            self._engaged.append(sleeper)

    def reference(self, address: Address) -> pykka.ActorRef[Any]:
        """Return a reference from outside: what is told through it comes to the engine's door."""
        shell = KINDS[address.kind](address, None, self._house, self._stopped)
        assert isinstance(shell.actor_inbox, Inbox)
        shell.actor_inbox.actor, shell.actor_inbox.shell = None, shell
        return shell.actor_ref

    def after_run(self, run: Run) -> None:
        """Put owners to sleep: those that an undone run had woken, and the longest unused above the limit."""
        if run.error is not None:
            for actor, sleeper in self._woken:
                self._sleep(actor, sleeper)
        self._woken.clear()
        if self._engaged:
            self._disengage()
        if len(self._ring) > self._awake_max:
            self._thin_out()

    def _disengage(self) -> None:
        for sleeper in self._engaged:
            sleeper.engaged = False
        self._engaged.clear()

    def _thin_out(self) -> None:
        while len(self._ring) > self._awake_max:
            actor = self._ring.popleft()
            if not self._lives(actor):
                _drop(actor)
            elif actor.used:
                actor.used = False
                self._ring.append(actor)
            else:
                sleeper = Sleeper(actor.address, actor.state, actor.cell, self)
                sleeper.due_ms = actor.due_ms
                self._sleep(actor, sleeper)

    def awake(self) -> Counter[str]:
        """Count the owners with an actor, by kind."""
        return Counter(actor.address.kind for actor in tuple(self._ring) if self._lives(actor))

    def _actor(self, address: Address, state: Any) -> OwnerActor:  # noqa: ANN401 - one of three state types
        actor = KINDS[address.kind](address, state, self._house, self._stopped)
        self._ring.append(actor)
        return actor

    def _lives(self, actor: OwnerActor) -> bool:
        return actor.cell.owners.get(actor.address) is actor

    def _sleep(self, actor: OwnerActor, sleeper: Sleeper) -> None:
        if self._lives(actor):
            actor.cell.owners[actor.address] = sleeper
        _drop(actor)


def _drop(actor: OwnerActor) -> None:
    """Let go of an actor: what is told through its reference goes to the door, and no cycle keeps it."""
    assert isinstance(actor.actor_inbox, Inbox)
    actor.actor_inbox.actor = None
