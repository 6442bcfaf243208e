"""One heap for the deadlines of all owners; beside it, a dictionary that is sorted at every look."""

from __future__ import annotations

import random

from turnkeeper.engine.deadlines import RANK, Deadlines
from turnkeeper.engine.ids import Address, ChannelRef, channel_at, chat_at, turn_at


class Opened:
    """A turn's state, as far as deadlines look at it."""

    def __init__(self, opened_ms: int) -> None:
        self.opened_ms = opened_ms


class Plain:
    """The same, with nothing kept but what is known."""

    def __init__(self) -> None:
        self.known: dict[Address, tuple[int, int, int]] = {}
        self.count = 0

    def put(self, address: Address, due_ms: int | None, since_ms: int) -> None:
        if due_ms is None:
            self.known.pop(address, None)
        elif address not in self.known or self.known[address][0] != due_ms:
            self.count += 1
            self.known[address] = (due_ms, since_ms, self.count)

    def first(self) -> tuple[int, Address] | None:
        def key(at: Address) -> tuple[int, ...]:
            due_ms, *rest = self.known[at]
            return (due_ms, RANK[at.kind], *rest)

        first = min(self.known, key=key, default=None)
        return None if first is None else (self.known[first][0], first)


def test_the_heap_gives_what_a_sorted_dictionary_gives() -> None:
    """Deadlines that move up and down, go, come back and are taken, at few instants: many of one, many left over."""
    owners = [
        chat_at("a"),
        chat_at("b"),
        channel_at("a", ChannelRef("tg", "1")),
        *(turn_at("a", f"t{n}") for n in range(5)),
    ]
    for seed in range(60):
        rng, heap, plain, now_ms = random.Random(seed), Deadlines(), Plain(), 0
        for _ in range(400):
            owner = rng.choice(owners)
            since_ms = int(owner.key[1:]) * 7 % 3 if owner.kind == "turn" else 0
            due_ms = rng.choice([None, now_ms + rng.randrange(12), now_ms + rng.randrange(40)])
            heap.put(owner, due_ms, Opened(since_ms) if owner.kind == "turn" else None)
            plain.put(owner, due_ms, since_ms)
            assert heap.of(owner) == (plain.known[owner][0] if owner in plain.known else None)
            if rng.random() < 0.3:
                now_ms += rng.randrange(9)
                while (first := plain.first()) is not None and first[0] <= now_ms:
                    assert heap.next_ms() == first[0]
                    assert heap.take(now_ms) == first[1]
                    del plain.known[first[1]]
                assert heap.take(now_ms) is None


def test_an_owner_holds_one_place_however_often_its_deadline_is_set() -> None:
    heap, owner = Deadlines(), chat_at("a")
    for now_ms in range(10_000):
        heap.put(owner, now_ms + 60_000)
        heap.put(owner, None)
    assert len(heap._heap) == 1
