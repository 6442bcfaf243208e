"""Snapshots: written in slices between commits, all or nothing, only what was touched; and what they leave behind."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.actors.hosts import PATIENCE_S, QUICK, Plain, activity, opened, reply
from tests.journal.test_contract import Waiting, frame, seqs
from turnkeeper import Engine, commands, events
from turnkeeper.actors.history import History
from turnkeeper.actors.snapshots import Snapshots
from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine import codec
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.config import Policy
from turnkeeper.engine.journal import RULES, Body, MemoryJournal, Record, Snapshot, encode_frame
from turnkeeper.engine.lab.clock import VirtualClock
from turnkeeper.engine.recovery import replay
from turnkeeper.engine.snapshot import ChatPicture, load_pictures, pictures_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DAY_MS = 86_400_000


def snapshot(seq: int, pictures: Iterable[tuple[str, bytes]], *, at_ms: int = 0, whole: bool = True) -> Snapshot:
    return Snapshot(seq, at_ms or seq * 10, RULES, Policy(), pictures, whole=whole)


def pictures(journal: SqliteJournal) -> dict[str, bytes]:
    found = journal.snapshot()
    return {} if found is None else dict(found.pictures)


def test_commits_go_on_while_a_snapshot_is_written(tmp_path: Path) -> None:
    """A frame that comes in the middle of a long snapshot is committed before its end."""
    journal, waiting, between = SqliteJournal(tmp_path / "j", linger_ms=0), Waiting(), []

    def long() -> Iterator[tuple[str, bytes]]:
        for n in range(2000):
            if n == 500:
                journal.append(frame(2), waiting.of(2))
            if n == 1500:
                between.extend(waiting.told)
            yield f"c{n}", b"picture"

    journal.append(frame(1), waiting.of(1))
    journal.keep(snapshot(1, long()), waiting.of(0))
    assert waiting.until(3) == [(1, None), (2, None), (0, None)]
    assert (2, None) in between
    journal.close()
    again = SqliteJournal(tmp_path / "j")
    assert len(pictures(again)) == 2000
    assert seqs(again.load()) == [2]
    again.close()


def test_a_snapshot_that_was_cut_short_does_not_count(tmp_path: Path) -> None:
    """The one before it stands, and no picture of it is ever taken for a newer one."""
    journal, waiting = SqliteJournal(tmp_path / "j"), Waiting()
    for seq in (1, 2):
        journal.append(frame(seq), waiting.of(seq))
    journal.keep(snapshot(1, [("a", b"old a"), ("b", b"old b")]), waiting.of(10))

    def broken() -> Iterator[tuple[str, bytes]]:
        for n in range(200):
            yield f"n{n}", b"new"
        yield "a", b"new a"
        for n in range(200):
            yield f"m{n}", b"new"
        raise ZeroDivisionError

    journal.keep(snapshot(2, broken()), waiting.of(11))
    journal.keep(snapshot(2, [("b", b"newer b")], whole=False), waiting.of(12))
    told = dict(waiting.until(5))
    assert told[10] is None
    assert isinstance(told[11], ZeroDivisionError)
    assert isinstance(told[12], ZeroDivisionError), "what builds on a snapshot that failed cannot stand"
    assert pictures(journal) == {"a": b"old a", "b": b"old b"}
    journal.close()
    again = SqliteJournal(tmp_path / "j")
    assert again.file.query("SELECT COUNT(*) FROM pictures WHERE seq > 1").fetchone() == (0,)
    again.append(frame(3), waiting.of(3))
    again.keep(snapshot(3, [("b", b"newest b")], whole=False), waiting.of(13))
    waiting.until(7)
    assert pictures(again) == {"a": b"old a", "b": b"newest b"}
    again.close()


def test_chats_that_are_gone_leave_the_snapshot(tmp_path: Path) -> None:
    for path in (None, tmp_path / "j"):
        journal: Any = MemoryJournal() if path is None else SqliteJournal(path)
        waiting = Waiting()
        journal.keep(snapshot(1, [("a", b"1"), ("b", b"1"), ("c", b"1")]), waiting.of(1))
        journal.keep(snapshot(2, [("b", b""), ("c", b"2")], whole=False), waiting.of(2))
        waiting.until(2)
        assert dict(journal.snapshot().pictures) == {"a": b"1", "c": b"2"}
        journal.keep(snapshot(3, [("c", b"3")]), waiting.of(3))
        waiting.until(3)
        assert dict(journal.snapshot().pictures) == {"c": b"3"}
        journal.close()


def test_history_is_kept_for_its_days_and_then_deleted(tmp_path: Path) -> None:
    journal, waiting = SqliteJournal(tmp_path / "j", retain_days=2), Waiting()
    for seq in range(1, 11):
        one = Record(seq, seq * DAY_MS, RULES, Body(event=activity("c1")), "ok", 0)
        journal.append(encode_frame([one]), waiting.of(seq))
    journal.keep(snapshot(9, [("c1", b"picture")], at_ms=9 * DAY_MS), waiting.of(0))
    waiting.until(11)
    assert seqs(journal.load()) == [10]
    journal.close()
    with History(tmp_path / "j") as history:
        assert [record.seq for record in history.records()] == [7, 8, 9, 10]
        info = history.info()
    assert (info.whole, info.snapshot_seq, info.frames_to_replay, info.chats) == (False, 9, 1, 1)


def test_one_snapshot_at_a_time() -> None:
    """A disk that is slower than the events costs replay, not memory."""
    kept: list[Any] = []

    class Slow(MemoryJournal):
        def keep(self, snapshot: Snapshot, told: Any) -> None:
            kept.append((snapshot, told))

    class Journal:
        """Any journal but one in memory is pictured."""

        def __init__(self) -> None:
            self.slow = Slow()
            self.snapshot, self.load, self.append = self.slow.snapshot, self.slow.load, self.slow.append
            self.keep, self.close = self.slow.keep, self.slow.close

    with Engine({"journal": {"snapshot_every_events": 10}}, Plain(), journal=Journal()) as engine:
        for _ in range(100):
            engine.post(activity("c1")).wait(PATIENCE_S)
        assert len(kept) == 1
        kept[0][1](None)
        for n in range(20):
            engine.post(activity(f"d{n % 2}")).wait(PATIENCE_S)
        assert len(kept) == 2
    whole, part = kept[0][0], kept[1][0]
    assert (whole.whole, part.whole) == (True, False)
    assert dict(whole.pictures).keys() == {"c1"}
    assert {"c1", "d0"} >= dict(part.pictures).keys()
    assert Snapshots(MemoryJournal(), 1).pause_ns == 0


def test_settled_turns_leave_and_receipts_stay(tmp_path: Path) -> None:
    """What is over is not carried along; that it was sent is known for its horizon, across restarts."""
    config = {**QUICK, "journal": {"path": str(tmp_path / "j"), "snapshot_every_events": 5}}
    with Engine(config, Plain()) as engine:
        for n in range(10):
            engine.post(opened("c1", f"t{n}", n + 1))
            assert engine.call(reply("c1", f"k{n}", f"t{n}"), PATIENCE_S).ok
            engine.post(events.Stopped("c1", "", turn_id=f"t{n}")).wait(PATIENCE_S)
        engine.idle(PATIENCE_S)
    with History(tmp_path / "j") as history:
        found = history.snapshot()
        assert found is not None
        (picture,) = [codec.decode(data, ChatPicture) for _, data in found.pictures]
        assert history.verify().ok
    assert picture.turns == {}
    assert picture.pending == ()
    (channel,) = picture.channels.values()
    assert len(channel.receipts) == 10
    second = Plain()
    with Engine(config, second) as engine:
        for n in range(10):
            assert engine.call(reply("c1", f"k{n}", f"t{n}"), PATIENCE_S).replay_of == f"k{n}"
    assert not second.of(commands.Send)


def test_an_engine_that_never_ran_leaves_its_journal(tmp_path: Path) -> None:
    config = {"journal": {"path": str(tmp_path / "j")}}
    Engine(config, Plain()).stop()
    with Engine(config, Plain()) as engine:
        engine.post(activity("c1")).wait(PATIENCE_S)


def test_snapshot_and_frames_are_the_same_as_frames_alone(tmp_path: Path) -> None:
    """Engines that live a while each, on pictures of what was touched: as one replay from the first record."""
    config = {**QUICK, "journal": {"path": str(tmp_path / "j"), "snapshot_every_events": 7, "linger_ms": 0}}
    for life in range(4):
        engine = Engine(config, Plain())
        engine.start()
        for n in range(12):
            chat = f"c{(n * 5 + life) % 9}"
            engine.post(opened(chat, f"t{life}-{n}", 100 * life + n))
            engine.call(reply(chat, f"k{life}-{n}", f"t{life}-{n}"), PATIENCE_S)
        engine.idle(PATIENCE_S)
        live = engine.look(_states)
        if life % 2:
            engine.stop()
        else:
            engine.kill()
            engine._parts.journal.close()
        with History(tmp_path / "j") as history:
            found = history.verify()
            assert found.ok, found
            cell = Cell()
            replay(cell, history.frames())
        assert _states(cell) == live


def _states(cell: Cell) -> dict[str, bytes]:
    return {f"{a.chat} {a}": codec.encode(owner.state) for a, owner in cell.owners.items()}


def test_a_restart_pictures_what_is_awake_and_what_was_replayed(tmp_path: Path) -> None:
    """Chats that sleep were pictured once; a million of them do not hold up the next stop."""
    clock = VirtualClock()
    config = {**QUICK, "journal": {"path": str(tmp_path / "j"), "linger_ms": 0}}
    with Engine(config, Plain(), clock=clock) as engine:
        for n in range(40):
            engine.post(opened(f"c{n}", "t", 1))
            engine.post(events.Stopped(f"c{n}", "", turn_id="t")).wait(PATIENCE_S)
        engine.idle(PATIENCE_S)
        clock.advance_to(clock.now_ms() + 120_000)
        engine.idle(PATIENCE_S)
    with Engine(config, Plain(), clock=clock) as engine:
        assert len(engine.broadcast(activity(""))) == 40
        clock.advance_to(clock.now_ms() + 120_000)
        engine.idle(PATIENCE_S)
    with Engine(config, Plain(), clock=clock) as engine:
        engine.post(activity("c7", "again")).wait(PATIENCE_S)
    with History(tmp_path / "j") as history:
        found = history._file.query("SELECT COUNT(*) FROM pictures WHERE seq = ?", history.base_seq).fetchone()
        assert history.info().chats == 40
        assert history.verify().ok
    assert found[0] < 10


def test_the_settings_reach_the_file(tmp_path: Path) -> None:
    made = {"path": str(tmp_path / "j"), "sync": "normal", "linger_ms": 7, "retain_days": 3}
    journal: Any = Engine({"journal": made}, Plain())._parts.journal
    assert isinstance(journal, SqliteJournal)
    assert journal._linger_s == 0.007
    assert journal._arrivals._retain_days == 3
    assert journal.file.query("PRAGMA synchronous").fetchone() == (1,)
    journal.close()
    full: Any = Engine({"journal": {"path": str(tmp_path / "j")}}, Plain())._parts.journal
    assert full.file.query("PRAGMA synchronous").fetchone() == (2,)
    full.close()
    assert not isinstance(Engine({}, Plain())._parts.journal, SqliteJournal)


def test_a_snapshot_that_finds_no_room_leaves_the_frames_their_commits(tmp_path: Path) -> None:
    """The disk has room for frames, and none for a snapshot: that fails, and nothing else."""
    script = """
        import resource, sys
        from tests.journal.test_contract import Waiting, frame
        from tests.journal.test_snapshots import pictures, snapshot
        from turnkeeper.actors.sqlite import SqliteJournal
        journal, waiting = SqliteJournal(sys.argv[1]), Waiting()
        journal.append(frame(1), waiting.of(1))
        journal.keep(snapshot(1, [("a", b"small")]), waiting.of(10))
        waiting.until(2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        journal.append(frame(2), waiting.of(2))
        journal.keep(snapshot(2, [(f"c{n}", b"x" * 200_000) for n in range(9)]), waiting.of(20))
        for seq in range(3, 9):
            journal.append(frame(seq), waiting.of(seq))
        told = dict(waiting.until(10))
        assert type(told.pop(20)).__name__ == "JournalError", told
        assert set(told.values()) == {None}, told
        assert pictures(journal) == {"a": b"small"}
        journal.close()
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "j")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = SqliteJournal(tmp_path / "j")
    assert pictures(again) == {"a": b"small"}
    assert seqs(again.load()) == list(range(2, 9))
    again.close()


def test_deadlines_of_one_instant_come_in_the_same_order_after_a_snapshot() -> None:
    """Which of two turns settles first is no matter of what a restart began from."""
    cell = Cell()
    for seq, event in enumerate([opened("c1", f"P{n}", n) for n in range(1, 5)], start=1):
        cell.apply(Body(event=event), 0, seq)
    for seq, turn_id in enumerate(("P3", "P1", "P4", "P2"), start=5):
        cell.apply(Body(event=events.Stopped("c1", "text", turn_id=turn_id)), 0, seq)
    restarted = Cell()
    restarted.at = cell.at
    load_pictures(restarted, [picture for _, picture in pictures_of(cell)])
    came = [[body.due for body in iter(lambda of=one: of.take_due(60_000), None)] for one in (cell, restarted)]  # type: ignore[misc]
    assert [due.owner for due in came[0] if due is not None][:4] == ["turn:P3", "turn:P1", "turn:P4", "turn:P2"]
    assert came[0] == came[1]
