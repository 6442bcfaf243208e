"""Hostile input: events of valid types with wrong ids, in any order, again and again. Nothing raises, nothing breaks."""

from __future__ import annotations

import json
import logging
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from turnkeeper.engine.cell import Cell, Run
from turnkeeper.engine.codec import EVENT_TYPES, event_from
from turnkeeper.engine.commands import Edit, Preview, React, Send
from turnkeeper.engine.inspection import inspect_chat
from turnkeeper.engine.invariants import audit
from turnkeeper.engine.journal import Body, HandedBody

PHASES = [phase for phase in Phase if phase is not Phase.shrink]
"""A hundred events shrink for minutes; the seeds of the simulator are what is shrunk."""
RUNS, EVENTS = 100, 100
"""10,000 events in all."""
MARK = "xq7secret"

IDS = st.sampled_from([*(f"T{number}" for number in range(24)), "nobody", "", "reply:c1:k1"])
MESSAGES = st.one_of(st.none(), st.integers(1, 4), st.sampled_from(["1", "007", "3EB0AAFF"]))
CHANNELS = st.one_of(st.none(), st.sampled_from(["tg/100", "tg/200", "dc/100", "?/100", "?/7", "tg/100#1"]))
PLACES = st.sampled_from(["tg/100", "tg/200", "dc/100", "?/100", "tg/100#1"])
WORDS = st.sampled_from([MARK, f"{MARK} more", "", " ", f"\r\n{MARK}\r"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | IDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(IDS, inner, max_size=2),
    max_leaves=3,
)
MODEL_IDS = st.one_of(IDS, IDS, JSON)
MODEL_LISTS = st.one_of(st.none(), st.lists(IDS, max_size=4), JSON)
DELIVERIES = st.sampled_from(
    [
        *(f"reply:c1:k{number}" for number in range(1, 5)),
        "edit:c1:k1",
        "preview:c1:T1:1",
        "fallback:c1:T1",
        "rescue:c1:T2",
        "react:c1:T3",
        "never",
    ]
)
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "turn_id": IDS,
    "into": st.none() | IDS,
    "call_id": st.sampled_from(["k1", "k2", "k3", "k4"]),
    "message": MESSAGES,
    "channel": CHANNELS,
    "home": CHANNELS,
    "reply_in": CHANNELS,
    "report_to": CHANNELS,
    "text": WORDS,
    "note": st.none() | WORDS,
    "participant": st.none() | st.just("someone@s"),
    "server": st.sampled_from(["tg", "dc"]),
    "event_id": st.none() | st.sampled_from(["e1", "e2"]),
    "delivery": DELIVERIES,
    "attempt": st.none() | st.integers(0, 3),
    "messages": st.lists(st.integers(9001, 9004), max_size=2),
    "reason": st.none() | st.sampled_from(["format", "quote_gone", "not_modified", "not_sent", "other"]),
    "retry_after_ms": st.none() | st.integers(0, 5000),
    "parts_done": st.none() | st.integers(0, 3),
    "cause": st.sampled_from(["tool", "re_pin", "budget"]),
    "error": st.sampled_from(["invalid_request", "configuration"]),
    "status": st.none() | st.sampled_from([400, 422, 500]),
    "category": st.none() | st.just("violence"),
    "max_rewinds": st.none() | st.integers(-1, 99),
    "removed": st.integers(-1, 2),
    "consumed_turn_ids": MODEL_LISTS,
    "files": st.one_of(st.just([]), st.just([f"{MARK}.png"]), JSON),
    "interim": st.one_of(st.booleans(), JSON),
    "chat_id": st.one_of(st.none(), st.just(""), st.just("c1"), JSON),
}
UNTRUSTED = {("reply", "turn_id"), ("edit", "turn_id"), ("reply", "text"), ("edit", "text")}
REQUIRED_MESSAGE = {"edit"}


def _field(kind: str, field: Any) -> st.SearchStrategy[Any]:
    if (kind, field.name) in UNTRUSTED:
        return st.one_of(BY_NAME[field.name], JSON)
    if kind in REQUIRED_MESSAGE and field.name == "message":
        return st.integers(9001, 9004)
    if kind == "inbound" and field.name == "delivery":
        return st.sampled_from(["live", "debounced", "assembled"])
    if kind == "accepted" and field.name == "event_id":
        return st.sampled_from(["e1", "e2"])
    if field.name == "reason" and field.required:
        return st.sampled_from(["timer", "gone"])
    if field.name == "channel" and field.required:
        return PLACES
    if field.name in BY_NAME:
        return BY_NAME[field.name]
    known: st.SearchStrategy[Any] = st.from_type(field.type)
    return known


