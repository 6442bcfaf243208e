"""Where a pykka reference puts its messages: inside a run into the cell's FIFO, else to the door of the engine."""

from __future__ import annotations

from queue import Empty
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing import NoReturn

    import pykka
    from pykka._envelope import Envelope

    from turnkeeper.engine.cell import Cell, OwnerLike
    from turnkeeper.engine.ids import Address

__all__ = ["House", "Inbox"]


class House(Protocol):
    """What an inbox needs of the shard it is in."""

    cell: Cell

    def in_run(self) -> bool:
        """Say whether this is the shard's thread, inside a run."""
        ...

    def admit(self, address: Address, envelope: Envelope[Any], /) -> None:
        """Take an event from outside; an `ask` is answered after the commit."""
        ...


class Inbox:
    """An actor's inbox. It holds nothing: no owner has a queue of its own."""

    __slots__ = ("actor", "address", "house", "shell")

    actor: OwnerLike | None
    """None: only the reference is used, the owner is asleep or not opened."""
    address: Address
    house: House
    shell: pykka.Actor | None
    """Kept for a reference that points to it weakly."""

    def put(self, envelope: Envelope[Any], /) -> None:
        """Let a message travel."""
        actor, house = self.actor, self.house
        if actor is not None and house.in_run():
            house.cell.fifo.append((actor, envelope.message))
        else:
            house.admit(self.address, envelope)

    def get(self) -> NoReturn:
        """Give nothing: the shard takes messages from the cell's FIFO."""
        raise Empty

    def empty(self) -> bool:
        """Say that nothing waits here."""
        return True
