"""A journal of other rules: what is decided otherwise is told, event by event, and never emitted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.actors.hosts import PATIENCE_S, QUICK, Plain, opened, reply
from turnkeeper import Engine, commands, events, signals
from turnkeeper.actors import startup
from turnkeeper.actors.history import History
from turnkeeper.engine import cell

if TYPE_CHECKING:
    from pathlib import Path

    from turnkeeper.engine.journal import Record


def other(kind: type, **changes: object) -> Any:
    """Rules that make other commands of a kind than ours do."""
    ours = {name: cell.STEPS[name] for name in ("chat", "turn", "channel")}

    def patched(name: str) -> Any:
        def step(state: Any, message: Any, at: Any) -> Any:
            done = ours[name](state, message, at)
            made = tuple(msgspec.structs.replace(c, **changes) if isinstance(c, kind) else c for c in done.commands)
            return msgspec.structs.replace(done, commands=made)

        return step

    return {name: patched(name) for name in ours}


def test_what_is_decided_otherwise_is_told_and_not_emitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = {**QUICK, "journal": {"path": str(tmp_path / "j"), "linger_ms": 0}}
    first = Engine(config, Plain())
    first.start()
    for n in range(3):
        first.post(opened(f"c{n}"))
        assert first.call(reply(f"c{n}", "k1"), PATIENCE_S).ok
        first.post(events.Stopped(f"c{n}", "", turn_id="P")).wait(PATIENCE_S)
    first.idle(PATIENCE_S)
    first.kill()
    first._parts.journal.close()

    for name, step in other(commands.TurnSettled, outcome="silent").items():
        monkeypatch.setitem(cell.STEPS, name, step)
    told: list[signals.Signal] = []

    def observer(record: Record, run: cell.Run) -> None:
        told.extend(run.signals if record.body.recovered is not None else ())

    second = Plain()
    with caplog.at_level(logging.INFO, "turnkeeper"), Engine(config, second, observer=observer) as engine:
        engine.idle(PATIENCE_S)
    differs = [signal for signal in told if isinstance(signal, signals.DigestDiffers)]
    assert [signal.chat for signal in differs] == ["c0", "c1", "c2"]
    assert not second.performed
    lines = [record.getMessage() for record in caplog.records]
    assert sum("is decided otherwise now" in line for line in lines) == 3
    assert sum(line.startswith("recovered in ") for line in lines) == 1
    with History(tmp_path / "j") as history:
        found = history.verify()
    assert not found.ok
    assert found.differs == [signal.seq for signal in differs]


def test_what_was_not_released_yet_is_not_released_under_other_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between commit and release: the other rules' command is not sent in its place."""
    config = {**QUICK, "journal": {"path": str(tmp_path / "j"), "linger_ms": 0}}

    def die(record: Record, run: cell.Run) -> None:
        if any(isinstance(command, commands.Send) for command in run.commands):
            engine.kill()

    engine = Engine(config, Plain(), observer=die)
    engine.start()
    engine.post(opened("c1"))
    engine.post(reply("c1", "k1"))
    engine._shard.join(PATIENCE_S)
    engine._parts.journal.close()
    for name, step in other(commands.Send, text="something else").items():
        monkeypatch.setitem(cell.STEPS, name, step)
    second = Plain()
    with Engine(config, second) as again:
        again.idle(PATIENCE_S)
    assert not second.of(commands.Send)


def test_the_report_counts_what_is_in_doubt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With the host at the kill, and not settled: of unknown outcome, in the signal and in the log."""
    config = {**QUICK, "journal": {"path": str(tmp_path / "j"), "linger_ms": 0}}
    first = Engine(config, Plain(lambda _: None))
    first.start()
    for n in range(4):
        first.post(opened(f"c{n}"))
        first.post(reply(f"c{n}", "k1"))
    first.idle(PATIENCE_S)
    first.kill()
    first._parts.journal.close()
    told: list[signals.Signal] = []
    with (
        caplog.at_level(logging.INFO, "turnkeeper"),
        Engine(config, Plain(), observer=lambda _, run: told.extend(run.signals)) as engine,
    ):
        engine.idle(PATIENCE_S)
    (report,) = [signal for signal in told if isinstance(signal, signals.Recovered)]
    assert (report.chats, report.open_turns, report.unknown) == (4, 4, 4)
    assert sum(isinstance(signal, signals.DeliveryUnknown) for signal in told) == 4
    assert any("4 sends of unknown outcome" in record.getMessage() for record in caplog.records)


def test_a_long_replay_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = {**QUICK, "journal": {"path": str(tmp_path / "j"), "linger_ms": 0}}
    first = Engine(config, Plain())
    first.start()
    for n in range(60):
        first.post(opened(f"c{n}")).wait(PATIENCE_S)
    first.kill()
    first._parts.journal.close()
    monkeypatch.setattr(startup, "MILESTONE", 20)
    with caplog.at_level(logging.INFO, "turnkeeper"), Engine(config, Plain()):
        pass
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if line.startswith("recovering")] == [
        f"recovering: {n} records replayed" for n in (20, 40, 60)
    ]
