"""Handing over: in order per chat, bounded, settled whatever the gateway does."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from typing import Any

import pytest

from tests.actors.hosts import PATIENCE_S, QUICK, Async, Plain, activity, opened, reply, sent
from turnkeeper import Engine, MemoryJournal, commands, events
from turnkeeper.engine.ids import ChannelRef
from turnkeeper.engine.journal import decode_frame
from turnkeeper.engine.lab.clock import VirtualClock

NO_RETRY = {"delivery": {"retries": 0}}


def bodies(journal: MemoryJournal, name: str) -> list[Any]:
    found = [getattr(record.body, name) for frame in journal.frames for record in decode_frame(frame)]
    return [body for body in found if body is not None]


def settlements(journal: MemoryJournal) -> list[events.Settled]:
    return [event for event in bodies(journal, "event") if isinstance(event, events.Settled)]


@pytest.mark.parametrize("kind", [Plain, Async])
def test_a_settlement_is_completed_with_what_the_command_knows(kind: type[Plain]) -> None:
    journal, gateway = MemoryJournal(), kind()
    with Engine({}, gateway, journal=journal) as engine:
        engine.post(opened("c1"))
        engine.call(reply("c1", "k1"), PATIENCE_S)
    (settled,) = settlements(journal)
    assert settled == events.Settled(
        "c1", "reply:c1:k1", "sent", channel=ChannelRef("tg", "100"), attempt=1, messages=(9001,)
    )
    assert [(handed.delivery, handed.attempt) for handed in bodies(journal, "handed")] == [("reply:c1:k1", 1)]


class Timeout429(Exception):
    """What a platform's library raises."""


