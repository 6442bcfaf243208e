"""Journals of every schema that ever was are read for ever; and a version reads what the next one only added to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import msgpack
import msgspec
import pytest

from turnkeeper import Engine, JournalError
from turnkeeper.actors.exporting import export_as
from turnkeeper.actors.history import History
from turnkeeper.engine import codec
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.errors import DecodeError, SchemaTooNew
from turnkeeper.engine.journal import RULES, decode_frame
from turnkeeper.engine.recovery import replay
from turnkeeper.engine.snapshot import load_pictures

GOLDEN = Path(__file__).parents[1] / "golden"
SCHEMAS = range(1, codec.SCHEMA + 1)


@pytest.fixture(params=SCHEMAS)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy: reading takes a lock beside the file."""
    return Path(shutil.copy(GOLDEN / f"schema-{request.param}.journal", tmp_path / f"schema-{request.param}.journal"))


def holds(wanted: Any, found: Any) -> bool:
    """All that was written is still there and the same; fields may have been added."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and holds(wanted[key], found[key]) for key in wanted)
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(holds, wanted, found))
    return bool(wanted == found)


def test_every_record_reads_as_it_was_written(golden: Path) -> None:
    lines = GOLDEN.joinpath(f"{golden.stem}.jsonl").read_text(encoding="utf-8").splitlines()
    with History(golden) as history:
        records = list(history.records())
        found = history.verify()
    assert len(records) == len(lines) > 30
    for line, record in zip(lines, records, strict=True):
        plain = json.loads(json.dumps(msgspec.to_builtins(record)))
        assert holds(json.loads(line), plain), line
    assert found.records == len(records)
    assert found.chats == 2
    if all(record.rules == RULES for record in records):
        assert found.ok, found


def test_an_engine_goes_on_from_it(golden: Path) -> None:
    class Gateway:
        def perform(self, command: object, /) -> None:
            pass

    with Engine({"journal": {"path": str(golden)}}, Gateway()) as engine:
        assert engine.inspect("c1")["turns"]["P"]["status"] == "settled"
        assert engine.inspect("c2")["turns"].keys() == {"Q"}  # it waited too long: the ceiling may have come


def added(value: Any) -> Any:
    """What a later version may have written: the same, and a field more in every map of ours."""
    if isinstance(value, list):
        return [added(item) for item in value]
    if isinstance(value, dict):
        more = {key: added(item) for key, item in value.items()}
        return more if not value or "server" in value else {**more, "added_later": {"by": [1, "two"]}}
    return value


def test_fields_that_a_later_version_added_are_passed_over(golden: Path) -> None:
    """Version N-1 reads what N wrote, with nothing lost of what it knows: there is nothing to unwind."""
    with History(golden) as history:
        frames = list(history.frames())
        snapshot = history.snapshot()
        pictures = [] if snapshot is None else [data for _, data in snapshot.pictures]
    for frame in frames:
        payload = msgpack.packb(
            [{**record, "body": added_body(record["body"])} for record in msgpack.unpackb(codec.payload_of(frame))]
        )
        seq, at_ms = codec.end_of(frame)
        later = codec.HEAD.pack(codec.MARK, codec.SCHEMA, crc32(payload), seq, at_ms) + payload
        assert decode_frame(later) == decode_frame(frame)
    cell, again = Cell(), Cell()
    load_pictures(cell, pictures)
    load_pictures(again, [msgpack.packb({**msgpack.unpackb(data), "added_later": 1}) for data in pictures])
    assert {a: o.state for a, o in cell.owners.items()} == {a: o.state for a, o in again.owners.items()}


def added_body(body: dict[str, Any]) -> dict[str, Any]:
    """A field more in the body and in what it holds."""
    return {
        **{name: {**inner, "added_later": {"by": [1, "two"]}} for name, inner in body.items() if inner is not None},
        "added_later": 7,
    }


def test_an_export_for_the_version_before_is_the_same_journal(golden: Path, tmp_path: Path) -> None:
    with History(golden) as history:
        assert export_as(history, codec.SCHEMA, tmp_path / "exported") == history.count()
        frames, states = list(history.frames()), Cell()
        replay(states, frames)
    with History(tmp_path / "exported") as history:
        assert list(history.frames()) == frames
        assert history.verify().ok
        assert history.info().snapshot_seq


def test_a_way_down_is_taken_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schema 3 is written as 1 by way of 2; a version that has no way down says so."""
    payload = msgpack.packb([1])
    monkeypatch.setattr(codec, "SCHEMA", 3)
    frame = codec.HEAD.pack(codec.MARK, 3, crc32(payload), 7, 70) + payload
    with pytest.raises(DecodeError, match="no way down from 3"):
        codec.frame_as(frame, 1)
    monkeypatch.setitem(codec.DOWN, 3, lambda data: msgpack.packb([*msgpack.unpackb(data), 3]))
    monkeypatch.setitem(codec.DOWN, 2, lambda data: msgpack.packb([*msgpack.unpackb(data), 2]))
    older = codec.frame_as(frame, 1)
    monkeypatch.setattr(codec, "SCHEMA", 1)
    assert msgpack.unpackb(codec.payload_of(older)) == [1, 3, 2]
    assert codec.end_of(older) == (7, 70)
    with pytest.raises(SchemaTooNew):
        codec.payload_of(frame)


def test_a_golden_journal_is_never_written_again() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.make"], capture_output=True, text=True, check=False, cwd=GOLDEN.parents[1]
    )
    assert done.returncode == 1
    assert "never written again" in done.stderr


def test_what_is_no_journal_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no journal")
    with pytest.raises(JournalError, match="is no journal"):
        History(tmp_path / "x")
