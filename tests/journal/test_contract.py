"""What every `Journal` promises, and what the SQLite one promises beside it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine.config import Policy
from turnkeeper.engine.errors import JournalError, Locked, SchemaTooNew
from turnkeeper.engine.events import Activity
from turnkeeper.engine.journal import (
    RULES,
    Body,
    Journal,
    MemoryJournal,
    Record,
    Snapshot,
    decode_frame,
    encode_frame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Maker = Callable[[], Journal]


def frame(seq: int) -> bytes:
    """Make a frame of one record."""
    return encode_frame([Record(seq, seq * 10, RULES, Body(event=Activity("c1", f"hook {seq}")), "ok", 0)])


def seqs(frames: object) -> list[int]:
    """Read the places of the records in frames."""
    return [record.seq for one in frames for record in decode_frame(one)]  # type: ignore[attr-defined]


class Waiting:
    """Collects what a journal says, and waits for it."""

    def __init__(self) -> None:
        self.told: list[tuple[int, BaseException | None]] = []
        self._changed = threading.Condition()

    def of(self, seq: int) -> Callable[[BaseException | None], None]:
        """Return the callback of a frame."""

        def committed(error: BaseException | None) -> None:
            with self._changed:
                self.told.append((seq, error))
                self._changed.notify_all()

        return committed

    def until(self, count: int) -> list[tuple[int, BaseException | None]]:
        """Wait until so many were told."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.told) >= count, timeout=30)
            return list(self.told)


@pytest.fixture(params=["memory", "sqlite"])
def reopening(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    """Return a maker that opens the same journal again."""
    if request.param == "sqlite":
        return lambda: SqliteJournal(tmp_path / "journal.db")
    kept = MemoryJournal()
    return lambda: kept


def test_frames_come_back_in_order(reopening: Maker) -> None:
    """What was committed is loaded again, oldest first."""
    journal, waiting = reopening(), Waiting()
    for seq in range(1, 501):
        journal.append(frame(seq), waiting.of(seq))
    told = waiting.until(500)
    journal.close()
    again = reopening()
    assert again.snapshot() is None
    assert seqs(again.load()) == list(range(1, 501))
    again.close()
    assert told == [(seq, None) for seq in range(1, 501)]


def test_a_snapshot_replaces_what_came_before_it(reopening: Maker) -> None:
    """A replay begins at the snapshot; frames after it stay."""
    journal, waiting = reopening(), Waiting()
    for seq in range(1, 11):
        journal.append(frame(seq), waiting.of(seq))
    waiting.until(10)
    kept = Snapshot(10, 100, RULES, Policy(), [("a", b"picture a"), ("b", b"picture b")])
    journal.keep(kept, waiting.of(0))
    waiting.until(11)
    journal.append(frame(11), waiting.of(11))
    waiting.until(12)
    journal.close()
    again = reopening()
    found = again.snapshot()
    assert found is not None
    assert (found.seq, found.at_ms, found.rules, found.policy) == (10, 100, RULES, Policy())
    assert sorted(found.pictures) == [("a", b"picture a"), ("b", b"picture b")]
    assert seqs(again.load()) == [11]
    again.close()


def test_closing_commits_what_waits(reopening: Maker) -> None:
    """Nothing that was appended before `close` is lost."""
    journal, waiting = reopening(), Waiting()
    for seq in range(1, 101):
        journal.append(frame(seq), waiting.of(seq))
    journal.close()
    assert len(waiting.told) == 100
    again = reopening()
    assert len(list(again.load())) == 100
    again.close()


def test_the_file_is_private(tmp_path: Path) -> None:
    """Messages are in it: nobody else may read it."""
    journal = SqliteJournal(tmp_path / "j.db")
    journal.close()
    assert (tmp_path / "j.db").stat().st_mode & 0o777 == 0o600


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    """Two processes on one journal would damage it."""
    journal = SqliteJournal(tmp_path / "j.db")
    script = """
        import sys
        from turnkeeper.actors.sqlite import SqliteJournal
        from turnkeeper.engine.errors import Locked
        try:
            SqliteJournal(sys.argv[1])
        except Locked as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "j.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "another process has this journal open" in done.stdout
    with pytest.raises(Locked):
        SqliteJournal(tmp_path / "j.db")
    journal.close()
    SqliteJournal(tmp_path / "j.db").close()


def _write(path: Path, count: int) -> None:
    journal, waiting = SqliteJournal(path), Waiting()
    for seq in range(1, count + 1):
        journal.append(frame(seq), waiting.of(seq))
    journal.close()


def _damage(path: Path, n: int) -> None:
    base = sqlite3.connect(path)
    (data,) = base.execute("SELECT data FROM frames WHERE last_seq = ?", (n,)).fetchone()
    base.execute("UPDATE frames SET data = ? WHERE last_seq = ?", (data[:-3], n))
    base.commit()
    base.close()


def test_a_torn_tail_is_cut_and_told(tmp_path: Path) -> None:
    """The end of a journal may be cut; everything before it counts."""
    path = tmp_path / "j.db"
    _write(path, 10)
    _damage(path, 10)
    journal = SqliteJournal(path)
    assert seqs(journal.load()) == list(range(1, 10))
    assert journal.cut == 1
    journal.close()
    again = SqliteJournal(path)
    assert seqs(again.load()) == list(range(1, 10))
    assert again.cut == 0
    again.close()


def test_damage_in_the_middle_is_an_error(tmp_path: Path) -> None:
    """A hole is not skipped: what follows it was decided with it."""
    path = tmp_path / "j.db"
    _write(path, 10)
    _damage(path, 5)
    journal = SqliteJournal(path)
    with pytest.raises(JournalError, match="frame 5 is damaged"):
        list(journal.load())
    journal.close()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """An older version does not guess what a newer one wrote."""
    path = tmp_path / "j.db"
    _write(path, 1)
    base = sqlite3.connect(path)
    base.execute("UPDATE meta SET value = 99 WHERE name = 'schema'")
    base.commit()
    base.close()
    with pytest.raises(SchemaTooNew, match="has schema 99"):
        SqliteJournal(path)


def test_no_journal_at_all(tmp_path: Path) -> None:
    """A file that is something else, and a folder that is not there, are told with path and cause."""
    other = tmp_path / "notes.txt"
    other.write_text("this is no database, whatever its name says\n" * 200)
    with pytest.raises(JournalError, match=r"notes\.txt"):
        SqliteJournal(other)
    with pytest.raises(JournalError, match="cannot be opened"):
        SqliteJournal(tmp_path / "absent" / "j.db")


def test_a_full_disk_is_terminal(tmp_path: Path) -> None:
    """A commit that fails fails every later one: nothing unrecorded may be released."""
    script = """
        import resource, sys, threading
        sys.path.insert(0, sys.argv[2])
        from test_contract import Waiting, frame
        from turnkeeper.actors.sqlite import SqliteJournal
        journal, waiting = SqliteJournal(sys.argv[1]), Waiting()
        journal.append(frame(1), waiting.of(1))
        waiting.until(1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        for seq in range(2, 5000):
            journal.append(frame(seq), waiting.of(seq))
        told = waiting.until(4999)
        failed = [seq for seq, error in told if error is not None]
        assert failed and failed == list(range(failed[0], 5000)), failed[:3]
        print(type(told[-1][1]).__name__, told[-1][1])
        journal.close()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "j.db"), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("JournalError")
    assert "j.db: could not be written" in done.stdout
    again = SqliteJournal(tmp_path / "j.db")
    found = seqs(again.load())
    assert found == list(range(1, len(found) + 1))
    again.close()
