"""The vocabulary is that of the protocol: names, fields, defaults."""

from __future__ import annotations

import msgspec
import pytest

from tests.engine.vocabulary import KINDS
from turnkeeper.engine import events
from turnkeeper.engine.events import nesting
from turnkeeper.engine.ids import ChannelRef


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}")
def test_the_class_is_the_camel_case_of_the_type(kind: type[msgspec.Struct]) -> None:
    tag = str(kind.__struct_config__.tag)
    assert kind.__name__ == "".join(part.capitalize() for part in tag.split("_"))
    assert "chat" in kind.__struct_fields__
    assert kind.__struct_config__.frozen


def test_a_written_channel_is_parsed_wherever_an_event_holds_one() -> None:
    place = ChannelRef("tg", "100")
    assert events.Inbound("c", channel="tg/100").channel == place  # type: ignore[arg-type]
    assert events.ChatOpened("c", home="tg/100").home == place  # type: ignore[arg-type]
    assert events.Reply("c", "1", reply_in="tg/100").reply_in == place  # type: ignore[arg-type]
    assert events.Unstick("c", report_to="tg/100").report_to == place  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="channel: 'x' is no channel"):
        events.Inbound("c", channel="x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "depth"), [("x", 0), (None, 0), ((), 1), (("a",), 1), ((("a",), "b"), 2), ({"a": {"b": ()}}, 3)]
)
def test_nesting_counts_lists_and_maps(value: object, depth: int) -> None:
    assert nesting(value) == depth


def test_what_is_no_json_becomes_an_empty_map() -> None:
    event = events.Reply("c", "1", turn_id=b"bytes", files={1, 2}, text=object())
    assert (event.turn_id, event.files, event.text) == ({}, {}, {})
