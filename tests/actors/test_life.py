"""Starting, stopping, and being killed."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.actors.hosts import (
    PATIENCE_S,
    Async,
    HandJournal,
    Plain,
    activity,
    opened,
    reply,
    sent,
)
from turnkeeper import (
    ConfigError,
    DecodeError,
    Engine,
    MemoryJournal,
    Misuse,
    NotRunning,
    commands,
    events,
)
from turnkeeper.engine import cell
from turnkeeper.engine.journal import Record, decode_frame

# ---------------------------------------------------------------- misuse


def test_before_start_nothing_is_taken() -> None:
    engine = Engine({}, Plain())
    with pytest.raises(NotRunning, match=r"activity of chat c1 was not taken: the engine was not started; call start"):
        engine.post(activity("c1"))
    with pytest.raises(NotRunning, match="idle"):
        engine.idle(0)
    assert engine.inspect("c1") == {}
    engine.stop()
    with pytest.raises(NotRunning, match="has stopped"):
        engine.post(activity("c1"))


def test_a_second_start_is_refused_and_harms_nothing() -> None:
    with Engine({}, Plain()) as engine:
        with pytest.raises(Misuse, match=r"start\(\): this engine runs already; an engine is started once"):
            engine.start()
        engine.post(activity("c1")).wait(PATIENCE_S)
    with pytest.raises(Misuse, match=r"start\(\): this engine has stopped"):
        engine.start()


def test_after_stop_nothing_is_taken_and_a_second_stop_does_nothing() -> None:
    with Engine({}, Plain()) as engine:
        admission = engine.post(opened("c1")).wait(PATIENCE_S)
    for event in (activity("c1"), events.Settled("c1", "d", "sent")):
        with pytest.raises(NotRunning, match="the engine has stopped; make a new Engine on the same journal"):
            engine.post(event)
    with pytest.raises(NotRunning):
        engine.call(reply("c1", "k1"), 1)
    with pytest.raises(NotRunning):
        engine.reload({})
    engine.stop()
    engine.kill()
    assert admission.wait(0).outcome == "ok"
    assert engine.inspect("c1")["turns"]["P"]["status"] == "open"
    assert engine.dead_letters() == []


async def test_stop_and_idle_refuse_the_loop_that_performs() -> None:
    async with Engine({}, Async()) as engine:
        with pytest.raises(Misuse, match=r"stop\(\) waits for calls of the loop that it blocks; leave `async with`"):
            engine.stop()
        with pytest.raises(Misuse, match=r"idle\(\) waits for calls"):
            engine.idle()
        assert (await engine.post(activity("c1"))).outcome == "ok"


def test_a_setting_that_cannot_be_used_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match=r"timers\.stop_grace .*is no setting; did you mean .*stop_grace_ms"):
        Engine({"timers": {"stop_grace": 1}}, Plain())
    with pytest.raises(ConfigError, match=r"journal\.path is absent"):
        Engine({"journal": {"kind": "sqlite"}}, Plain())


def test_a_journal_that_cannot_be_read_stops_the_start() -> None:
    engine = Engine({}, Plain(), journal=MemoryJournal([b"no frame"]))
    with pytest.raises(DecodeError):
        engine.start()
    with pytest.raises(NotRunning):
        engine.post(activity("c1"))


# ---------------------------------------------------------------- stopping


def test_stop_runs_what_was_admitted_and_lets_settlements_in() -> None:
    """A send is out; the engine stops; what was posted before is run, and the send's own settlement still counts."""
    out, settle = threading.Event(), threading.Event()
    journal = MemoryJournal()

    def hold(command: commands.Command) -> Any:
        if isinstance(command, commands.Send):
            out.set()
            assert settle.wait(PATIENCE_S)
            return sent(command)
        return None

    gateway = Plain(hold)
    engine = Engine({}, gateway, journal=journal)
    engine.start()
    engine.post(opened("c1"))
    engine.post(reply("c1", "k1"))
    assert out.wait(PATIENCE_S)
    before = [engine.post(activity("c1")) for _ in range(100)]
    stopping = threading.Thread(target=engine.stop, args=(PATIENCE_S,))
    stopping.start()
    _until_refused(engine)
    assert engine.post(events.Settled("c1", "other", "sent")).wait(PATIENCE_S).outcome == "ok"
    assert engine.post(events.Rewound("c1", "P", 0)).wait(PATIENCE_S).outcome == "ok"
    settle.set()
    stopping.join(PATIENCE_S)
    assert [admission.outcome for admission in before] == ["ok"] * 100
    settled = [
        r.body.event for f in journal.frames for r in decode_frame(f) if isinstance(r.body.event, events.Settled)
    ]
    assert [event.delivery for event in settled] == ["other", "reply:c1:k1"]
    assert engine.inspect("c1")["turns"]["P"]["replies"] == 1


def _until_refused(engine: Engine) -> None:
    while True:
        try:
            engine.post(activity("c2"))
        except NotRunning as error:
            assert "only settled and rewound are taken" in str(error)  # noqa: PT017 - the loop ends by it
            return


