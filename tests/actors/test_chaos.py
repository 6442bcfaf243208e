"""Agents that call and retry, a platform that fails, an engine that is killed again and again: each answer is seen once."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.actors.hosts import PATIENCE_S, QUICK, ThreadJournal, opened, reply, sent
from turnkeeper import Engine, MemoryJournal, NotRunning, commands, events
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.recovery import replay

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.ports import Reconciliation

CONFIG = QUICK | {"delivery": {"backoff_ms": [1], "jitter_percent": 0, "retries": 100, "concurrency": 4}}
AGENTS, CALLS, LIVES = 12, 5, 6
SEEDS = int(os.environ.get("TURNKEEPER_CHAOS", "6"))


class Platform:
    """Takes a message or refuses it before it is shown; knows what it has."""

    def __init__(self, chance: random.Random) -> None:
        self.seen: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.chance = chance
        self.lock = threading.Lock()

    def take(self, command: commands.Command) -> Any:
        if self.chance.random() < 0.2:
            raise ConnectionError("refused")
        if isinstance(command, commands.Send):
            self.seen[command.delivery] += 1
            return sent(command)
        if isinstance(command, commands.TurnSettled):
            self.ended[command.chat, command.id] += 1
        return None


class Connection:
    """One life's way to the platform; it is cut when the life ends, as a process's connections are."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.cut = False

    def perform(self, command: commands.Command, /) -> Any:
        with self.platform.lock:
            if self.cut:
                raise ConnectionError("cut")
            return self.platform.take(command)

    def reconcile(self, delivery: str, /) -> Reconciliation:
        with self.platform.lock:
            return "sent" if self.platform.seen[delivery] else "not_sent"

    def end(self) -> None:
        with self.platform.lock:
            self.cut = True


class Async:
    """The same for a loop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def perform(self, command: commands.Command, /) -> Any:
        return self._connection.perform(command)

    async def reconcile(self, delivery: str, /) -> Reconciliation:
        return self._connection.reconcile(delivery)


class Lives:
    """The engine that runs now, and the next one."""

    def __init__(self, platform: Platform, seed: int) -> None:
        self.platform = platform
        self.seed = seed
        self.chance = random.Random(seed)
        self.journal: MemoryJournal = ThreadJournal()
        self.over = threading.Event()
        self._changed = threading.Condition()
        self._engine: Engine | None = None

    def engine(self, dead: Engine | None) -> Engine:
        """Wait for one that is not the dead one."""
        with self._changed:
            while self._engine is None or self._engine is dead:
                assert self._changed.wait(PATIENCE_S)
            return self._engine

    def live(self, records: int | None) -> Engine:
        """Begin a life; it ends by itself after so many records."""
        killed, connection = threading.Event(), Connection(self.platform)
        gateway = Async(connection) if self.seed % 2 else connection
        left = records

        def observer(_: Record, __: Run) -> None:
            nonlocal left
            if left is not None:
                left -= 1
                if left <= 0 and not killed.is_set():
                    connection.end()
                    engine.kill()
                    killed.set()

        self.journal = ThreadJournal(tuple(self.journal.frames))
        engine = Engine(CONFIG, gateway, journal=self.journal, observer=observer)
        with contextlib.suppress(NotRunning):  # killed while it recovered
            engine.start()
        with self._changed:
            self._engine = engine
            self._changed.notify_all()
        if records is not None:
            assert killed.wait(PATIENCE_S)
            engine._shard.join(PATIENCE_S)
            self.journal.close()
        return engine


def agent(lives: Lives, chat: str, acks: list[commands.Ack]) -> None:
    """Post and call until it is answered, in whichever life."""
    engine = lives.engine(None)
    todo: list[events.Event] = [opened(chat), *(reply(chat, f"{chat}-k{n}") for n in range(CALLS))]
    for event in (*todo, events.Stopped(chat, "closing words", turn_id="P")):
        while True:
            try:
                if isinstance(event, events.Reply):
                    acks.append(engine.call(event, PATIENCE_S))
                else:
                    engine.post(event).wait(PATIENCE_S)
                break
            except NotRunning:
                engine = lives.engine(engine)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_answer_is_seen_once(seed: int) -> None:
    platform = Platform(random.Random(seed))
    lives, acks = Lives(platform, seed), list[commands.Ack]()
    threads = [threading.Thread(target=agent, args=(lives, f"c{n}", acks)) for n in range(AGENTS)]
    for thread in threads:
        thread.start()
    for _ in range(LIVES):
        lives.live(lives.chance.randrange(3, 60))
    last = lives.live(None)
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    while last.look(lambda cell: bool(cell.pending)):
        last.idle(PATIENCE_S)
    last.stop()
    assert platform.seen == {f"reply:c{a}:c{a}-k{n}": 1 for a in range(AGENTS) for n in range(CALLS)}
    assert all(ack.ok for ack in acks)
    assert len(acks) == AGENTS * CALLS
    again = Cell()
    assert not replay(again, lives.journal.frames).differs
