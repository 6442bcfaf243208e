"""What a host posts for each shape of a push, and what the turn it wakes then answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.answers.desk import Desk
from turnkeeper.engine.codec import event_from
from turnkeeper.engine.commands import React, Record
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.ids import ChannelRef
from turnkeeper.engine.lab.push_shapes import batch_of, events_of

SHAPES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "push_shapes.json").read_text(encoding="utf-8"))
BY_NAME = pytest.mark.parametrize("shape", SHAPES, ids=[shape["name"] for shape in SHAPES])


@BY_NAME
def test_a_push_becomes_these_events(shape: dict[str, Any]) -> None:
    expected = tuple(event_from(event) for event in shape["events"])
    assert events_of(shape["push"], server="dc", chat="c1") == expected


@BY_NAME
def test_a_refusal_marks_what_the_push_named(shape: dict[str, Any]) -> None:
    desk = Desk()
    for event in events_of(shape["push"], server="dc", chat="c1"):
        desk.post(event)
    desk.post("turn_opened", turn_id="T1").post("refused", turn_id="T1")
    wanted = shape["refused"]
    locus = None if wanted["locus"] is None else ChannelRef.parse(wanted["locus"])
    assert [record.locus for record in desk.done(Record)] == [locus]
    marks = [] if wanted["message"] is None else [(locus, wanted["message"])]
    assert [(mark.channel, mark.message) for mark in desk.done(React)] == marks
    seen = desk.runtime.inspect("c1")
    assert seen["anchor"] == shape["anchor"]
    if "closed" in shape:
        assert seen["channels"][shape["closed"]]["open"] is False


def push(channel: str | None, message: str, *, addressed: bool = False) -> dict[str, Any]:
    origin = {"messageId": message, "channelId": channel, "guildId": "9"}
    return {"source": "discord", "mode": "debounced", "addressed": addressed, "origin": origin}


@pytest.mark.parametrize(
    ("pushes", "channel", "addressed"),
    [
        ([push("1", "m1")], "discord:9:1", False),
        ([push("1", "m1"), push("1", "m2")], "discord:9:1", False),
        ([push("1", "m1"), push("2", "m2")], None, False),
        ([push("1", "m1"), push(None, "m2")], None, False),
        ([push("1", "m1", addressed=True), push("2", "m2")], "discord:9:1", True),
        ([push("1", "m1", addressed=True), push("2", "m2", addressed=True)], "discord:9:2", True),
        ([], None, False),
    ],
)
def test_a_batch_names_no_message(pushes: list[dict[str, Any]], channel: str | None, addressed: bool) -> None:
    wake = batch_of(pushes, server="dc", chat="c1")
    assert wake.channel == (None if channel is None else ChannelRef("dc", channel))
    assert (wake.reason, wake.addressed) == ("batch", addressed)


@pytest.mark.parametrize(
    "raw", [{"origin": []}, {"origin": {"messageId": True}}, {"kind": "shout"}, {"mode": "later"}, 7]
)
def test_a_push_that_cannot_be_read_is_told(raw: Any) -> None:
    with pytest.raises(DecodeError, match=r"^push: "):
        events_of(raw, server="dc", chat="c1")


def test_an_id_never_reads_as_its_neighbour() -> None:
    """Structural: ("a:b", "c") and ("a", "b:c") are two channels."""
    one = events_of({"source": "a:b", "origin": {"channelId": "d", "guildId": "c"}}, server="dc", chat="c1")
    other = events_of({"source": "a", "origin": {"channelId": "d", "guildId": "b:c"}}, server="dc", chat="c1")
    assert one != other
