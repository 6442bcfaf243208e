"""Fairness of the ingress, in messages: what an event waits for, one chat being 10,000 ahead."""

from __future__ import annotations

import pytest

from turnkeeper.actors.sequencer import Door, Entry, Sequencer
from turnkeeper.engine import events
from turnkeeper.engine.journal import Body

AHEAD = 10_000


def put(sequencer: Sequencer, chat: str, times: int = 1) -> None:
    for number in range(times):
        sequencer.put(Entry(chat, Body(event=events.Activity(chat, str(number)))))


def drained(sequencer: Sequencer, drain: int, most: int) -> list[str]:
    """Take drain after drain, as the shard does, and return whose events came in which order."""
    order: list[str] = []
    while len(order) < most:
        entries, _ = sequencer.take(drain, 0)
        if not entries:
            break
        order += [entry.chat for entry in entries]
    return order


@pytest.fixture
def sequencer() -> Sequencer:
    made = Sequencer(high=1_000_000, low=900_000)
    made.set_door(Door.OPEN)
    return made


@pytest.mark.parametrize("drain", [1, 7, 64, 20_000])
def test_a_quiet_chat_waits_for_one_event_of_each_other(sequencer: Sequencer, drain: int) -> None:
    put(sequencer, "loud", AHEAD)
    quiet = [f"quiet{n}" for n in range(20)]
    for chat in quiet:
        put(sequencer, chat)
    order = drained(sequencer, drain, AHEAD + len(quiet))
    assert order.count("loud") == AHEAD
    for chat in quiet:
        before = order[: order.index(chat)]
        assert max(map(before.count, {*quiet, "loud"})) <= 1


@pytest.mark.parametrize("drain", [1, 64])
def test_own_events_ahead_are_the_only_price(sequencer: Sequencer, drain: int) -> None:
    """An event with k of its own chat ahead waits for at most k + 1 of each other chat."""
    put(sequencer, "loud", AHEAD)
    put(sequencer, "middling", 5)
    put(sequencer, "quiet")
    order = drained(sequencer, drain, AHEAD + 6)
    nth = [index for index, chat in enumerate(order) if chat == "middling"]
    for ahead, index in enumerate(nth):
        assert order[:index].count("loud") <= ahead + 1
        assert order[:index].count("quiet") <= ahead + 1


def test_who_comes_later_waits_no_longer(sequencer: Sequencer) -> None:
    put(sequencer, "loud", AHEAD)
    drained(sequencer, 64, 5_000)
    put(sequencer, "late")
    assert drained(sequencer, 64, 64).index("late") <= 1
