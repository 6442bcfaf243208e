"""When owners want to be asked again: one deadline an owner, the earliest of its state, in one heap."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnkeeper.engine.ids import Address

__all__ = ["RANK", "Deadlines"]

RANK = {"channel": 0, "turn": 1, "chat": 2}
"""At one instant settlements come before ends, ends before what the chat judges."""


class Deadlines:
    """The deadlines of all owners. One that moved leaves its old place in the heap behind, to be passed over."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Address]] = []
        self._known: dict[Address, int] = {}
        self._pushed = 0

    def of(self, address: Address) -> int | None:
        """Return the deadline of an owner."""
        return self._known.get(address)

    def put(self, address: Address, due_ms: int | None) -> None:
        """Set the deadline of an owner, or that it has none."""
        if due_ms == self._known.get(address):
            return
        if due_ms is None:
            self._known.pop(address, None)
            return
        self._known[address] = due_ms
        self._pushed += 1
        heappush(self._heap, (due_ms, RANK[address.kind], self._pushed, address))

    def next_ms(self) -> int | None:
        """Return the earliest."""
        heap, known = self._heap, self._known
        while heap and known.get(heap[0][3]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def take(self, now_ms: int) -> Address | None:
        """Take the owner of the earliest, if that came."""
        due_ms = self.next_ms()
        if due_ms is None or due_ms > now_ms:
            return None
        address = heappop(self._heap)[3]
        del self._known[address]
        return address
