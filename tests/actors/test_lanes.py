"""What goes to one channel does not wait for a slow call to another, and keeps its own order."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.actors.hosts import PATIENCE_S, Async, Plain, sent
from turnkeeper import Engine, commands, events
from turnkeeper.engine.ids import ChannelRef

SLOW, FAST = ChannelRef.parse("tg/1"), ChannelRef.parse("tg/2")


class Stuck:
    """Holds what goes to one channel, but for reactions, until it is let go."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self.let_go = threading.Event()

    def __call__(self, command: commands.Command) -> Any:
        if isinstance(command, commands.Preview | commands.Send) and command.channel == SLOW:
            self.inside.release()
            assert self.let_go.wait(PATIENCE_S)
        return sent(command) if isinstance(command, commands.Settleable) else None


def opened(turn_id: str, channel: ChannelRef, message: int) -> events.TurnOpened:
    return events.TurnOpened("c1", turn_id, channel=channel, message=message)


def test_an_answer_passes_what_waits_for_another_channel() -> None:
    """A snapshot hangs in one channel and its answer waits behind it; the other channel's answer goes."""
    stuck = Stuck()
    gateway = Plain(stuck)
    with Engine({}, gateway) as engine:
        engine.post(opened("P", SLOW, 1))
        engine.post(opened("Q", FAST, 2))
        engine.post(events.Preview("c1", "so far", turn_id="P"))
        assert stuck.inside.acquire(timeout=PATIENCE_S)
        engine.post(events.Reply("c1", "k1", text="slow", turn_id="P")).wait(PATIENCE_S)
        assert engine.call(events.Reply("c1", "k2", text="fast", turn_id="Q"), PATIENCE_S).ok
        assert [send.text for send in gateway.of(commands.Send)] == ["fast"]
        stuck.let_go.set()
        engine.idle(PATIENCE_S)
    assert [send.text for send in gateway.of(commands.Send)] == ["fast", "slow"]


def test_a_mark_does_not_wait_for_a_send_of_its_channel() -> None:
    stuck = Stuck()
    gateway = Plain(stuck)
    with Engine({}, gateway) as engine:
        engine.post(opened("P", SLOW, 1))
        engine.post(events.Reply("c1", "k1", text="slow", turn_id="P"))
        assert stuck.inside.acquire(timeout=PATIENCE_S)
        engine.post(events.Refused("c1", "P")).wait(PATIENCE_S)
        engine.post(opened("Q", FAST, 2))
        assert engine.call(events.Reply("c1", "k2", text="fast", turn_id="Q"), PATIENCE_S).ok
        assert len(gateway.of(commands.React)) == 1
        stuck.let_go.set()
        engine.idle(PATIENCE_S)


@pytest.mark.parametrize("kind", [Plain, Async])
def test_what_goes_to_no_channel_keeps_its_place(kind: type[Plain]) -> None:
    """Many turns in two channels end by refusal: each chat reads record, mark and terminal in this order."""
    gateway = kind()
    with Engine({}, gateway) as engine:
        for n in range(20):
            engine.post(opened(f"P{n}", SLOW if n % 2 else FAST, n))
            engine.post(events.Reply("c1", f"k{n}", text=f"t{n}", turn_id=f"P{n}"))
            engine.post(events.Refused("c1", f"P{n}"))
        engine.idle(PATIENCE_S)
    for n in range(20):
        mine = [type(one) for one in gateway.performed if getattr(one, "turn_id", None) == f"P{n}"]
        told = [kind for kind in mine if kind in {commands.Record, commands.TurnSettled}]
        assert told == [commands.Record, commands.TurnSettled]
    plain = [one for one in gateway.performed if not isinstance(one, commands.Settleable)]
    ids = [tuple(map(int, one.id.split("."))) for one in plain]
    assert ids == sorted(ids)
