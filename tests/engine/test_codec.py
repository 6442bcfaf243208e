"""The codec: what is written is read again, and what cannot be read says where and why."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.vocabulary import KINDS, structs
from turnkeeper.engine import commands, events, signals
from turnkeeper.engine.codec import EVENT_TYPES, decode, digest, encode, event_from, frame_of, payload_of
from turnkeeper.engine.errors import DecodeError, SchemaTooNew
from turnkeeper.engine.ids import ChannelRef

UNIONS: dict[str, Any] = {"events": events.Event, "commands": commands.Command, "signals": signals.Signal}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}")
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_word_comes_back_as_it_went(kind: type[msgspec.Struct], data: st.DataObject) -> None:
    value = data.draw(structs(kind))
    union = UNIONS[kind.__module__.rpartition(".")[2]]
    written = encode(value)
    assert decode(written, union) == value
    assert encode(decode(written, union)) == written


SAMPLES = {"channel": "tg/1", "removed": 1, "source": "inject", "outcome": "sent", "message": 1}


@pytest.mark.parametrize("tag", EVENT_TYPES)
def test_a_default_is_not_written(tag: str) -> None:
    needed = [field.name for field in msgspec.structs.fields(EVENT_TYPES[tag]) if field.required]
    event = event_from({"type": tag, **{name: SAMPLES.get(name, "x") for name in needed}})
    assert set(msgspec.to_builtins(event)) <= {"type", *needed}


def test_an_event_is_read_as_msgspec_reads_it() -> None:
    raw = {"type": "turn_opened", "chat": "c", "turn_id": "P", "channel": "tg/100#7", "message": 6406}
    event = event_from(raw)
    assert event == msgspec.convert(raw, type=events.Event)
    assert event == events.TurnOpened("c", "P", channel=ChannelRef("tg", "100", "7"), message=6406)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"type": "inbund", "chat": "c"}, "'inbund' is no event; did you mean inbound?"),
        ({"type": 5, "chat": "c"}, "5 is no event; known: chat_opened"),
        ({"chat": "c"}, "None is no event"),
        ({"type": "inbound", "chat": "c", "messages": 1}, r"inbound.messages is no field; did you mean message\?"),
        ({"type": "lost", "chat": "c", "reason": "x", "qqq": 1}, "lost.qqq is no field; known: chat, reason"),
        ({"type": "inbound"}, "inbound: .*`chat`"),
        ({"type": "inbound", "chat": 1}, r"inbound: .*`\$.chat`"),
        ({"type": "turn_opened", "chat": "c"}, "turn_opened: .*`turn_id`"),
        ({"type": "inbound", "chat": "c", "message": 2**63}, r"inbound: .*`\$.message`"),
        ({"type": "inbound", "chat": "c", "message": True}, r"`\$.message`"),
        ({"type": "inbound", "chat": "c", "message": 1.5}, r"`\$.message`"),
        ({"type": "settled", "chat": "c", "delivery": "d", "outcome": "maybe"}, r"'maybe' .*`\$.outcome`"),
        ({"type": "settled", "chat": "c", "delivery": "d", "outcome": "sent", "messages": [2**70]}, r"`\$.messages"),
        ({"type": "settled", "chat": "c", "delivery": "d", "outcome": "sent", "retry_after_ms": 2**64}, "retry_after"),
        ({"type": "settled", "chat": "c", "delivery": "d", "outcome": "sent", "attempt": -(2**64)}, "attempt"),
        ({"type": "settled", "chat": "c", "delivery": "d", "outcome": "sent", "parts_done": 2**64}, "parts_done"),
        ({"type": "rewound", "chat": "c", "turn_id": "x", "removed": 2**64}, "removed"),
        ({"type": "failed", "chat": "c", "turn_id": "x", "error": "e", "status": 2**64}, "status"),
        ({"type": "unstick", "chat": "c", "max_rewinds": 2**64}, "max_rewinds"),
        ({"type": "inbound", "chat": "c", "channel": "nochannel"}, "channel: 'nochannel' is no channel; write server/id"),
        ({"type": "inbound", "chat": "c", "channel": "tg/"}, "channel: 'tg/' names no channel id"),
        ({"type": "inbound", "chat": "c", "channel": 5}, r"`\$.channel`"),
        ({"type": "inbound", "chat": "c", "channel": {"server": "tg"}}, r"`id` - at `\$.channel`"),
        ({"type": "inbound", "chat": "c", "channel": {"server": "tg", "id": 5}}, r"`\$.channel.id`"),
        ({"type": "inbound", "chat": "c", "channel": {"server": "a", "id": "b", "threads": 1}}, "channel.threads is no field; did you mean thread"),
        ({"type": "unstick", "chat": "c", "report_to": {"x": 1}}, "unstick.report_to.x is no field"),
    ],
)  # fmt: skip
def test_an_event_that_is_none_says_which_field(raw: dict[str, object], error: str) -> None:
    with pytest.raises(DecodeError, match=error):
        event_from(raw)


def test_hostile_json_is_taken_where_a_model_writes() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    raw = json.loads('{"type": "reply", "chat": "c\\ud800", "call_id": "1", "text": "\\udfff", "files": {"a": [1]}}')
    event = event_from(
        {**raw, "turn_id": 2**70, "consumed_turn_ids": deep, "interim": float("inf"), "chat_id": {"\ud800": None}}
    )
    assert isinstance(event, events.Reply)
    assert (event.turn_id, event.text, event.interim) == (str(2**70), "\udfff", float("inf"))
    assert events.nesting(event.consumed_turn_ids) == events.NESTING_MAX + 1
    assert decode(encode(event), events.Event) == event  # type: ignore[arg-type]


def test_what_a_model_wrote_cannot_be_changed_later() -> None:
    ids = ["P", {"b": 1, "a": [2]}]
    event = events.Reply("c", "1", consumed_turn_ids=ids)
    ids.append("Q")
    assert event.consumed_turn_ids == ("P", {"a": (2,), "b": 1})
    again = events.Reply("c", "1", consumed_turn_ids=["P", {"a": [2], "b": 1}])
    assert encode(event) == encode(again)


def test_bytes_that_are_cut_or_of_another_type_are_told() -> None:
    written = encode(events.Lost("c", "x"))
    with pytest.raises(DecodeError, match="bytes are no msgpack"):
        decode(written[:-1], events.Lost)
    with pytest.raises(DecodeError, match="reason"):
        decode(encode({"type": "lost", "chat": "c", "reason": 5}), events.Lost)
    with pytest.raises(DecodeError):
        decode(b"\xc1", events.Lost)


def test_a_frame_is_whole_or_an_error() -> None:
    frame = frame_of([encode({"a": 1}), encode({"a": 2})], last_seq=2, at_ms=5)
    assert decode(payload_of(frame), list[dict[str, int]]) == [{"a": 1}, {"a": 2}]
    for broken in (frame[:5], b"XX" + frame[2:], frame[:-1] + b"\x00", frame[:-1]):
        with pytest.raises(DecodeError):
            payload_of(broken)
    newer = frame[:2] + b"\x00\x63" + frame[4:]
    with pytest.raises(SchemaTooNew, match="schema 99"):
        payload_of(newer)


def test_a_digest_is_of_the_commands_in_order() -> None:
    one, two = commands.Ack(chat="c", call_id="1", ok=True), commands.Ack(chat="c", call_id="2", ok=True)
    assert digest([]) == 0
    assert digest([one, two]) != digest([two, one])
    assert digest([one]) == digest([msgspec.structs.replace(one)])
