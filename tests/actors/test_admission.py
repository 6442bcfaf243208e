"""Posting: an event is admitted when it is committed, in the order of the journal."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.actors.hosts import PATIENCE_S, Async, HandJournal, Plain, ThreadJournal, activity, opened, reply
from turnkeeper import DecodeError, Engine, MemoryJournal, commands, events
from turnkeeper.engine.ids import ChannelRef
from turnkeeper.engine.journal import decode_frame


def records(journal: MemoryJournal) -> list[Any]:
    return [record for frame in journal.frames for record in decode_frame(frame)]


def test_an_admission_knows_its_place_in_the_journal() -> None:
    journal = MemoryJournal()
    with Engine({}, Plain(), journal=journal) as engine:
        admission = engine.post(activity("c1")).wait(PATIENCE_S)
    assert admission.outcome == "ok"
    record = records(journal)[-1]
    assert (record.seq, record.at_ms) == (admission.seq, admission.at_ms)
    assert record.body.event == activity("c1")


def test_nothing_is_known_before_the_commit() -> None:
    journal = HandJournal()
    engine = Engine({}, Plain(), journal=journal)
    starting = threading.Thread(target=engine.start)
    starting.start()
    journal.commit()
    starting.join(PATIENCE_S)
    admission = engine.post(activity("c1"))
    with pytest.raises(TimeoutError, match="goes on"):
        admission.wait(0)
    assert admission.seq is None
    journal.commit()
    assert admission.wait(PATIENCE_S).seq == 2
    engine.stop()


def test_nothing_is_performed_before_its_commit() -> None:
    """The reply's own frame, then the hand-over's: only then is the gateway called."""
    journal, gateway = HandJournal(), Plain()
    engine = Engine({}, gateway, journal=journal)
    threading.Thread(target=engine.start).start()
    journal.commit()
    engine.post(opened("c1"))
    journal.commit()
    engine.post(reply("c1", "k1"))
    assert journal.appended.acquire(timeout=PATIENCE_S)
    assert not gateway.performed
    journal.appended.release()
    journal.commit()
    assert journal.appended.acquire(timeout=PATIENCE_S)
    (handed,) = decode_frame(journal.waiting[0][0])
    assert handed.body.handed is not None
    assert not gateway.performed
    journal.appended.release()
    journal.commit()
    journal.commit()
    assert [type(command) for command in gateway.performed] == [commands.Send]
    engine.stop()


def test_frames_that_commit_elsewhere_are_released_in_order() -> None:
    """Eight threads, a journal with a thread of its own: observers see every record once, in order."""
    seen: list[int] = []
    journal = ThreadJournal()
    with Engine({}, Plain(), journal=journal, observer=lambda record, _: seen.append(record.seq)) as engine:

        def work(name: str) -> None:
            for admission in [engine.post(activity(name)) for _ in range(200)]:
                admission.wait(PATIENCE_S)

        threads = [threading.Thread(target=work, args=(f"c{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == list(range(1, 1602))
    assert [record.seq for record in records(journal)] == seen


async def test_awaiting_returns_the_admission_and_blocks_no_other_task() -> None:
    async with Engine({}, Async(), journal=ThreadJournal()) as engine:
        done = await asyncio.gather(*(engine.post(activity(f"c{n}")) for n in range(50)))
    assert sorted(admission.seq or 0 for admission in done) == list(range(2, 52))


async def test_cancelling_a_waiter_cancels_no_event() -> None:
    journal = HandJournal()
    engine = Engine({}, Async(), journal=journal)
    starting = asyncio.ensure_future(engine.__aenter__())
    await asyncio.to_thread(journal.commit)
    await starting
    admission = engine.post(activity("c1"))
    waiting = asyncio.ensure_future(_await(admission))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.to_thread(journal.commit)
    assert (await admission).outcome == "ok"
    await engine.__aexit__(None, None, None)


async def _await(awaitable: Any) -> Any:
    return await awaitable


@pytest.mark.parametrize(
    ("event", "told"),
    [
        pytest.param(
            "turn_opened", r"builtins\.str is no event; post one of turnkeeper\.events: accepted, ", id="text"
        ),
        pytest.param(commands.Ack(chat="c1", call_id="k", ok=True), r"commands\.Ack is no event", id="command"),
        pytest.param(events.Activity(5, "hook"), r"activity: Expected `str`, got `int` - at `\$\.chat`", id="chat"),  # type: ignore[arg-type]
        pytest.param(
            events.TurnOpened("c1", "P", message=2**70), r"turn_opened: a field holds what cannot be written", id="huge"
        ),
        pytest.param(
            events.Settled("c1", "d", "sent", messages=(object(),)),  # type: ignore[arg-type]
            r"settled: a field holds what cannot be written",
            id="object",
        ),
    ],
)
def test_what_is_no_event_is_refused_to_whoever_posted_it(event: Any, told: str) -> None:
    with Engine({}, Plain()) as engine:
        with pytest.raises(DecodeError, match=told):
            engine.post(event)
        engine.post(activity("c1")).wait(PATIENCE_S)


def test_an_event_is_run_as_its_record_reads() -> None:
    """A list where a tuple belongs, a channel in its written form: what runs live is what a replay reads."""
    journal = MemoryJournal()
    ran: list[Any] = []
    with Engine({}, Plain(), journal=journal, observer=lambda record, _: ran.append(record.body.event)) as engine:
        engine.post(events.Settled("c1", "d", "sent", messages=[1, 2], channel="tg/100")).wait(PATIENCE_S)  # type: ignore[arg-type]
    assert ran[-1] == records(journal)[-1].body.event
    assert (ran[-1].messages, ran[-1].channel) == ((1, 2), ChannelRef("tg", "100"))
