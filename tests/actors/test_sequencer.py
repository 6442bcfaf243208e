"""The ingress: fair between chats, in order inside one, bounded, closed atomically."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.actors.hosts import PATIENCE_S, Plain, activity
from turnkeeper import Engine, NotRunning, Overloaded, events
from turnkeeper.actors.sequencer import Door, Entry, Sequencer
from turnkeeper.engine.journal import Body, Record

BURST = 500


def entry(event: Any) -> Entry:
    return Entry(event.chat, Body(event=event))


def opened_sequencer(high: int = 1000, low: int = 500) -> Sequencer:
    sequencer = Sequencer(high, low)
    sequencer.set_door(Door.OPEN)
    return sequencer


def taken(sequencer: Sequencer, limit: int) -> list[str]:
    entries, _ = sequencer.take(limit, 0)
    return [f"{each.chat}:{each.body.event.cause}" for each in entries]  # type: ignore[union-attr]


def test_one_event_of_the_next_waiting_chat_at_a_time() -> None:
    sequencer = opened_sequencer()
    for chat, count in (("a", 4), ("b", 1), ("c", 2)):
        for n in range(count):
            sequencer.put(entry(activity(chat, str(n))))
    assert taken(sequencer, 3) == ["a:0", "b:0", "c:0"]
    sequencer.put(entry(activity("b", "1")))
    assert taken(sequencer, 10) == ["a:1", "c:1", "b:1", "a:2", "a:3"]


def test_fairness_in_messages() -> None:
    """Ten chats with one event each behind a burst of another: each waits for at most one of the burst."""
    order: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def observer(record: Record, _: Any) -> None:
        if record.body.event is None:
            return
        if not order:
            inside.set()
            assert go_on.wait(PATIENCE_S)
        order.append(record.body.event.chat)

    with Engine({}, Plain(), observer=observer) as engine:
        engine.post(activity("noisy"))
        assert inside.wait(PATIENCE_S)
        for _ in range(BURST):
            engine.post(activity("noisy"))
        for n in range(10):
            engine.post(activity(f"quiet{n}"))
        go_on.set()
        engine.idle(PATIENCE_S)
    behind = [order.index(f"quiet{n}") for n in range(10)]
    assert behind == list(range(2, 12))
    assert order.count("noisy") == BURST + 1


def test_above_the_high_watermark_events_are_refused_until_the_low_one() -> None:
    sequencer = opened_sequencer(high=4, low=2)
    refused: list[None] = []
    sequencer.refused = lambda: refused.append(None)
    for n in range(4):
        sequencer.put(entry(activity("a", str(n))))
    told = r"activity of chat b was not taken: 4 events wait, limits\.ingress_high is 4; .* at limits\.ingress_low, 2"
    with pytest.raises(Overloaded, match=told):
        sequencer.put(entry(activity("b")))
    sequencer.take(1, 0)
    with pytest.raises(Overloaded):
        sequencer.put(entry(activity("b")))
    sequencer.take(1, 0)
    sequencer.put(entry(activity("b")))
    assert len(refused) == 2
    assert sequencer.depth == 3


def test_what_frees_what_is_in_flight_passes_and_the_refusal_is_counted() -> None:
    """A shard that is held up; two events wait, a third is refused, a settlement is not."""
    registry = CollectorRegistry()
    inside, go_on = threading.Event(), threading.Event()

    def observer(record: Record, _: Any) -> None:
        if record.body.event == activity("c1", "hold"):
            inside.set()
            assert go_on.wait(PATIENCE_S)

    limits = {"limits": {"ingress_high": 2, "ingress_low": 1}}
    with Engine(limits, Plain(), registry=registry, observer=observer) as engine:
        engine.post(activity("c1", "hold"))
        assert inside.wait(PATIENCE_S)
        engine.post(activity("c1"))
        engine.post(activity("c1"))
        with pytest.raises(Overloaded):
            engine.post(activity("c2"))
        passing = [
            engine.post(events.Settled("c1", "d", "sent")),
            engine.post(events.Rewound("c1", "P", 1)),
            engine.post(events.Accepted("c1", "tg", "e1")),
        ]
        assert registry.get_sample_value("turnkeeper_ingress_depth_max") == 5
        go_on.set()
        assert [admission.wait(PATIENCE_S).outcome for admission in passing] == ["ok"] * 3
        engine.post(activity("c2")).wait(PATIENCE_S)
    assert registry.get_sample_value("turnkeeper_limit_reached_total", {"limit": "ingress_high"}) == 1


def test_closing_is_atomic() -> None:
    """Sixteen threads put; it is closed in the middle: whatever put accepted comes out, whatever it refused does not."""
    sequencer = opened_sequencer(high=1_000_000)
    begun = threading.Semaphore(0)
    accepted: list[str] = []

    def work(name: str) -> None:
        for n in range(2000):
            try:
                sequencer.put(entry(activity(name, str(n))))
            except NotRunning:
                return
            accepted.append(f"{name}:{n}")
            if n == 100:
                begun.release()

    threads = [threading.Thread(target=work, args=(f"c{n}",)) for n in range(16)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        assert begun.acquire(timeout=PATIENCE_S)
    sequencer.set_door(Door.CLOSED)
    left, _ = sequencer.close()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(f"{each.chat}:{each.body.event.cause}" for each in left) == sorted(accepted)  # type: ignore[union-attr]
    assert not sequencer.notice(lambda: None)
    assert not sequencer.put_own(entry(activity("c1")))


def test_a_sleeping_shard_is_woken_and_a_notice_is_no_entry() -> None:
    sequencer = opened_sequencer()
    assert sequencer.take(10, 0) == ([], [])
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(sequencer.take(10, PATIENCE_S)))
    thread.start()
    sequencer.notice(lambda: seen.append("acted"))
    thread.join(PATIENCE_S)
    ((entries, notices),) = seen
    assert not entries
    notices[0]()
    assert seen[-1] == "acted"
    assert sequencer.quiet()


def test_reloaded_watermarks_act_at_once() -> None:
    with Engine({}, Plain()) as engine:
        engine.reload({"limits": {"ingress_high": 1, "ingress_low": 0, "waiters": 7}}).wait(PATIENCE_S)
        assert (engine._sequencer._high, engine._sequencer._low) == (1, 0)
        assert engine._parts.seats.limit == 7
        engine.post(activity("c1")).wait(PATIENCE_S)
