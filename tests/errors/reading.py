"""How each error of what is read comes about: events, journals, configurations, scenarios, tables."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from prometheus_client import CollectorRegistry

from tests.actors.hosts import PATIENCE_S, QUICK, Plain, activity
from tests.errors.running import when
from turnkeeper import Engine, events, load_config
from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine import codec
from turnkeeper.engine.lab.lines import lines_of
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.engine.table import ANY, DecisionTable, Row
from turnkeeper.metrics.instruments import Instruments

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FRAME = codec.frame_of([codec.encode({"seq": 1})], 1, 0)


@when("a type that is none, in JSON")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    codec.event_from({"type": "turn_open", "chat": "c1"})


@when("a field that is none, in JSON")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    codec.event_from({"type": "turn_opened", "chat": "c1", "turn": "P"})


# ------------------------------------------------------------ journal


def journal_at(path: Path) -> None:
    """Open, record something in a few frames, and crash."""
    journal = SqliteJournal(path)
    engine = Engine(QUICK, Plain(), journal=journal)
    try:
        engine.start()
        for _ in range(3):
            engine.post(activity("c1")).wait(PATIENCE_S)
    finally:
        engine.kill()
        journal.abandon()


@when("the folder is not there")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    journal_at(tmp_path / "no" / "journal")


@when("the file is something else")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"# A shopping list\n" * 500)
    journal_at(path)


@when("a frame in the middle is damaged")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    journal_at(path)
    with sqlite3.connect(path) as db:
        (name,) = [row[1] for row in db.execute("PRAGMA table_info(frames)") if row[2] == "BLOB"]
        first = db.execute("SELECT min(last_seq) FROM frames").fetchone()[0]
        db.execute(f"UPDATE frames SET {name} = ? WHERE last_seq = ?", (FRAME[:-1] + b"?", first))  # noqa: S608
    db.close()
    journal_at(path)


@when("another engine has it open")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    with Engine(QUICK | {"journal": {"path": str(path)}}, Plain()):
        journal_at(path)


@when("a newer version wrote the file")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    journal_at(path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = 99 WHERE name = 'schema'")
    db.close()
    SqliteJournal(path)


@when("a newer version wrote the frame")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    _, _, crc, seq, at_ms = codec.HEAD.unpack_from(FRAME)
    codec.payload_of(codec.HEAD.pack(codec.MARK, 99, crc, seq, at_ms) + FRAME[codec.HEAD.size :])


@when("a frame is cut")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    codec.payload_of(FRAME[:7])


@when("bytes that are no frame")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    codec.payload_of(b"#" * 100)


@when("a frame is damaged")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    codec.payload_of(FRAME[:-1] + b"?")


@when("bytes that are no msgpack")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    codec.decode(b"\x85", events.Activity)


# ------------------------------------------------------------ configuration


def configured(tmp_path: Path, text: str) -> object:
    file = tmp_path / "turnkeeper.toml"
    file.write_text(text, encoding="utf-8")
    return load_config(file)


@when("a section that is none")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    configured(tmp_path, "[timer]")


@when("a setting that is none")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    configured(tmp_path, "[timers]\nquit_ms = 5")


@when("a value that is not allowed")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    configured(tmp_path, '[speech]\nprose = "mixed"')


@when("no such file")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    load_config(tmp_path / "no.toml")


@when("no TOML")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    configured(tmp_path, "[timers")


@when("a bad reload")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "turnkeeper.toml"
    file.write_text("[delivery]\nretries = -1\n", encoding="utf-8")
    with Engine(QUICK, Plain()) as engine:
        engine.reload(file)


@when("a SQLite journal without a path")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    Engine({"journal": {"kind": "sqlite"}}, Plain())


@when("the registry has our metrics already")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    registry = CollectorRegistry()
    Instruments(registry)
    Instruments(registry)


# ------------------------------------------------------------ scenarios


def scenario(tmp_path: Path, text: str) -> object:
    file = tmp_path / "a.jsonl"
    file.write_text(text, encoding="utf-8")
    return read_scenario(file)


@when("no such scenario")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    lines_of(tmp_path / "no.jsonl")


@when("an empty one")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    scenario(tmp_path, "")


@when("a line that is no JSON")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    scenario(tmp_path, '{"scenario": "s"}\n{"advance": }\n')


@when("a step that is none")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    scenario(tmp_path, '{"scenario": "s"}\n{"advanced": 5}\n')


# ------------------------------------------------------------ tables


class Facts(msgspec.Struct, frozen=True):
    late: bool
    kind: Literal["fold", "turn"]


def table(*rows: Any) -> object:
    return DecisionTable("fruit", Facts, list(rows), source="a test")


@when("a combination without a row")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    table(Row("late", (True, ANY), 1, "why"))


@when("a row that never decides")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    table(Row("any", (ANY, ANY), 1, "why"), Row("late", (True, "fold"), 2, "why"))


@when("a value outside of its column")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    table(Row("apple", (ANY, "apple"), 1, "why"), Row("any", (ANY, ANY), 2, "why"))