def test_stop_hands_over_nothing_new_and_the_next_start_does() -> None:
    out, settle = threading.Event(), threading.Event()

    def hold(command: commands.Command) -> Any:
        if isinstance(command, commands.Send):
            out.set()
            assert settle.wait(PATIENCE_S)
            return sent(command)
        return None

    journal, first = MemoryJournal(), Plain(hold)
    engine = Engine({"delivery": {"concurrency": 1}}, first, journal=journal)
    engine.start()
    for chat in ("c1", "c2"):
        engine.post(opened(chat))
        engine.post(reply(chat, "k1"))
    assert out.wait(PATIENCE_S)
    stopping = threading.Thread(target=engine.stop, args=(PATIENCE_S,))
    stopping.start()
    _until_refused(engine)
    settle.set()
    stopping.join(PATIENCE_S)
    assert len(first.of(commands.Send)) == 1
    second = Plain()
    with Engine({}, second, journal=MemoryJournal(journal.frames)) as engine:
        engine.idle(PATIENCE_S)
    assert {command.chat for command in first.of(commands.Send) + second.of(commands.Send)} == {"c1", "c2"}
    assert len(second.of(commands.Send)) == 1


@pytest.mark.parametrize("kind", [Plain, Async])
def test_a_hanging_call_does_not_hold_up_stop_beyond_its_time(
    kind: type[Plain], caplog: pytest.LogCaptureFixture
) -> None:
    never, out = threading.Event(), threading.Event()

    async def for_ever() -> None:
        out.set()
        await asyncio.get_running_loop().create_future()

    def hang(command: commands.Command) -> Any:
        if not isinstance(command, commands.Send):
            return None
        if kind is Async:
            return for_ever()
        out.set()
        never.wait(PATIENCE_S)
        return None

    engine = Engine({}, kind(hang))
    engine.start()
    engine.post(opened("c1"))
    engine.post(reply("c1", "k1"))
    assert out.wait(PATIENCE_S)
    engine.stop(0.05)
    never.set()
    (told,) = [record for record in caplog.records if "stopped without waiting" in record.message]
    assert told.__dict__["commands"] == ["3.0"]


async def test_the_loop_goes_on_while_a_plain_call_hangs() -> None:
    never, out = threading.Event(), threading.Event()

    def hang(command: commands.Command) -> Any:
        if isinstance(command, commands.Send):
            out.set()
            never.wait(PATIENCE_S)

    engine = Engine({}, Plain(hang))
    async with engine:
        await engine.post(opened("c1"))
        await engine.post(reply("c1", "k1"))
        await asyncio.to_thread(out.wait, PATIENCE_S)
        for _ in range(200):
            await asyncio.wait_for(engine.post(activity("c1")), PATIENCE_S)
        never.set()


async def test_leaving_waits_for_what_the_loop_performs() -> None:
    inside, go_on = asyncio.Event(), asyncio.Event()

    async def hold(command: commands.Send) -> events.Settled:
        inside.set()
        await go_on.wait()
        return sent(command)

    engine = Engine({}, Async(lambda command: hold(command) if isinstance(command, commands.Send) else None))
    async with engine:
        await engine.post(opened("c1"))
        asking = asyncio.ensure_future(engine.ask(reply("c1", "k1")))
        await inside.wait()
        leaving = asyncio.ensure_future(engine.__aexit__(None, None, None))
        await asyncio.to_thread(_until_refused, engine)
        go_on.set()
        assert (await asking).ok
        await leaving
    assert engine.inspect("c1")["turns"]["P"]["replies"] == 1


async def test_cancelled_while_it_starts_it_is_stopped() -> None:
    journal = HandJournal()
    engine = Engine({}, Async(), journal=journal)
    entering = asyncio.ensure_future(engine.__aenter__())
    await asyncio.to_thread(journal.appended.acquire)
    journal.appended.release()
    entering.cancel()
    await asyncio.to_thread(journal.commit)
    with pytest.raises(asyncio.CancelledError):
        await entering
    with pytest.raises(NotRunning):
        engine.post(activity("c1"))


# ---------------------------------------------------------------- being killed


def test_killed_it_releases_and_commits_nothing_more() -> None:
    """Killed by an observer between two records of one frame: the second is committed and never released."""
    journal, gateway = MemoryJournal(), Plain()
    seen: list[int] = []

    def kill_at(record: Record, _: cell.Run) -> None:
        seen.append(record.seq)
        if record.seq == 3:
            engine.kill()

    engine = Engine({}, gateway, journal=journal, observer=kill_at)
    engine.start()
    engine.post(opened("c1")).wait(PATIENCE_S)
    admission = engine.post(reply("c1", "k1"))
    engine._shard.join(PATIENCE_S)
    assert not gateway.performed
    assert seen == [1, 2, 3]
    frames = len(journal.frames)
    with pytest.raises(NotRunning):
        engine.post(activity("c1"))
    assert len(journal.frames) == frames
    assert admission.done


def test_killed_from_outside_it_answers_who_waits() -> None:
    journal = HandJournal()
    engine = Engine({}, Plain(), journal=journal)
    starting = threading.Thread(target=engine.start)
    starting.start()
    journal.commit()
    starting.join(PATIENCE_S)
    admission = engine.post(activity("c1"))
    assert journal.appended.acquire(timeout=PATIENCE_S)
    engine.kill()
    with pytest.raises(NotRunning):
        admission.wait(PATIENCE_S)
    assert len(journal.frames) == 1
