"""What ends an engine against its will: a journal that fails, what a run raises that is no error, observers."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.actors.hosts import PATIENCE_S, QUICK, Async, HandJournal, Plain, ThreadJournal, activity, opened, reply
from turnkeeper import Engine, JournalError, MemoryJournal, NotRunning, commands
from turnkeeper.engine import cell
from turnkeeper.engine.journal import Record, decode_frame


def test_a_failed_commit_is_terminal_and_told_to_everybody() -> None:
    journal, gateway = HandJournal(), Plain()
    engine = Engine({}, gateway, journal=journal)
    starting = threading.Thread(target=engine.start)
    starting.start()
    journal.commit()
    starting.join(PATIENCE_S)
    engine.post(opened("c1"))
    journal.commit()
    asked: list[BaseException] = []
    asking = threading.Thread(target=_call, args=(engine, asked))
    asking.start()
    assert journal.appended.acquire(timeout=PATIENCE_S)
    later = [engine.post(activity("c1")) for _ in range(3)]
    journal.appended.release()
    journal.commit(OSError("no space left on device"))
    asking.join(PATIENCE_S)
    for admission in later:
        with pytest.raises(JournalError, match="no space left on device"):
            admission.wait(PATIENCE_S)
    assert [type(error) for error in asked] == [JournalError]
    engine._shard.join(PATIENCE_S)
    with pytest.raises(NotRunning) as found:
        engine.post(activity("c1"))
    assert isinstance(found.value.__cause__, JournalError)
    engine.stop()
    assert not gateway.performed


def _call(engine: Engine, found: list[BaseException]) -> None:
    try:
        engine.call(reply("c1", "k1"), PATIENCE_S)
    except JournalError as error:
        found.append(error)


def test_a_failure_that_nobody_waited_for_is_raised_by_stop() -> None:
    journal = HandJournal()
    engine = Engine({}, Plain(), journal=journal)
    starting = threading.Thread(target=engine.start)
    starting.start()
    journal.commit()
    starting.join(PATIENCE_S)
    engine.post(activity("c1"))
    journal.commit(OSError("gone"))
    engine._shard.join(PATIENCE_S)
    with pytest.raises(JournalError, match="gone"):
        engine.stop()
    engine.stop()


class PulledOut(BaseException):
    """As a `KeyboardInterrupt` would be, without ending the test run."""


@pytest.mark.parametrize("make", [MemoryJournal, ThreadJournal])
def test_a_base_exception_is_undone_and_reaches_the_host(
    make: type[MemoryJournal], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = make()
    real = cell.STEPS["chat"]

    def step(state: Any, message: Any, at: Any) -> Any:
        if message == activity("c1", "pull"):
            raise PulledOut
        return real(state, message, at)

    monkeypatch.setitem(cell.STEPS, "chat", step)
    engine = Engine({}, Plain(), journal=journal)
    engine.start()
    good = [engine.post(activity("c1")) for _ in range(5)]
    bad = engine.post(activity("c1", "pull"))
    with pytest.raises(PulledOut):
        bad.wait(PATIENCE_S)
    assert [admission.wait(PATIENCE_S).outcome for admission in good] == ["ok"] * 5
    engine._shard.join(PATIENCE_S)
    with pytest.raises(NotRunning) as found:
        engine.post(activity("c1"))
    assert isinstance(found.value.__cause__, PulledOut)
    engine.stop()
    assert [record.seq for frame in journal.frames for record in decode_frame(frame)] == [1, 2, 3, 4, 5, 6]


def test_a_base_exception_that_nobody_waited_for_is_raised_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(*_: object) -> None:
        raise PulledOut

    with pytest.raises(PulledOut), Engine({}, Plain()) as engine:  # noqa: PT012 - it is raised by the end of the block
        monkeypatch.setitem(cell.STEPS, "chat", step)
        engine.post(activity("c1"))
        engine._shard.join(PATIENCE_S)


def test_an_observer_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def observer(record: Record, _: cell.Run) -> None:
        raise LookupError("text of an observer")

    with Engine(QUICK, Plain(), observer=observer) as engine:
        engine.post(opened("c1"))
        assert engine.call(reply("c1", "k1"), PATIENCE_S).ok
    assert "an observer raised LookupError" in caplog.text
    assert "text of an observer" not in caplog.text


@pytest.mark.parametrize("kind", [Plain, Async])
def test_killed_by_the_observer_of_a_hand_over_the_gateway_is_not_called(kind: type[Plain]) -> None:
    """The record is committed and lets the call go; an async call began on a loop of its own that nobody ended."""

    def observer(record: Record, _: cell.Run) -> None:
        if record.body.handed is not None:
            engine.kill()

    gateway, before = kind(), set(threading.enumerate())
    engine = Engine(QUICK, gateway, journal=MemoryJournal(), observer=observer)
    engine.start()
    engine.post(opened("c1"))
    engine.post(reply("c1", "k1"))
    assert engine._shard.join(PATIENCE_S)
    assert set(threading.enumerate()) <= before
    assert not gateway.of(commands.Send)


def test_the_error_of_the_block_is_not_hidden_by_the_engines() -> None:
    journal = HandJournal()
    engine = Engine({}, Plain(), journal=journal)
    committing = threading.Thread(target=journal.commit)
    committing.start()
    with pytest.raises(KeyError), engine:  # noqa: PT012 - what the block raises is the point
        engine.post(activity("c1"))
        journal.commit(OSError("gone"))
        raise KeyError
