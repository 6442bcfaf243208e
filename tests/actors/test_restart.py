"""After a crash: what is replayed, released again, asked, and what the user sees: one answer, never two, never none."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.actors.hosts import PATIENCE_S, QUICK, HandJournal, Plain, activity, opened, reply, sent
from turnkeeper import Engine, MemoryJournal, NotRunning, commands, events, signals
from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine import cell, codec
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.journal import Record, decode_frame
from turnkeeper.engine.lab.clock import VirtualClock
from turnkeeper.engine.recovery import replay

if TYPE_CHECKING:
    from pathlib import Path

    from turnkeeper.engine.ports import Reconciliation

INCIDENT: list[events.Event] = [
    opened("c1", "P", 6406),
    events.InputSeen("c1", "P"),
    events.InputFolded("c1", "F", "autosteer", message=6407, channel="tg/100"),  # type: ignore[arg-type]
    events.Reply("c1", "k1", turn_id="F", consumed_turn_ids=("P", "F"), text="Both are done."),
    events.Stopped("c1", "In short: done."),
]


class Platform:
    """What users see, kept over restarts; it can be asked what arrived, and knows messages it got twice."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.arrived: set[str] = set()
        self.ended: list[str] = []

    def perform(self, command: commands.Command, /) -> Any:
        if isinstance(command, commands.Send):
            self.seen.append(command.text)
            self.arrived.add(command.delivery)
            return sent(command)
        if isinstance(command, commands.TurnSettled):
            self.ended.append(f"{command.id} {command.outcome}")
        return None

    def reconcile(self, delivery: str, /) -> Reconciliation:
        return "sent" if delivery in self.arrived else "not_sent"


def live(journal: MemoryJournal, platform: Platform, clock: VirtualClock, die_at: int = 0) -> int:
    """Post what is not admitted yet, as a host does after a restart; die at a record, or end. Returns the last record."""
    last = 0

    def observer(record: Record, _: cell.Run) -> None:
        nonlocal last
        last = record.seq
        if record.seq == die_at:
            engine.kill()

    engine = Engine(QUICK, platform, journal=journal, clock=clock, observer=observer)
    try:
        engine.start()
        known = [r.body.event for f in journal.frames for r in decode_frame(f) if r.body.event is not None]
        for event in INCIDENT:
            if event not in known:
                engine.post(event).wait(PATIENCE_S)
        engine.idle(PATIENCE_S)
        clock.advance_to(clock.now_ms() + 60_000)
        engine.idle(PATIENCE_S)
        if engine.inspect("c1")["turns"]["P"]["status"] != "settled":
            clock.advance_to(clock.now_ms() + 60_000)
            engine.idle(PATIENCE_S)
    except NotRunning:
        pass  # it died
    engine.kill()
    return last


def test_a_crash_at_any_record_leaves_one_answer() -> None:
    """The record is committed; its commands, acks and hand-over were not released."""
    clean = Platform()
    records = live(MemoryJournal(), clean, VirtualClock())
    assert records > len(INCIDENT) + 3
    for at in range(1, records + 1):
        journal, platform, clock = MemoryJournal(), Platform(), VirtualClock()
        live(journal, platform, clock, die_at=at)
        live(MemoryJournal(journal.frames), platform, clock)
        assert (at, platform.seen) == (at, ["Both are done."])
        assert (at, {end.partition(" ")[2] for end in platform.ended}) == (at, {"final-reply"})
        assert (at, len({end.partition(" ")[0] for end in platform.ended})) == (at, 1)


