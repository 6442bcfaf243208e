"""No text leaves by a side door: signals, metrics, errors, log lines and `inspect` hold ids and lengths only."""

from __future__ import annotations

import json
import logging
from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest

from tests.simulation.playing import Story, stories
from turnkeeper.engine.inspection import inspect_chat
from turnkeeper.engine.lab.simulation.player import Player, Raw
from turnkeeper.metrics.probe import RegistryProbe

MARK = "xq7secret"
SAID = ("text", "note")
"""Fields that hold somebody's words; `files` holds names."""


def with_token(raw: Raw) -> Raw:
    """Put the mark into every text and file name of a step."""
    kind = next(iter(raw))
    fields = raw[kind]
    if not isinstance(fields, dict) or kind in {"settle", "reload", "crash"}:
        return raw
    changed = {
        name: f"{value} {MARK}" if name in SAID and isinstance(value, str) and value.strip() else value
        for name, value in fields.items()
    }
    if isinstance(fields.get("files"), list):
        changed["files"] = [f"{name}-{MARK}" if isinstance(name, str) else name for name in fields["files"]]
    return {**raw, kind: changed}


class Listener(Player):
    """Keeps everything that an operator could read."""

    def __init__(self, config: Raw) -> None:
        self.read: list[str] = []
        self.probe = RegistryProbe()
        super().__init__(config)

    def _observe(self, record: Any, run: Any) -> None:
        super()._observe(record, run)
        self.probe.observe(record, run)
        self.read += [json.dumps(msgspec.to_builtins(signal)) for signal in run.signals]
        self.read += [json.dumps(msgspec.to_builtins(count)) for count in run.counts]
        self.read += [f"{row.table} {row.row} {row.why}" for row in run.rows]
        self.read += [str(run.error)] if run.error is not None else []


@pytest.mark.parametrize("story", stories(), ids=lambda story: story.name)
def test_no_text_leaks(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    player = Listener(story.config)
    for raw in story.steps:
        player.play(with_token(raw))
    chats = {address.chat for address in player.plain.cell.owners}
    player.read += [json.dumps(inspect_chat(player.plain.cell, chat)) for chat in sorted(chats)]
    player.read += [generate_latest(player.probe.registry).decode(), caplog.text]
    assert not [line for line in player.read if MARK in line]


def test_the_token_is_really_said() -> None:
    """Else the test above would prove nothing."""
    said = 0
    for story in stories():
        player = Listener(story.config)
        for raw in story.steps:
            player.play(with_token(raw))
        said += any(MARK in str(command) for command in player.platform.performed)
    assert said > 100
