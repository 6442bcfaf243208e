"""Many threads at once: what was admitted is processed or answered, what raises is set aside, a replay agrees."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.actors.hosts import PATIENCE_S, QUICK, Async, Plain, ThreadJournal, activity, opened, reply
from turnkeeper import Admission, Engine, MemoryJournal, NotRunning, commands, events
from turnkeeper.engine import cell, codec
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.chat.state import open_turns
from turnkeeper.engine.journal import decode_frame
from turnkeeper.engine.recovery import replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THREADS, EVENTS, PLANTED = 8, 20_000, 100
STOPS = int(os.environ.get("TURNKEEPER_STOPS", "20"))
"""How often an engine is stopped in the middle; 100 in the long run."""


class PlantedError(Exception):
    """What the planted steps raise."""


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a step raise for a cause that says so: a turn's, when the chat has been stepped; the chat's, if none is open."""
    chat, turn = cell.STEPS["chat"], cell.STEPS["turn"]

    def chat_step(state: Any, message: Any, at: Any) -> Any:
        if getattr(message, "cause", "") == "planted" and not open_turns(state):
            raise PlantedError
        return chat(state, message, at)

    def turn_step(state: Any, message: Any, at: Any) -> Any:
        if getattr(message, "cause", "") == "planted":
            raise PlantedError
        return turn(state, message, at)

    monkeypatch.setitem(cell.STEPS, "chat", chat_step)
    monkeypatch.setitem(cell.STEPS, "turn", turn_step)


def states(cell: Cell) -> dict[str, bytes]:
    return {f"{a.chat} {a}": codec.encode(owner.state) for a, owner in cell.owners.items()}


def mixed(thread: int) -> Iterator[Any]:
    """What one thread posts: chats of its own and chats that all share, turns, replies, folds, ends."""
    each = EVENTS // THREADS
    every = each // (PLANTED // THREADS + 1)
    planted = 0
    for n in range(each):
        chat = f"own{thread}-{n % 7}" if n % 3 else f"shared{n % 5}"
        turn = f"T{thread}-{n // 20}"
        if n % every == every - 1 and planted < PLANTED // THREADS + (thread < PLANTED % THREADS):
            planted += 1
            yield activity(chat, "planted")
        elif n % 20 == 0:
            yield opened(chat, turn, n)
        elif n % 20 == 10:
            yield events.Lost(chat, "gone")
        elif n % 10 == 4:
            yield reply(chat, f"k{thread}-{n}", turn, f"text {n}")
        elif n % 10 == 7:
            yield events.InputFolded(chat, f"F{thread}-{n}", "autosteer", message=n)
        elif n % 10 == 9:
            yield events.Stopped(chat, f"text {n - 5}", turn_id=turn)
        else:
            yield activity(chat)


def run(threads: list[Callable[[], None]]) -> None:
    started = [threading.Thread(target=each) for each in threads]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(PATIENCE_S * 6)
        assert not thread.is_alive()


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("kind", [Plain, Async])
def test_planted_failures_are_set_aside_and_the_rest_is_routed(kind: type[Plain]) -> None:
    """Eight threads, 20,000 events, 100 of which make a step raise; then the journal alone, replayed."""
    journal, gateway = ThreadJournal(), kind()
    admissions: list[Admission] = []
    engine = Engine(QUICK | {"limits": {**QUICK["limits"], "open_turns": 1000}}, gateway, journal=journal)
    engine.start()
    # Open everywhere first: a planted cause reaches a turn, or none is open and it is planted in the chat's own step.
    for chat in (*(f"own{t}-{n}" for t in range(THREADS) for n in range(7)), *(f"shared{n}" for n in range(5))):
        engine.post(opened(chat, "first", 1))

    def work(thread: int) -> None:
        admissions.extend([admission.wait(PATIENCE_S * 6) for admission in [engine.post(e) for e in mixed(thread)]])

    run([lambda thread=n: work(thread) for n in range(THREADS)])  # type: ignore[misc]
    engine.idle(PATIENCE_S * 3)
    live, pending = engine.look(states), engine.look(lambda cell: list(cell.pending))
    letters = engine.dead_letters()
    engine.stop()

    assert len(admissions) == EVENTS
    outcomes = Counter(admission.outcome for admission in admissions)
    assert outcomes == {"ok": EVENTS - PLANTED, "set_aside": PLANTED}
    assert {letter.error for letter in letters} == {"PlantedError"}
    assert len(letters) == PLANTED
    records = [record for frame in journal.frames for record in decode_frame(frame)]
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert len({admission.seq for admission in admissions}) == EVENTS
    assert sum(record.outcome == "set_aside" for record in records) == PLANTED
    assert len(gateway.of(commands.Send)) > EVENTS // 40

    again = Cell()
    found = replay(again, journal.frames)
    assert not found.differs
    assert states(again) == live
    assert list(again.pending) == pending


class Posting:
    """Sixteen threads and four tasks that post and ask until the engine refuses."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.taken: list[Admission] = []
        self.refused = 0
        self.under_way = threading.Semaphore(0)
        self.threads = [threading.Thread(target=self._work, args=(f"c{n}",)) for n in range(16)]
        self._lock = threading.Lock()

    def _work(self, name: str) -> None:
        with contextlib.suppress(NotRunning):
            for n in range(10_000):
                admission = self.engine.post(activity(name) if n else opened(name))
                with self._lock:
                    self.taken.append(admission)
                if n % 16 == 3:
                    self.engine.call(reply(name, f"k{n}"), PATIENCE_S)
                self.under_way.release()

    async def on_the_loop(self, name: str) -> None:
        try:
            self.taken.append(await self.engine.post(opened(name)))
            for n in range(10_000):
                await self.engine.ask(reply(name, f"k{n}"))
        except NotRunning:
            self.refused += 1

    def reach(self, count: int) -> None:
        for _ in range(count):
            assert self.under_way.acquire(timeout=PATIENCE_S)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@pytest.mark.parametrize("round_", range(STOPS))
async def test_stop_in_the_middle(round_: int) -> None:
    """Whoever was taken in is answered, whatever was taken in is in the journal, and a replay agrees."""
    journal = ThreadJournal() if round_ % 2 else MemoryJournal()
    engine = Engine(QUICK, (Async if round_ % 3 else Plain)(), journal=journal)
    posting = Posting(engine)
    async with engine:
        tasks = [asyncio.ensure_future(posting.on_the_loop(f"loop{n}")) for n in range(4)]
        for thread in posting.threads:
            thread.start()
        await asyncio.to_thread(posting.reach, 20 + 7 * round_)
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE_S)
    await asyncio.to_thread(posting.join)
    assert posting.refused == 4
    assert {admission.wait(0).outcome for admission in posting.taken} == {"ok"}
    records = {record.seq: record.body.event for frame in journal.frames for record in decode_frame(frame)}
    assert all(records[admission.seq] is not None for admission in posting.taken if admission.seq is not None)
    again = Cell()
    assert not replay(again, journal.frames).differs
    assert states(again) == engine.look(states)
