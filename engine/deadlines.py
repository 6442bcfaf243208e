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

    Each owner has at least one place in the heap that is not later than its deadline. A deadline that moves
    to a later time, as most do, keeps that place; it gets its own when that one comes. Of one instant the turn that
    opened first comes first: activity moves the idle clocks of all to the same. Else it is what was set first,
    wherever its place in the heap is from.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, int, Address]] = []
        self._known: dict[Address, tuple[int, int, bool, int]] = {}
        """Deadline, when it was set as a number, whether that is its place in the heap, and when its owner opened."""
        self._count = 0

    def of(self, address: Address) -> int | None:
        """Return the deadline of an owner."""
        known = self._known.get(address)
        return None if known is None else known[0]

    def place(self, address: Address) -> int:
        """Return the place of an owner's deadline among those of its instant and kind: what was set first comes first."""
        known = self._known.get(address)
        return 0 if known is None else known[1]

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
        later = known is not None and known[0] < due_ms
        since_ms: int = getattr(state, "opened_ms", 0)
        self._known[address] = (due_ms, self._count, not later, since_ms)
        if not later:
            heappush(self._heap, (due_ms, RANK[address.kind], since_ms, self._count, address))

    def next_ms(self) -> int | None:
        """Return the earliest."""
        heap = self._heap
        while heap:
            due_ms, _, _, count, address = heap[0]
            known = self._known.get(address)
            if known is None:
                heappop(heap)
            elif known[1] == count:
                return due_ms
            elif known[2]:
                heappop(heap)
            else:
                self._known[address] = (known[0], known[1], True, known[3])
                heapreplace(heap, (known[0], RANK[address.kind], known[3], known[1], address))
        return None

    def take(self, now_ms: int) -> Address | None:
        """Take the owner of the earliest, if that came."""
        due_ms = self.next_ms()
        if due_ms is None or due_ms > now_ms:
            return None
        address = heappop(self._heap)[4]
        del self._known[address]
        return address
