"""A soak: many events over many chats with random failures; what must hold at its end, and memory while it runs.

Sends fail, are never settled or come back unknown; calls of the gateway raise; replies are repeated with their call
id. Asked replies must all be answered. At the end every clock has passed: no turn is live, no invariant
was broken, no ack was lost, and memory after the warm-up grew by no more than a tenth.
"""

from __future__ import annotations

import random
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from feeding import Fed, Hands, LoadClock, make_engine
from load import make_load
from measuring import main, options, rss_bytes
from population import LATER_MS, populate

from turnkeeper.engine import events
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.commands import Send
from turnkeeper.engine.config import Policy
from turnkeeper.engine.invariants import audit
from turnkeeper.engine.protocol import At
from turnkeeper.engine.turn.state import TurnState

if TYPE_CHECKING:
    from turnkeeper.actors.performer import Job
    from turnkeeper.actors.waiting import Waiter
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.running import Run

SHORT = {
    "ledger": 8,
    "tombstones": 8,
    "calls": 8,
    "contents": 8,
    "settled_turns": 4,
    "occurrences": 8,
    "deliveries": 8,
    "receipts": 8,
    "waiters": 1_000_000,
}
"""With short memories the busy chats are as large as they ever get before the warm-up is over: what grows then leaks.

With the default limits a chat remembers its last 64 turns and 1,024 calls; a million events are too few to fill that.
"""
GROWTH_MAX = 1.10
"""From the middle of the run: before, the chats that stay awake still fill what they may remember."""
SLICE = 50_000
"""Records between two looks at the memory."""


class FaultyHands(Hands):
    """A platform on a bad day."""

    rng = random.Random(5)

    def answer(self, job: Job) -> tuple[Any, BaseException | None]:
        sent, luck = job.command, self.rng.random()
        if luck < 0.01:
            return None, ConnectionError("reset")
        if not isinstance(sent, Send):
            return None, None
        if luck < 0.05:
            return events.Settled(sent.chat, sent.delivery, "failed", reason="503"), None
        if luck < 0.06:
            return events.Settled(sent.chat, sent.delivery, "failed", reason="blocked", permanent=True), None
        if luck < 0.07:
            return events.Settled(sent.chat, sent.delivery, "unknown"), None
        if luck < 0.08:
            return None, None  # never settled: `delivery.settle_timeout_ms` will tell
        self.message += 1
        return events.Settled(sent.chat, sent.delivery, "sent", messages=(self.message,)), None


class Watch:
    """Sees every committed run."""

    def __init__(self) -> None:
        self.records = 0
        self.violated: dict[str, int] = {}
        self.set_aside = 0

    def __call__(self, record: Record, run: Run) -> None:
        self.records += 1
        self.set_aside += record.outcome != "ok"
        for name in run.violated:
            self.violated[name] = self.violated.get(name, 0) + 1


class Soak(Fed):
    """Feeds loads one after the other, and asks for every reply."""

    def __init__(self, load: Any) -> None:
        super().__init__(load)
        self.asked: list[Waiter[Any]] = []
        self.rng = random.Random(6)

    def post_one(self, engine: Any, event: Any) -> Waiter[Any] | None:
        if not isinstance(event, events.Reply):
            return engine.post(event)  # type: ignore[no-any-return]
        self.asked.append(engine._parts.reception.ask(event))
        if self.rng.random() < 0.02:
            self.asked.append(engine._parts.reception.ask(event))
        return None


def run(*, records: int, chats: int, short: bool = True) -> dict[str, Any]:
    limits = SHORT if short else {"waiters": SHORT["waiters"]}
    clock, watch = LoadClock(), Watch()
    engine = make_engine(clock, observer=watch, hands=FaultyHands, config={"limits": limits})
    asleep = populate(Cell(), chats).asleep
    clock.ms = LATER_MS
    memory: list[int] = []
    lost = asked = 0
    begin = time.perf_counter()
    with engine:
        engine.look(partial(_move_in, asleep=asleep))
        del asleep
        seed = 0
        while watch.records < records:
            seed += 1
            # Each slice is made by a world of its own, an hour later, so that nothing but the engine grows.
            fresh = Cell()
            fresh.at = At(clock.ms + 3_600_000, Policy())
            soak = Soak(make_load(SLICE, chats, seed=seed, cell=fresh))
            del fresh
            soak.feed(engine, clock)
            left = [waiter for waiter in soak.asked if not waiter.done]
            asked, lost = asked + len(soak.asked), lost + len(left)
            memory.append(rss_bytes())
        live = engine.look(_live_turns)
        found = engine.look(lambda cell: audit(cell.owners)) if chats <= 100_000 else []
        sleeping = engine.look(lambda cell: len(cell.asleep))
    warm = memory[len(memory) // 2]
    return {
        "records": watch.records,
        "seconds": time.perf_counter() - begin,
        "chats": chats,
        "asleep_at_the_end": sleeping,
        "asked": asked,
        "acks_lost": lost,
        "violations": sum(watch.violated.values()),
        "violated": watch.violated,
        "set_aside": watch.set_aside,
        "live_turns_that_should_have_settled": live,
        "audit": len(found),
        "memory_mib": [round(size / (1 << 20)) for size in memory],
        "memory_growth": max(memory[len(memory) // 2 :]) / warm,
        "good": not (lost or watch.violated or watch.set_aside or live or found)
        and max(memory[len(memory) // 2 :]) / warm <= GROWTH_MAX,
    }


def _move_in(cell: Cell, asleep: dict[str, bytes]) -> None:
    cell.asleep.update(asleep)
    cell.chats = len(cell.asleep)


def _live_turns(cell: Cell) -> int:
    """Count the turns without a terminal; at the end of a load every clock that would end one has passed."""
    return sum(isinstance(owner.state, TurnState) and owner.state.phase != "settled" for owner in cell.owners.values())


if __name__ == "__main__":
    given = options(
        __doc__,
        records={"type": int, "default": 1_000_000},
        chats={"type": int, "default": 100_000},
        default_limits={"action": "store_true", "help": "chats remember as much as by default, and grow"},
    )
    scale = 10 if given.quick else 1
    figures = run(records=given.records // scale, chats=given.chats // scale, short=not given.default_limits)
    main(figures, as_json=given.json)
    sys.exit(0 if figures["good"] else 1)