@pytest.mark.parametrize("kind", [Plain, Async])
def test_raising_is_a_failed_delivery_with_the_type_told_and_the_text_never(
    kind: type[Plain], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    journal = MemoryJournal()

    def fail(command: commands.Command) -> None:
        if isinstance(command, commands.Send):
            raise Timeout429("the secret token of the platform")

    with Engine(NO_RETRY, kind(fail), journal=journal) as engine:
        engine.post(opened("c1"))
        ack = engine.call(reply("c1", "k1"), PATIENCE_S)
        engine.idle(PATIENCE_S)
    assert ack.error == "delivery failed: Timeout429"
    (settled,) = settlements(journal)
    assert (settled.outcome, settled.reason, settled.permanent) == ("failed", "Timeout429", False)
    assert "Timeout429" in caplog.text
    assert "secret token" not in caplog.text


def test_returning_something_else_is_an_unknown_outcome_never_a_resend() -> None:
    journal, gateway = MemoryJournal(), Plain(lambda command: {"message_id": 5})
    with Engine({}, gateway, journal=journal) as engine:
        engine.post(opened("c1"))
        engine.call(reply("c1", "k1"), PATIENCE_S)
        engine.idle(PATIENCE_S)
    assert [(settled.outcome, settled.reason) for settled in settlements(journal)] == [
        ("unknown", "perform returned dict")
    ]
    assert len(gateway.of(commands.Send)) == 1


def test_a_settlement_that_cannot_be_read_is_none(caplog: pytest.LogCaptureFixture) -> None:
    """The attempt then ends at its time-out, as one that nobody settled."""
    clock, journal = VirtualClock(), MemoryJournal()
    gateway = Plain(lambda c: events.Settled(c.chat, c.delivery, "perhaps") if isinstance(c, commands.Send) else None)  # type: ignore[arg-type]
    with Engine({}, gateway, journal=journal, clock=clock) as engine:
        engine.post(opened("c1"))
        engine.post(reply("c1", "k1"))
        engine.idle(PATIENCE_S)
        assert engine.inspect("c1")["channels"]["tg/100"]["phase"] == "handed"
        clock.advance_to(60_000)
        engine.idle(PATIENCE_S)
        assert engine.inspect("c1")["channels"]["tg/100"]["phase"] is None
    assert "cannot be read" in caplog.text


def test_what_is_not_settled_is_tried_again_until_it_returns() -> None:
    clock, journal = VirtualClock(), MemoryJournal()
    tries: list[int] = []

    def flaky(command: commands.Command) -> Any:
        if isinstance(command, commands.TurnSettled):
            tries.append(clock.now_ms())
            if len(tries) < 4:
                raise OSError("disk")
        return sent(command) if isinstance(command, commands.Settleable) else None

    with Engine(QUICK, Plain(flaky), journal=journal, clock=clock) as engine:
        engine.post(opened("c1"))
        engine.post(events.Lost("c1", "gone"))
        engine.idle(PATIENCE_S)
        while (due_ms := engine.next_due_ms()) is not None and len(tries) < 4:
            clock.advance_to(due_ms)
            engine.idle(PATIENCE_S)
        assert tries == [0, 1000, 6000, 31_000]
        assert not engine.look(lambda cell: dict(cell.pending))
    assert [done.id for done in bodies(journal, "done")] == ["3.0"]


def test_a_command_that_always_fails_holds_up_nothing_else() -> None:
    clock = VirtualClock()

    def fail(command: commands.Command) -> Any:
        if isinstance(command, commands.TurnSettled):
            raise NotImplementedError
        return sent(command) if isinstance(command, commands.Settleable) else None

    gateway = Plain(fail)
    with Engine(QUICK, gateway, clock=clock) as engine:
        engine.post(opened("c1", "P"))
        engine.post(events.Lost("c1", "gone"))
        engine.idle(PATIENCE_S)
        engine.post(opened("c1", "Q", 6407))
        assert engine.call(reply("c1", "k1", "Q"), PATIENCE_S).ok
        engine.post(events.Lost("c1", "gone"))
        engine.idle(PATIENCE_S)
    assert [command.turn_id for command in gateway.of(commands.TurnSettled)] == ["P", "Q"]


@pytest.mark.parametrize("kind", [Plain, Async])
def test_the_commands_of_a_chat_are_handed_over_in_order(kind: type[Plain]) -> None:
    """What one refusal commands: record, mark, terminal; thirty chats at once."""
    gateway = kind()
    with Engine({}, gateway) as engine:
        for n in range(30):
            engine.post(opened(f"c{n}"))
            engine.post(events.Refused(f"c{n}", "P"))
        engine.idle(PATIENCE_S)
    for n in range(30):
        mine = [command for command in gateway.performed if command.chat == f"c{n}"]
        assert [type(command) for command in mine] == [commands.Record, commands.React, commands.TurnSettled]
        ids = [tuple(map(int, command.id.split("."))) for command in mine]
        assert ids == sorted(ids)


class Gate:
    """Holds calls of the gateway inside until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.inside = threading.Semaphore(0)
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def __call__(self, command: commands.Command) -> Any:
        if not isinstance(command, commands.Send):
            return None
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self.inside.release()
        assert self.opened.wait(PATIENCE_S)
        with self._lock:
            self._now -= 1
        return sent(command)

    def enter(self, count: int) -> None:
        for _ in range(count):
            assert self.inside.acquire(timeout=PATIENCE_S)


def test_so_many_calls_at_once_and_no_more() -> None:
    gate = Gate()
    gateway = Plain(gate)
    with Engine({"delivery": {"concurrency": 3}}, gateway) as engine:
        for n in range(8):
            engine.post(opened(f"c{n}"))
            engine.post(reply(f"c{n}", "k1"))
        gate.enter(3)
        engine.post(activity("c0")).wait(PATIENCE_S)
        assert len(gateway.performed) == 3
        gate.opened.set()
        engine.idle(PATIENCE_S)
    assert gate.most == 3
    assert len(gateway.of(commands.Send)) == 8
    assert len(gateway.threads) == 3


async def test_async_calls_are_bounded_too() -> None:
    inside, released = asyncio.Semaphore(0), asyncio.Event()

    async def hold(command: commands.Send) -> events.Settled:
        inside.release()
        await released.wait()
        return sent(command)

    gateway = Async(lambda command: hold(command) if isinstance(command, commands.Send) else None)
    async with Engine({"delivery": {"concurrency": 2}}, gateway) as engine:
        for n in range(5):
            engine.post(opened(f"c{n}"))
            engine.post(reply(f"c{n}", "k1"))
        await inside.acquire()
        await inside.acquire()
        await engine.post(activity("c0"))
        assert len(gateway.performed) == 2
        released.set()
        await asyncio.to_thread(engine.idle, PATIENCE_S)
    assert len(gateway.of(commands.Send)) == 5


def test_a_hanging_call_holds_up_neither_other_chats_nor_other_channels_nor_for_ever() -> None:
    clock, never = VirtualClock(), threading.Event()

    def hang(command: commands.Command) -> Any:
        if isinstance(command, commands.Send) and command.delivery == "reply:c1:k1":
            never.wait(PATIENCE_S)
            return None
        return sent(command) if isinstance(command, commands.Settleable) else None

    gateway = Plain(hang)
    with Engine({}, gateway, clock=clock) as engine:
        engine.post(opened("c1", "P"))
        engine.post(opened("c1", "Q", 5, "dc/7"))
        engine.post(opened("c2"))
        engine.post(reply("c1", "k1"))
        assert engine.call(reply("c2", "k1"), PATIENCE_S).ok
        assert engine.call(reply("c1", "k2", "Q"), PATIENCE_S).ok
        engine.post(reply("c1", "k3")).wait(PATIENCE_S)
        assert [command.delivery for command in gateway.of(commands.Send)].count("reply:c1:k3") == 0
        with pytest.raises(TimeoutError):
            engine.idle(0.01)
        clock.advance_to(60_000)
        engine.idle(PATIENCE_S)
        assert gateway.of(commands.Send)[-1].delivery == "reply:c1:k3"
        # What hangs is known to hang: stop does not wait for it.
        engine.stop(PATIENCE_S)
    never.set()


def test_a_snapshot_on_its_way_is_back_before_the_answer_replaces_it() -> None:
    """Else the platform could show the older snapshot last."""
    gate = Gate()

    def slow(command: commands.Command) -> Any:
        if isinstance(command, commands.Preview) and "two" in command.text:
            gate.inside.release()
            assert gate.opened.wait(PATIENCE_S)
        return sent(command) if isinstance(command, commands.Settleable) else None

    gateway = Plain(slow)
    with Engine({}, gateway) as engine:
        engine.post(opened("c1"))
        engine.post(events.Preview("c1", "one", turn_id="P"))
        engine.idle(PATIENCE_S)
        engine.post(events.Preview("c1", "one two", turn_id="P"))
        gate.enter(1)
        engine.post(reply("c1", "k1")).wait(PATIENCE_S)
        engine.post(activity("c1")).wait(PATIENCE_S)
        assert not gateway.of(commands.Send)
        gate.opened.set()
        engine.idle(PATIENCE_S)
    (final,) = gateway.of(commands.Send)
    assert final.replaces_preview


def test_an_attempt_that_is_not_wanted_any_more_is_not_performed() -> None:
    """The platform said of attempt 1 that it arrived after all, while attempt 2 waited for a slot."""
    clock, gate = VirtualClock(), Gate()

    def act(command: commands.Command) -> Any:
        if isinstance(command, commands.Send) and command.chat == "busy":
            return gate(command)
        if isinstance(command, commands.Send):
            return events.Settled(command.chat, command.delivery, "failed", reason="timeout")
        return None

    gateway = Plain(act)
    with Engine({"delivery": {"concurrency": 1, "jitter_percent": 0}}, gateway, clock=clock) as engine:
        engine.post(opened("c1"))
        engine.post(reply("c1", "k1"))
        engine.idle(PATIENCE_S)
        engine.post(opened("busy"))
        engine.post(reply("busy", "k1"))
        gate.enter(1)
        clock.advance_to(1000)
        engine.post(activity("c1")).wait(PATIENCE_S)
        engine.post(events.Settled("c1", "reply:c1:k1", "sent", attempt=1, messages=(9001,))).wait(PATIENCE_S)
        gate.opened.set()
        engine.idle(PATIENCE_S)
    assert [command.attempt for command in gateway.of(commands.Send) if command.chat == "c1"] == [1]


class Odd:
    """A plain `perform` that returns an awaitable, as a decorated or a partial one does."""

    def __init__(self) -> None:
        self.loops: set[asyncio.AbstractEventLoop] = set()

    def perform(self, command: commands.Command, /) -> Any:
        return self._later(command)

    async def _later(self, command: commands.Command) -> Any:
        self.loops.add(asyncio.get_running_loop())
        return sent(command) if isinstance(command, commands.Settleable) else None


def test_a_plain_perform_may_return_an_awaitable() -> None:
    gateway = Odd()
    with Engine({}, gateway) as engine:
        engine.post(opened("c1"))
        assert engine.call(reply("c1", "k1"), PATIENCE_S).ok
    assert len(gateway.loops) == 1


def test_an_async_perform_may_be_a_partial_or_an_object() -> None:
    class Callable:
        async def __call__(self, command: commands.Command) -> Any:
            return sent(command) if isinstance(command, commands.Settleable) else None

    class Holder:
        def __init__(self, perform: Any) -> None:
            self.perform = perform

    async def perform(_: str, command: commands.Command) -> Any:
        return sent(command) if isinstance(command, commands.Settleable) else None

    for gateway in (Holder(Callable()), Holder(functools.partial(perform, "bot"))):
        with Engine({}, gateway) as engine:
            engine.post(opened("c1"))
            assert engine.call(reply("c1", "k1"), PATIENCE_S).ok


async def test_a_plain_gateway_under_async_with_is_called_on_threads() -> None:
    gateway = Plain()
    async with Engine({}, gateway) as engine:
        await engine.post(opened("c1"))
        assert (await engine.ask(reply("c1", "k1"))).ok
    assert threading.current_thread().name not in gateway.threads


async def test_a_cancelled_call_is_an_unknown_outcome() -> None:
    journal = MemoryJournal()

    async def cancelled(_: commands.Command) -> None:
        raise asyncio.CancelledError

    gateway = Async(lambda command: cancelled(command) if isinstance(command, commands.Send) else None)
    async with Engine({}, gateway, journal=journal) as engine:
        await engine.post(opened("c1"))
        ack = await engine.ask(reply("c1", "k1"))
    assert ack.error == "unknown"
    assert [(settled.outcome, settled.reason) for settled in settlements(journal)] == [("unknown", "cancelled")]


def test_a_loop_that_the_host_closed_is_a_failed_delivery_not_a_hang() -> None:
    journal = MemoryJournal()
    engine = Engine(NO_RETRY, Async(), journal=journal)

    async def enter_and_forget() -> None:
        await engine.__aenter__()

    asyncio.run(enter_and_forget())
    engine.post(opened("c1"))
    ack = engine.call(reply("c1", "k1"), PATIENCE_S)
    assert ack.error == "delivery failed: RuntimeError"
    engine.stop(PATIENCE_S)