class Cut(MemoryJournal):
    """Loses everything from a frame on: the process died before that commit."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after
        self.reached = threading.Event()

    def append(self, frame: bytes, committed: Any) -> None:
        if len(self.frames) >= self.after:
            self.reached.set()
            return
        super().append(frame, committed)


def test_a_crash_before_any_commit_leaves_one_answer() -> None:
    frames = MemoryJournal()
    live(frames, Platform(), VirtualClock())
    cut = 0
    for after in range(1, len(frames.frames)):
        journal, platform, clock = Cut(after), Platform(), VirtualClock()
        engine = Engine(QUICK, platform, journal=journal, clock=clock)
        engine.start()
        for event in INCIDENT:
            if journal.reached.is_set():
                break
            admission = engine.post(event)
            while not (journal.reached.is_set() or admission.done):
                engine._shard.look(lambda: None)
        if not journal.reached.is_set():
            clock.advance_to(60_000)
        # How many records share a frame depends on the threads: a run may end in fewer, and is cut nowhere.
        cut += journal.reached.wait(2)
        engine.kill()
        live(MemoryJournal(journal.frames), platform, clock)
        assert (after, platform.seen) == (after, ["Both are done."])
        assert (after, {end.partition(" ")[2] for end in platform.ended}) == (after, {"final-reply"})
    assert cut > len(INCIDENT)


def test_what_was_not_confirmed_is_released_again_under_its_id() -> None:
    """A `record` whose perform never returned, and a send that was not handed over for want of a slot."""
    journal, stuck = MemoryJournal(), threading.Event()
    inside = threading.Event()

    def stick(command: commands.Command) -> Any:
        if isinstance(command, commands.Record):
            inside.set()
            stuck.wait(PATIENCE_S)
        return None

    first = Plain(stick)
    engine = Engine({"delivery": {"concurrency": 1}}, first, journal=journal)
    engine.start()
    engine.post(opened("c1"))
    engine.post(events.Failed("c1", "P", "overloaded"))
    assert inside.wait(PATIENCE_S)
    engine.post(opened("c2"))
    engine.post(reply("c2", "k1")).wait(PATIENCE_S)
    pending = engine.look(lambda cell: dict(cell.pending))
    engine.kill()
    stuck.set()
    second = Plain()
    with Engine({}, second, journal=MemoryJournal(journal.frames)) as engine:
        engine.idle(PATIENCE_S)
        assert not engine.look(lambda cell: dict(cell.pending))
    again = [command for command in second.performed if not isinstance(command, commands.Ack)]
    assert {command.id: command for command in again} == pending
    assert [type(command) for command in pending.values()] == [commands.Record, commands.TurnSettled, commands.Send]
    (ack,) = second.of(commands.Ack)
    assert (ack.call_id, ack.ok) == ("k1", True)


def test_a_send_in_doubt_is_asked_for_once_and_its_channel_waits() -> None:
    journal, platform = MemoryJournal(), Platform()
    asked: list[str] = []

    class Asked(Platform):
        def reconcile(self, delivery: str, /) -> Reconciliation:
            asked.append(delivery)
            return "sent"

    lost = Plain(lambda _: None)
    engine = Engine({}, lost, journal=journal)
    engine.start()
    engine.post(opened("c1"))
    engine.post(reply("c1", "k1"))
    engine.post(reply("c1", "k2"))
    engine.idle(PATIENCE_S)
    engine.kill()
    platform = Asked()
    with Engine({}, platform, journal=MemoryJournal(journal.frames)) as engine:
        engine.idle(PATIENCE_S)
        # Died again before the answer was in: asked anew, once.
        assert asked == ["reply:c1:k1"]
    assert platform.seen == ["answer of k2"]


def test_an_answer_that_does_not_come_holds_up_its_own_channel_only() -> None:
    """Two sends in doubt, in two channels of one chat; the platform says nothing of the first, and is asked again."""
    journal, clock, silent = MemoryJournal(), VirtualClock(), threading.Event()
    asked: list[str] = []

    class Asked(Platform):
        def reconcile(self, delivery: str, /) -> Reconciliation:
            asked.append(delivery)
            if delivery == "reply:c1:k1":
                silent.wait(PATIENCE_S)
            elif asked.count(delivery) == 1:
                raise ConnectionError
            return "not_sent"

    engine = Engine({}, Plain(lambda _: None), journal=journal, clock=clock)
    engine.start()
    engine.post(opened("c1", "P"))
    engine.post(opened("c1", "Q", 5, "dc/7"))
    engine.post(reply("c1", "k1"))
    engine.post(reply("c1", "k2", "Q"))
    engine.idle(PATIENCE_S)
    engine.kill()
    platform = Asked()
    engine = Engine({}, platform, journal=MemoryJournal(journal.frames), clock=clock)
    engine.start()
    while asked.count("reply:c1:k2") < 2:
        if (due_ms := engine.next_due_ms()) is not None and due_ms <= 1000:
            clock.advance_to(due_ms)
    while not platform.seen:
        engine.look(lambda _: None)
    silent.set()
    engine.idle(PATIENCE_S)
    assert platform.seen == ["answer of k2", "answer of k1"]
    engine.stop()


def test_a_restart_says_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    journal, clock = MemoryJournal(), VirtualClock()
    found: list[signals.Signal] = []

    def step(*_: object) -> None:
        raise ZeroDivisionError

    with Engine({}, Plain(), journal=journal, clock=clock) as engine:
        engine.post(opened("c1"))
        engine.post(opened("c2")).wait(PATIENCE_S)
        with monkeypatch.context() as patched:
            patched.setitem(cell.STEPS, "chat", step)
            engine.post(activity("c1")).wait(PATIENCE_S)
    clock.advance_to(5000)

    def observer(record: Record, run: cell.Run) -> None:
        found.extend(signal for signal in run.signals if record.body.recovered is not None)

    with Engine({}, Plain(), journal=MemoryJournal(journal.frames), clock=clock, observer=observer) as engine:
        letters = engine.dead_letters()
    assert found == [signals.Recovered(events=3, chats=2, open_turns=2, unknown=0, down_ms=5000)]
    assert [(letter.seq, letter.event, letter.error) for letter in letters] == [(4, activity("c1"), "")]


def test_a_first_start_recovers_nothing() -> None:
    journal = MemoryJournal()
    with Engine({}, Plain(), journal=journal):
        pass
    (record,) = [record for frame in journal.frames for record in decode_frame(frame)]
    assert record.body.configured is not None


def test_posts_that_come_while_it_starts_wait_for_it() -> None:
    """Early posts: after recovered, before deadlines."""
    journal, clock = MemoryJournal(), VirtualClock()
    with Engine({}, Plain(), journal=journal, clock=clock) as engine:
        engine.post(opened("c1"))
        engine.post(events.Stopped("c1", "text", turn_id="P")).wait(PATIENCE_S)
    clock.advance_to(60_000)
    slow = HandJournal()
    slow.frames = list(journal.frames)
    engine = Engine({}, Plain(), journal=slow, clock=clock)
    starting = threading.Thread(target=engine.start)
    starting.start()
    assert slow.appended.acquire(timeout=PATIENCE_S)
    early = engine.post(activity("c1", "early"))
    slow.appended.release()
    slow.commit()
    starting.join(PATIENCE_S)
    slow.commit()
    assert early.wait(PATIENCE_S).outcome == "ok"
    engine.kill()
    bodies = [record.body for frame in slow.frames for record in decode_frame(frame)]
    assert bodies[3].configured is not None
    assert bodies[4].recovered is not None
    assert bodies[5].event == activity("c1", "early")


def test_unsent_answers_of_a_restart_are_paced() -> None:
    """`recovery.resend_per_s`: what nobody saw yet leaves in portions, the rest at once."""
    journal, clock, inside, stuck = MemoryJournal(), VirtualClock(), threading.Event(), threading.Event()

    def stick(_: commands.Command) -> None:
        inside.set()
        stuck.wait(PATIENCE_S)

    engine = Engine({"delivery": {"concurrency": 1}}, Plain(stick), journal=journal, clock=clock)
    engine.start()
    engine.post(opened("busy"))
    engine.post(reply("busy", "k1"))
    assert inside.wait(PATIENCE_S)
    for n in range(7):
        engine.post(opened(f"c{n}"))
        engine.post(reply(f"c{n}", "k1"))
    engine.post(activity("c6")).wait(PATIENCE_S)
    engine.kill()
    stuck.set()
    assert sum(isinstance(command, commands.Send) for command in _pending(journal).values()) == 7
    second = Plain()
    engine = Engine({"recovery": {"resend_per_s": 3}}, second, journal=MemoryJournal(journal.frames), clock=clock)
    engine.start()
    left: list[int] = []
    for _ in range(4):
        engine.idle(PATIENCE_S)
        left.append(len(second.of(commands.Send)))
        clock.advance_to(clock.now_ms() + 1000)
    engine.kill()
    assert left == [3, 6, 7, 7]


def _pending(journal: MemoryJournal) -> dict[str, commands.Command]:
    cell = Cell()
    replay(cell, journal.frames)
    return cell.pending


def test_the_disk_journal_through_the_engine(tmp_path: Path) -> None:
    """Killed with its bytes on the disk; the next process goes on; a snapshot at the end bounds the replay."""
    path = tmp_path / "journal"
    config = {"journal": {"path": str(path), "linger_ms": 0}}
    gateway = Plain()
    engine = Engine(config, gateway)
    engine.start()
    engine.post(opened("c1"))
    assert engine.call(reply("c1", "k1"), PATIENCE_S).ok
    engine.kill()
    engine._parts.journal.close()

    with Engine(config, Plain()) as engine:
        assert engine.inspect("c1")["turns"]["P"]["replies"] == 1
        engine.post(activity("c1")).wait(PATIENCE_S)
        states = engine.look(_states)
    journal = SqliteJournal(path)
    snapshot = journal.snapshot()
    assert snapshot is not None
    assert list(journal.load()) == []
    journal.close()
    second = Plain()
    with Engine(config, second) as engine:
        assert engine.look(_states).keys() == states.keys()
        assert engine.call(reply("c1", "k1"), PATIENCE_S).replay_of == "k1"
        last = engine.post(activity("c1")).wait(PATIENCE_S).seq
        assert last is not None
        assert last > snapshot.seq
    assert not second.of(commands.Send)


def test_a_snapshot_now_and_then(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    config = {"journal": {"path": str(path), "linger_ms": 0, "snapshot_every_events": 50}}
    engine = Engine(config, Plain())
    engine.start()
    for n in range(120):
        engine.post(activity(f"c{n % 3}")).wait(PATIENCE_S)
    live_states = engine.look(_states)
    engine.kill()
    engine._parts.journal.close()
    journal = SqliteJournal(path)
    snapshot = journal.snapshot()
    assert snapshot is not None
    assert snapshot.seq >= 50
    assert sum(len(decode_frame(frame)) for frame in journal.load()) < 120
    journal.close()
    engine = Engine(config, Plain())
    engine.start()
    assert engine.look(_states) == live_states
    engine.kill()
    engine._parts.journal.close()


def _states(cell: Cell) -> dict[str, bytes]:
    return {f"{a.chat} {a}": codec.encode(owner.state) for a, owner in cell.owners.items()}


def test_the_cell_is_the_same_in_every_life() -> None:
    """Live equals replay through a restart: states, pending commands, deadlines."""
    journal, clock = MemoryJournal(), VirtualClock()
    engine = Engine(QUICK, Plain(), journal=journal, clock=clock)
    engine.start()
    for event in INCIDENT:
        engine.post(event).wait(PATIENCE_S)
    engine.idle(PATIENCE_S)
    due, states, pending = engine.next_due_ms(), engine.look(_states), engine.look(lambda cell: list(cell.pending))
    engine.kill()
    again = Cell()
    assert not replay(again, journal.frames).differs
    assert (again.next_due_ms(), _states(again), list(again.pending)) == (due, states, pending)
