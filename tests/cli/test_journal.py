"""`turnkeeper journal`: what it says of a journal, and what it says to those who mistype."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cli.conftest import ROOT, Turnkeeper
from turnkeeper.actors.history import History
from turnkeeper.actors.sqlite import SqliteJournal

GOLDEN = ROOT / "tests" / "golden" / "schema-1.journal"
TEXTS = ("Both are done", "In short", "On its way", "Grüße", "a.png")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(GOLDEN, tmp_path / "gateway.journal"))


def last_frame(file: Path, change: str) -> None:
    base = sqlite3.connect(file)
    base.execute(f"UPDATE frames SET data = {change} WHERE last_seq = (SELECT MAX(last_seq) FROM frames)")  # noqa: S608
    base.commit()
    base.close()


def test_info(turnkeeper: Turnkeeper, file: Path) -> None:
    shown = turnkeeper("journal", "info", file)
    assert shown.exit_code == 0
    assert "a restart begins at the snapshot at" in shown.output
    told = json.loads(turnkeeper("journal", "info", file, "--json").output)
    assert told["schema"] == 1
    assert told["chats"] == 2
    assert told["whole"] is True
    assert told["last_seq"] == told["snapshot_seq"] >= told["frames"] > 30


def test_dump_is_a_recording(turnkeeper: Turnkeeper, file: Path, tmp_path: Path) -> None:
    dumped = turnkeeper("journal", "dump", file)
    assert dumped.exit_code == 0
    (tmp_path / "dumped.jsonl").write_text(dumped.output, encoding="utf-8")
    ran = turnkeeper("run", tmp_path / "dumped.jsonl", "--runtime", "all")
    assert ran.exit_code == 0, ran.output
    assert "Both are done." in ran.output
    assert "turn_settled P: final-reply" in ran.output


def test_verify(turnkeeper: Turnkeeper, file: Path) -> None:
    shown = turnkeeper("journal", "verify", file)
    assert shown.exit_code == 0, shown.output
    assert "replays as it was recorded" in shown.output
    told = json.loads(turnkeeper("journal", "verify", file, "--json").output)
    assert told["ok"] is True
    assert told["chats"] == 2
    assert told["differs"] == told["states_differ"] == []


def test_verify_finds_what_was_changed(turnkeeper: Turnkeeper, file: Path) -> None:
    """A picture of another chat in the place of this one."""
    with History(file) as history:
        snapshot = history.snapshot()
        assert snapshot is not None
        pictures = dict(snapshot.pictures)
    from turnkeeper.engine import codec

    base = sqlite3.connect(file)
    other = pictures["c2"]
    base.execute("UPDATE pictures SET data = ?, crc = ? WHERE chat = ?", (other, codec.checksum(other), b"c1"))
    base.commit()
    base.close()
    shown = turnkeeper("journal", "verify", file)
    assert shown.exit_code == 1
    assert "the state of chat c1 is another" in shown.output
    assert json.loads(turnkeeper("journal", "verify", file, "--json").output)["states_differ"] == ["c1"]


def test_verify_tells_a_torn_tail_and_leaves_it(turnkeeper: Turnkeeper, file: Path) -> None:
    base = sqlite3.connect(file)
    base.execute("DELETE FROM base")
    base.commit()
    base.close()
    last_frame(file, "substr(data, 1, length(data) - 2)")
    for _ in range(2):
        shown = turnkeeper("journal", "verify", file)
        assert shown.exit_code == 0
        assert "the last 1 frames are damaged" in shown.output


def test_verify_without_the_whole_history(turnkeeper: Turnkeeper, file: Path) -> None:
    base = sqlite3.connect(file)
    base.execute("DELETE FROM frames WHERE last_seq < 5")
    base.commit()
    base.close()
    shown = turnkeeper("journal", "verify", file)
    assert shown.exit_code == 0
    assert "journal.retain_days" in shown.output
    assert "journal.retain_days" in turnkeeper("journal", "info", file).output


def test_a_redacted_export_holds_no_text(turnkeeper: Turnkeeper, file: Path) -> None:
    plain = turnkeeper("journal", "export", file).output
    redacted = turnkeeper("journal", "export", file, "--redact").output
    assert all(json.dumps(text).strip('"') in plain for text in TEXTS)
    assert not any(json.dumps(text).strip('"') in redacted or text in redacted for text in TEXTS)
    records = [json.loads(line) for line in redacted.splitlines()]
    assert len(records) == len(plain.splitlines())
    (reply,) = [r["body"]["event"] for r in records if (r["body"].get("event") or {}).get("call_id") == "k1"][:1]
    assert (reply["turn_id"], reply["consumed_turn_ids"]) == ("F", ["P", "F"])
    assert reply["text"]["length"] == len("Both are done.")
    again = turnkeeper("journal", "export", file, "--redact").output
    assert again != redacted, "the key of the hashes is thrown away"


def test_what_a_model_wrote_into_an_id_is_no_id(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    from turnkeeper.engine.events import Reply
    from turnkeeper.engine.journal import Body, Record
    from turnkeeper.engine.lab.redacting import Redactor

    event = Reply("c1", "k1", turn_id={"my secret": "text of mine"}, consumed_turn_ids=["two words", "P"], text="t")
    told = json.dumps(Redactor(b"key").record(Record(1, 1, 1, Body(event=event), "ok", 0)))
    assert "secret" not in told
    assert "mine" not in told
    assert "two words" not in told
    assert '"P"' in told


def test_export_writes_private_files(turnkeeper: Turnkeeper, file: Path, tmp_path: Path) -> None:
    assert turnkeeper("journal", "export", file, "--out", tmp_path / "all.jsonl").exit_code == 0
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o777 == 0o600
    assert turnkeeper("journal", "export", file, "--schema", 1, "--out", tmp_path / "old.journal").exit_code == 0
    assert turnkeeper("journal", "verify", tmp_path / "old.journal").exit_code == 0
    again = turnkeeper("journal", "export", file, "--out", tmp_path / "all.jsonl")
    assert again.exit_code == 2
    assert "exists" in again.output
    nowhere = turnkeeper("journal", "export", file, "--out", tmp_path / "no" / "all.jsonl")
    assert nowhere.exit_code == 2
    assert "cannot be written" in nowhere.output
    for options in (("--schema", "1"), ("--schema", "9", "--out", "x"), ("--schema", "1", "--redact", "--out", "x")):
        assert turnkeeper("journal", "export", file, *options).exit_code == 2


@pytest.fixture
def locked(file: Path) -> Iterator[Path]:
    journal = SqliteJournal(file)
    yield file
    journal.close()


@pytest.mark.parametrize("command", ["info", "dump", "verify", "export"])
def test_mistakes_are_told_in_one_line(
    process: Callable[..., "CompletedProcess[str]"], command: str, tmp_path: Path, locked: Path
) -> None:
    (tmp_path / "text").write_text("no journal")
    sqlite3.connect(tmp_path / "database").execute("CREATE TABLE t (a)").connection.close()
    (tmp_path / "cut").write_bytes(GOLDEN.read_bytes()[:9000])
    for name, cause in {
        "absent": "cannot be read (No such file",
        "text": "is no journal",
        "database": "is a database and no journal",
        "cut": "cannot be",
        ".": "cannot be read (Is a directory)",
    }.items():
        done = process("journal", command, tmp_path / name)
        assert done.returncode == 2, (name, done)
        assert done.stderr.startswith("Error: ")
        assert cause in done.stderr, name
        assert "Traceback" not in done.stderr
    done = process("journal", command, locked)
    assert done.returncode == 2
    assert "another process has this journal open" in done.stderr


def test_a_long_replay_shows_a_bar_on_a_terminal(file: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "turnkeeper", "journal", "verify", str(file)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 1_000_000).decode()
    os.close(ours)
    assert re.search(r"\[#{30}\] (\d+) of \1", shown)
    assert b"replays as it was recorded" in done.stdout
