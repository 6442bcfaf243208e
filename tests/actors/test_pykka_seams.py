"""What we override of pykka is marked internal there: these tests fail when a release changes it (docs/adr/0001)."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import time
from importlib.metadata import version
from typing import Any

import pykka
import pytest
from pykka._actor import ActorInbox
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from tests.actors.hosts import PATIENCE_S, Async, Plain, activity, opened, reply
from turnkeeper import Admission, DecodeError, Engine, MemoryJournal, Misuse, SetAside
from turnkeeper.actors.owners import AWAKE_MAX, ChannelActor, ChatActor, OwnerActor, OwnerRef, Roster, TurnActor
from turnkeeper.actors.waiting import EngineFuture
from turnkeeper.engine import cell
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.errors import InvariantViolated
from turnkeeper.engine.ids import chat_at


def test_the_release_is_one_that_was_looked_at() -> None:
    major, minor, *_ = map(int, version("pykka").split("."))
    assert (major, minor) >= (4, 5)
    assert major < 5


def test_the_seams_are_where_they_were() -> None:
    assert {name for name in vars(ActorInbox) if not name.startswith("_")} == {"put", "get", "empty"}
    assert issubclass(OwnerActor, pykka.Actor)
    assert pykka.Actor.__abstractmethods__ == {"_create_actor_inbox", "_create_future", "_start_actor_loop"}
    assert not OwnerActor.__abstractmethods__
    source = inspect.getsource(pykka.Actor.__init__)
    assert re.findall(r"self\.(\w+) = ", source) == ["actor_urn", "actor_inbox", "actor_stopped", "_actor_ref"]
    assert "self._create_actor_inbox()" in source
    assert "self.actor_stopped = threading.Event()" in source
    assert "self.actor_inbox.put(Envelope(message))" in inspect.getsource(pykka.ActorRef.tell)
    assert "self.actor_class._create_future()" in inspect.getsource(pykka.ActorRef.ask)
    assert {"set", "set_exception", "get", "__await__"} <= set(vars(pykka.Future))
    assert Envelope("m").reply_to is None


def test_actors_are_kept_out_of_the_registry_and_off_threads() -> None:
    before = threading.active_count()
    with Engine({}, Plain()) as engine:
        for n in range(50):
            engine.post(opened(f"c{n}"))
        engine.idle(PATIENCE_S)
        owners = engine.look(lambda cell: [type(owner) for owner in cell.owners.values()])
        assert threading.active_count() <= before + 3
        assert not pykka.ActorRegistry.get_all()
    assert {ChatActor, TurnActor} <= set(owners)


def test_every_message_between_owners_travels_through_its_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    real = OwnerRef.tell

    def tell(self: OwnerRef, message: Any) -> None:
        inbox: Any = self.actor_inbox
        if inbox.house.in_run():
            told.append(f"{inbox.address.kind} {type(message).__name__}")
        real(self, message)

    monkeypatch.setattr(OwnerRef, "tell", tell)
    with Engine({}, Plain()) as engine:
        engine.post(opened("c1"))
        engine.call(reply("c1", "k1"), PATIENCE_S)
        engine.idle(PATIENCE_S)
        kinds = engine.look(lambda cell: {type(owner) for owner in cell.owners.values()})
    assert told[:2] == ["chat TurnOpened", "turn Opened"]
    assert {"channel Deliver", "turn QuoteWanted", "channel QuoteGiven", "channel Handed", "chat DeliveryEnded"} <= set(
        told
    )
    assert kinds == {ChatActor, TurnActor, ChannelActor}


def test_a_reference_tells_and_asks() -> None:
    journal = MemoryJournal()
    with Engine({}, Plain(), journal=journal) as engine:
        reference = engine.chat("c1")
        assert isinstance(reference, pykka.ActorRef)
        assert reference.actor_class is ChatActor
        assert reference.is_alive()
        reference.tell(opened("c1"))
        admitted = reference.ask(activity("c1"), timeout=PATIENCE_S)
        assert isinstance(admitted, Admission)
        assert (admitted.seq, admitted.outcome) == (3, "ok")
        future = reference.ask(activity("c1"), block=False)
        assert isinstance(future, EngineFuture)
        assert future.get(timeout=PATIENCE_S).seq == 4
    assert not reference.is_alive()
    with pytest.raises(pykka.ActorDeadError):
        reference.tell(activity("c1"))
    with pytest.raises(pykka.ActorDeadError):
        reference.ask(activity("c1"))


async def test_a_future_of_ours_is_awaited_without_blocking_the_loop() -> None:
    async with Engine({}, Async()) as engine:
        reference = engine.chat("c1")
        futures = [reference.ask(activity("c1"), block=False) for _ in range(5)]
        assert [admitted.seq for admitted in await asyncio.gather(*map(_await, futures))] == [2, 3, 4, 5, 6]


async def _await(future: Any) -> Any:
    return await future


def test_an_ask_of_what_is_set_aside_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(*_: object) -> None:
        raise ZeroDivisionError

    with Engine({}, Plain()) as engine:
        monkeypatch.setitem(cell.STEPS, "chat", step)
        with pytest.raises(SetAside, match="event 2 was set aside"):
            engine.chat("c1").ask(activity("c1"), timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("message", "found"),
    [
        pytest.param(_ActorStop(), "_ActorStop", id="stop"),
        pytest.param("hello", "str", id="text"),
        pytest.param(activity("c2"), "an event of chat c2", id="another chat"),
    ],
)
def test_from_outside_a_chat_takes_its_own_events_only(message: Any, found: str) -> None:
    with Engine({}, Plain()) as engine:
        reference = engine.chat("c1")
        with pytest.raises(DecodeError, match=f"chat of chat c1 was told {found}; .* stop owners with Engine.stop"):
            reference.tell(message)
        with pytest.raises(DecodeError):
            reference.ask(message)
        with pytest.raises(DecodeError):
            reference.stop()
        engine.post(activity("c1")).wait(PATIENCE_S)


def test_an_owner_is_not_reached_past_its_chat() -> None:
    with Engine({}, Plain()) as engine:
        engine.post(opened("c1")).wait(PATIENCE_S)
        turn = engine.look(lambda cell: next(o for o in cell.owners.values() if isinstance(o, TurnActor)))
        with pytest.raises(DecodeError, match="turn:P of chat c1 was told an event of chat c1"):
            turn.actor_ref.tell(activity("c1"))
        with pytest.raises(InvariantViolated, match="outside of the shard's run"):
            turn.on_receive(activity("c1"))


def test_a_proxy_calls_nothing() -> None:
    with Engine({}, Plain()) as engine:
        proxy = engine.chat("c1").proxy()
        with pytest.raises(DecodeError, match="ProxyCall"):
            proxy.tell(activity("c1"))


def test_a_host_opens_no_owner() -> None:
    with pytest.raises(Misuse, match=r"ChatActor\.start\(\) opens no owner; .* use Engine\.chat\(name\)"):
        ChatActor.start()


def test_a_future_is_set_once_and_waits_as_pykkas_do() -> None:
    future = EngineFuture()
    with pytest.raises(pykka.Timeout):
        future.get(timeout=0)
    future.set(5)
    future.set(6)
    assert future.get() == 5
    failed = EngineFuture()
    try:
        raise LookupError("why")
    except LookupError:
        failed.set_exception()
    with pytest.raises(LookupError, match="why"):
        failed.get()
    assert EngineFuture().map(str) is not None
    mapped: pykka.Future[str] = future.map(lambda value: f"{value}")
    assert mapped.get() == "5"


def test_an_unused_owner_sleeps_and_wakes_with_its_state() -> None:
    with Engine({}, Plain()) as engine:
        engine._parts.roster._awake_max = 10
        for n in range(40):
            engine.post(opened(f"c{n}"))
        engine.idle(PATIENCE_S)
        awake = engine.look(lambda _: engine._parts.roster.awake())
        assert sum(awake.values()) <= 10
        assert engine.look(lambda cell: len(cell.owners)) == 80
        assert engine.call(reply("c0", "k1"), PATIENCE_S).ok
        assert engine.inspect("c0")["turns"]["P"]["replies"] == 1


def test_an_owner_that_an_undone_run_woke_sleeps_again(monkeypatch: pytest.MonkeyPatch) -> None:
    real = cell.STEPS["turn"]

    def step(*_: object) -> None:
        raise ZeroDivisionError

    with Engine({}, Plain()) as engine:
        engine._parts.roster._awake_max = 0
        engine.post(opened("c1")).wait(PATIENCE_S)
        before = engine.look(lambda cell: {address: (type(o), o.state) for address, o in cell.owners.items()})
        assert not engine.look(lambda _: engine._parts.roster.awake())
        engine._parts.roster._awake_max = 100
        monkeypatch.setitem(cell.STEPS, "turn", step)
        assert engine.post(activity("c1")).wait(PATIENCE_S).outcome == "set_aside"
        after = engine.look(lambda cell: {address: (type(o), o.state) for address, o in cell.owners.items()})
        assert after == before
        monkeypatch.setitem(cell.STEPS, "turn", real)
        assert engine.call(reply("c1", "k1"), PATIENCE_S).ok


def test_an_actor_costs_no_thread_and_little_time() -> None:
    """As many owners as `ThreadingActor` cannot hold, in one engine; no wall-clock claim but a generous bound."""
    stopped = threading.Event()

    class House:
        cell = Cell()

        def in_run(self) -> bool:
            return False

        def admit(self, address: Any, envelope: Any, /) -> None:
            raise AssertionError

    roster = Roster(House(), stopped)
    began = time.monotonic()
    made = [roster.reference(chat_at(f"c{n}")) for n in range(AWAKE_MAX)]
    assert time.monotonic() - began < PATIENCE_S
    assert all(reference.is_alive() for reference in made)
    stopped.set()
    assert not any(reference.is_alive() for reference in made)