def _events(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    fields = [field for field in msgspec.structs.fields(EVENT_TYPES[kind]) if field.name != "chat"]
    made = {field.name: _field(kind, field) for field in fields}
    return st.fixed_dictionaries({"type": st.just(kind), "chat": st.just("c1"), **made})


OFTEN = {
    "turn_opened": 12,
    "input_folded": 6,
    "reply": 10,
    "edit": 3,
    "stopped": 4,
    "preview": 4,
    "settled": 3,
    "inbound": 4,
}
RARE = {
    "activity",
    "question_answered",
    "channel_registered",
    "chat_opened",
    "lost",
    "interrupted",
    "refused",
    "failed",
    "speech_moved",
    "turn_continued",
    "server_removed",
    "resumed",
    "quiesced",
}
HOSTILE = st.sampled_from(
    [kind for kind in sorted(EVENT_TYPES) for _ in range(1 if kind in RARE else OFTEN.get(kind, 2))]
).flatmap(_events)
"""Turns are opened more often than they are ended, so that most events find something to act on."""
PAUSES = st.sampled_from([0, 0, 0, 0, 0, 0, 1, 2000, 20_000, 70_000])
COUNTS = {"events": 0, "steps": 0}


PRELUDE: list[dict[str, Any]] = [
    {"type": "turn_opened", "turn_id": "T0", "channel": "tg/100", "message": 1},
    {"type": "turn_opened", "turn_id": "T1", "channel": "tg/200", "message": 2},
    {"type": "reply", "call_id": "k1", "turn_id": "T0", "text": MARK},
    {"type": "reply", "call_id": "k2", "turn_id": "T1", "text": MARK},
]


class Desk:
    """A cell, run by hand: sequenced, handed over, fired; nothing is settled but by hostile events."""

    def __init__(self, *, paranoid: bool) -> None:
        self.cell = Cell(paranoid=paranoid)
        self.seq = 0
        self.now_ms = 0
        self.read: list[str] = []

    def run(self, body: Body) -> Run:
        self.seq += 1
        run = self.cell.apply(body, self.now_ms, self.seq)
        assert run.error is None, f"{body}: {run.error!r}"
        assert not run.violated, f"{body}: {run.violated}"
        self.read += [json.dumps(msgspec.to_builtins(signal)) for signal in run.signals]
        self.read += [str(count.labels) for count in run.counts]
        for command in run.commands:
            if isinstance(command, Send | Edit | Preview | React):
                self.run(Body(handed=HandedBody(command.id, command.delivery, command.attempt)))
        return run

    def wait(self, pause_ms: int) -> None:
        self.now_ms += pause_ms
        while (due := self.cell.take_due(self.now_ms)) is not None:
            self.run(due)


def _did_something(desk: Desk, before: Any, run: Run) -> bool:
    """More than counting the event: a command, a signal, a row, or another owner that was told."""
    return bool(run.commands or run.signals or run.rows or run.steps > 1 or before != _without_tick(desk))


def _without_tick(desk: Desk) -> Any:
    owner = next((one for at, one in desk.cell.owners.items() if at.kind == "chat"), None)
    return None if owner is None else msgspec.structs.replace(owner.state, tick=0)


@settings(max_examples=RUNS, deadline=None, derandomize=True, phases=PHASES)
@given(st.lists(st.tuples(HOSTILE, PAUSES), min_size=EVENTS, max_size=EVENTS))
def hostile_run(script: list[tuple[dict[str, Any], int]]) -> None:
    desk = Desk(paranoid=COUNTS["events"] % (4 * EVENTS) == 0)
    for raw in PRELUDE:
        desk.run(Body(event=event_from({"chat": "c1", **raw})))
    for raw, pause_ms in script:
        event = event_from(raw)
        before = _without_tick(desk)
        run = desk.run(Body(event=event))
        COUNTS["events"] += 1
        COUNTS["steps"] += _did_something(desk, before, run)
        desk.wait(pause_ms)
    assert not audit(desk.cell.owners)
    read = [*desk.read, json.dumps(_shown(desk))]
    assert not [line for line in read if MARK in line]


def _shown(desk: Desk) -> dict[str, Any]:
    return inspect_chat(desk.cell, "c1")


def test_hostile_events_are_only_events(caplog: pytest.LogCaptureFixture) -> None:
    """None raises, none breaks an invariant, none lets a text out; and nine in ten do something, or it proved little."""
    caplog.set_level(logging.DEBUG)
    hostile_run()
    assert COUNTS["events"] >= RUNS * EVENTS
    reached = COUNTS["steps"] / COUNTS["events"]
    print(f"{COUNTS['events']} hostile events, {reached:.1%} did something")
    assert reached >= 0.9
    assert not caplog.text
