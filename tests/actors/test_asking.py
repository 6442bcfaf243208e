"""Asking: a call's ack goes to its waiter if there is one, else to the gateway."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.actors.hosts import PATIENCE_S, QUICK, Async, Plain, opened, reply, sent
from turnkeeper import DecodeError, Engine, MemoryJournal, Misuse, NotRunning, Overloaded, SetAside, commands, events
from turnkeeper.engine import cell


def test_call_returns_the_ack_and_the_gateway_never_sees_it() -> None:
    gateway = Plain()
    with Engine({}, gateway) as engine:
        engine.post(opened("c1"))
        ack = engine.call(reply("c1", "k1"), PATIENCE_S)
        engine.idle(PATIENCE_S)
    assert (ack.ok, ack.message, ack.delivery) == (True, 9001, "sent")
    assert not gateway.of(commands.Ack)


async def test_ask_on_the_loop_that_performs() -> None:
    gateway = Async()
    async with Engine({}, gateway) as engine:
        await engine.post(opened("c1"))
        acks = await asyncio.gather(*(engine.ask(reply("c1", f"k{n}")) for n in range(10)))
    assert [ack.call_id for ack in acks] == [f"k{n}" for n in range(10)]
    assert all(ack.ok for ack in acks)
    assert gateway.loops == {asyncio.get_running_loop()}


def test_a_call_that_nobody_waits_for_is_answered_to_the_gateway() -> None:
    gateway = Plain()
    with Engine({}, gateway) as engine:
        engine.post(opened("c1"))
        engine.post(reply("c1", "k1")).wait(PATIENCE_S)
        engine.idle(PATIENCE_S)
    (ack,) = gateway.of(commands.Ack)
    assert (ack.call_id, ack.ok) == ("k1", True)


def test_an_error_made_by_the_call_itself_goes_to_that_caller() -> None:
    """The same id with other arguments while the first is out: the second caller gets the error, the first its answer."""
    out = threading.Event()
    held: list[Any] = []

    def hold(command: Any) -> None:
        if isinstance(command, commands.Send):
            held.append(command)
            out.set()

    gateway = Plain(hold)
    with Engine({}, gateway) as engine:
        engine.post(opened("c1"))
        first: list[commands.Ack] = []
        waiting = threading.Thread(target=lambda: first.append(engine.call(reply("c1", "k1"), PATIENCE_S)))
        waiting.start()
        assert out.wait(PATIENCE_S)
        second = engine.call(reply("c1", "k1", text="something else"), PATIENCE_S)
        assert second.error == "call id used with other arguments"
        engine.post(sent(held[0]))
        waiting.join(PATIENCE_S)
    assert first[0].ok


def test_a_repeat_of_a_call_that_is_out_gets_its_outcome_too() -> None:
    held: list[Any] = []
    out = threading.Event()

    def hold(command: Any) -> None:
        if isinstance(command, commands.Send):
            held.append(command)
            out.set()

    with Engine({}, Plain(hold)) as engine:
        engine.post(opened("c1"))
        acks: list[commands.Ack] = []
        threads = [
            threading.Thread(target=lambda: acks.append(engine.call(reply("c1", "k1"), PATIENCE_S))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        assert out.wait(PATIENCE_S)
        engine.idle(PATIENCE_S)
        engine.post(sent(held[0]))
        for thread in threads:
            thread.join(PATIENCE_S)
    assert [ack.ok for ack in acks] == [True] * 3
    assert len(held) == 1


def test_a_caller_that_gave_up_leaves_its_ack_to_the_gateway() -> None:
    held: list[Any] = []
    gateway = Plain(lambda command: held.append(command) if isinstance(command, commands.Send) else None)
    with Engine({}, gateway) as engine:
        engine.post(opened("c1"))
        with pytest.raises(TimeoutError, match="ask again with the same call_id"):
            engine.call(reply("c1", "k1"), 0)
        engine.idle(PATIENCE_S)
        engine.post(sent(held[0]))
        engine.idle(PATIENCE_S)
    assert [ack.call_id for ack in gateway.of(commands.Ack)] == ["k1"]


async def test_call_refuses_the_thread_of_a_running_loop() -> None:
    async with Engine({}, Async()) as engine:
        with pytest.raises(Misuse, match=r"call\(\) would block the running loop of this thread; await ask"):
            engine.call(reply("c1", "k1"), 1)


def test_only_calls_of_the_agent_are_asked() -> None:
    with (
        Engine({}, Plain()) as engine,
        pytest.raises(DecodeError, match="ask was given turn_opened; only reply and edit"),
    ):
        engine.call(opened("c1"), 1)  # type: ignore[arg-type]


def test_a_call_that_was_set_aside_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: object) -> None:
        raise ZeroDivisionError

    gateway = Plain()
    with Engine({}, gateway) as engine:
        monkeypatch.setitem(cell.STEPS, "chat", raising)
        with pytest.raises(SetAside, match=r"a step raised ZeroDivisionError; it is in Engine\.dead_letters"):
            engine.call(reply("c1", "k1"), PATIENCE_S)
        admission = engine.post(reply("c1", "k2")).wait(PATIENCE_S)
        letters = engine.dead_letters()
    assert admission.outcome == "set_aside"
    assert [(letter.chat, letter.error) for letter in letters] == [("c1", "ZeroDivisionError")] * 2
    assert letters[1].event == reply("c1", "k2")
    assert not gateway.performed


def test_so_many_dead_letters_and_the_newest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: object) -> None:
        raise ZeroDivisionError

    registry = CollectorRegistry()
    with Engine({"limits": {"dead_letters": 3}}, Plain(), registry=registry) as engine:
        monkeypatch.setitem(cell.STEPS, "chat", raising)
        for n in range(5):
            engine.post(events.Activity("c1", f"hook {n}")).wait(PATIENCE_S)
        assert [letter.event.cause for letter in engine.dead_letters()] == ["hook 2", "hook 3", "hook 4"]  # type: ignore[union-attr]
        engine.reload({"limits": {"dead_letters": 1}}).wait(PATIENCE_S)
        assert [letter.seq for letter in engine.dead_letters()] == [6]
    assert registry.get_sample_value("turnkeeper_limit_reached_total", {"limit": "dead_letters"}) == 2


def test_so_many_callers_wait_and_no_more() -> None:
    gateway = Plain(lambda _: None)
    with Engine({"limits": {"waiters": 2}}, gateway) as engine:
        engine.post(opened("c1"))
        threads = [threading.Thread(target=_call_until_stopped, args=(engine, f"k{n}")) for n in range(2)]
        for thread in threads:
            thread.start()
        while engine._parts.seats._taken < 2:
            engine.idle(PATIENCE_S)
        with pytest.raises(
            Overloaded, match=r"2 callers wait for an outcome, limits\.waiters is 2; nothing was posted"
        ):
            engine.call(reply("c1", "k3"), 1)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert engine._parts.seats._taken == 0


def _call_until_stopped(engine: Engine, call: str) -> None:
    with pytest.raises(NotRunning, match="before this was answered"):
        engine.call(reply("c1", call), PATIENCE_S)


async def test_turn_settled_before_and_after_the_end() -> None:
    async with Engine(QUICK, Async()) as engine:
        early = asyncio.ensure_future(engine.turn_settled("c1", "P"))
        await engine.post(opened("c1"))
        await engine.ask(reply("c1", "k1"))
        await engine.post(events.Stopped("c1", "answer of k1"))
        ended = await asyncio.wait_for(early, PATIENCE_S)
        assert (ended.outcome, ended.replies, ended.delivered) == ("final-reply", 1, "yes")
        assert await engine.turn_settled("c1", "P") == ended


async def test_a_turn_that_settled_in_an_earlier_life_is_told_as_that() -> None:
    journal = MemoryJournal()
    async with Engine(QUICK, Async(), journal=journal) as engine:
        await engine.post(opened("c1"))
        await engine.post(events.Lost("c1", "gone"))
        await engine.turn_settled("c1", "P")
        await asyncio.to_thread(engine.idle, PATIENCE_S)
    async with Engine(QUICK, Async(), journal=MemoryJournal(journal.frames)) as engine:
        with pytest.raises(Misuse, match="turn P of chat c1 settled before this engine started"):
            await asyncio.wait_for(engine.turn_settled("c1", "P"), PATIENCE_S)


async def test_who_stops_waiting_for_a_turn_is_forgotten() -> None:
    async with Engine({}, Async()) as engine:
        for _ in range(3):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(engine.turn_settled("c1", "never"), 0.001)
        await asyncio.to_thread(engine.idle, PATIENCE_S)
        assert engine._parts.seats._taken == 0
        assert not engine._parts.desk._awaiting


async def test_no_waiter_outlives_the_engine() -> None:
    engine = Engine({}, Async(lambda _: None))
    async with engine:
        await engine.post(opened("c1"))
        waiting = [
            asyncio.ensure_future(engine.ask(reply("c1", "k1"))),
            asyncio.ensure_future(engine.turn_settled("c1", "P")),
        ]
        await asyncio.to_thread(engine.idle, PATIENCE_S)
    for found in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(found, NotRunning)
    with pytest.raises(NotRunning):
        await engine.turn_settled("c1", "P")
