"""When owners want to be asked again: one deadline an owner, the earliest of its state, in one heap."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnkeeper.engine.ids import Address

__all__ = ["RANK", "Deadlines"]

RANK = {"channel": 0, "turn": 1, "chat": 2}
"""At one instant settlements come before ends, ends before what the chat judges."""


class Deadlines:
    """The deadlines of all owners.

    An owner has one place in the heap, not later than its deadline. It keeps that place when its deadline moves to a
    later time or goes, as most do, and gets the one that it should have when the old one comes. Of one instant the turn
    that opened first comes first: activity moves the idle clocks of all to the same. Else it is what was set first.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int, Address]] = []
        self._placed: dict[Address, int] = {}
        """When the place of an owner in the heap comes; another one of it there is left over."""
        self._known: dict[Address, tuple[int, int, int]] = {}
        """Deadline, when its owner opened, and the number of its setting."""
        self._count = 0

    def of(self, address: Address) -> int | None:
        """Return the deadline of an owner."""
        known = self._known.get(address)
        return None if known is None else known[0]

    def place(self, address: Address) -> int:
        """Return the place of an owner's deadline among those of its instant and kind: what was set first comes first."""
        known = self._known.get(address)
        return 0 if known is None else known[2]

    def put(self, address: Address, due_ms: int | None, state: object = None) -> None:
        """Set the deadline of an owner, or that it has none; a turn's state says when it opened."""
        known = self._known.get(address)
        if due_ms is None:
            if known is not None:
                del self._known[address]
            return
        if known is not None and known[0] == due_ms:
            return
        self._count += 1
        since_ms: int = getattr(state, "opened_ms", 0)
        self._known[address] = (due_ms, since_ms, self._count)
        placed_ms = self._placed.get(address)
        if placed_ms is None or due_ms < placed_ms:
            self._placed[address] = due_ms
            heappush(self._heap, (due_ms, RANK[address.kind], since_ms, self._count, address))

    def next_ms(self) -> int | None:
        """Return the earliest."""
        heap = self._heap
        while heap:
            due_ms, rank, _, count, address = heap[0]
            known = self._known.get(address)
            if known is not None and known[2] == count:
                return due_ms
            if self._placed.get(address) != due_ms:
                heappop(heap)
            elif known is None:
                heappop(heap)
                del self._placed[address]
            else:
                self._placed[address] = known[0]
                heapreplace(heap, (known[0], rank, known[1], known[2], address))
        return None

    def take(self, now_ms: int) -> Address | None:
        """Take the owner of the earliest, if that came."""
        due_ms = self.next_ms()
        if due_ms is None or due_ms > now_ms:
            return None
        address = heappop(self._heap)[4]
        del self._known[address]
        self._placed.pop(address, None)
        return address
