"""What the simulated host of scenarios never does: answer a rewind late, with nothing left, twice, unasked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.answers.desk import Desk
from turnkeeper.engine.commands import React, Rewind, Send, Wake
from turnkeeper.engine.signals import LimitReached, RefusalMarked, SpeechUnrouted, UnstickRefused

AUTO: dict[str, Any] = {"refusal": {"auto_rewind": True, "max_rewinds": 2}}


def asked(desk: Desk, message: str = "m1") -> Desk:
    """An addressed message, its turn T1, and a refusal that a rewind is asked for."""
    desk.post("inbound", channel="dc/C1", message=message, addressed=True)
    return desk.post("turn_opened", turn_id="T1").post("refused", turn_id="T1")


def test_the_retry_waits_for_the_host() -> None:
    desk = asked(Desk(AUTO))
    assert desk.tags == ["record", "rewind", "turn_settled"]
    desk.post("rewound", turn_id="T1", removed=2)
    wake = desk.done(Wake)[0]
    assert (str(wake.channel), wake.message, wake.addressed, wake.attempt) == ("dc/C1", "m1", True, 1)
    assert len(desk.state.wakes) == 1


def test_the_host_may_answer_before_the_turn_settles() -> None:
    desk = Desk(AUTO).hold()
    desk.post("inbound", channel="dc/C1", message="m1", addressed=True).post("turn_opened", turn_id="T1")
    desk.post("reply", call_id="k", turn_id="T1", text="half").post("refused", turn_id="T1")
    desk.post("rewound", turn_id="T1", removed=1)
    assert desk.tags == ["send", "record", "rewind", "wake"]
    assert desk.done(Wake)[0].message == "m1"
    desk.post("settled", delivery="reply:c1:k", outcome="sent", messages=[9])
    assert desk.tags[-2:] == ["ack", "turn_settled"]


@pytest.mark.parametrize("order", [("T9", "T1"), ("T1", "T1")])
def test_an_answer_that_nobody_waits_for_does_nothing(order: tuple[str, str]) -> None:
    desk = asked(Desk(AUTO))
    for turn_id in order:
        desk.post("rewound", turn_id=turn_id, removed=1)
    assert len(desk.done(Wake)) == 1
    assert ("rewound", "unasked") in desk.rows


def test_nothing_left_marks_and_gives_the_budget_back() -> None:
    desk = asked(Desk(AUTO)).post("rewound", turn_id="T1", removed=0)
    assert [(str(mark.channel), mark.message) for mark in desk.done(React)] == [("dc/C1", "m1")]
    assert not desk.done(Wake)
    assert any(isinstance(signal, RefusalMarked) for signal in desk.signals)
    assert desk.state.streaks.auto_rewinds == 0
    assert desk.state.streaks.sheds == 0
    assert [labels for metric, labels in desk.counts if metric == "refusals"] == [("rewound",)]


def test_the_late_mark_is_the_one_of_the_turns_policy() -> None:
    desk = asked(Desk({"refusal": {**AUTO["refusal"], "mark": "stop"}}))
    desk.runtime.reload(Desk({"refusal": {"mark": "other"}}).config)
    desk.post("rewound", turn_id="T1", removed=0)
    assert desk.done(React)[0].mark == "stop"


def test_nothing_left_of_a_turn_without_a_message_marks_nothing() -> None:
    desk = Desk(AUTO).post("wake", reason="timer").post("turn_opened", turn_id="T1").post("refused", turn_id="T1")
    desk.post("rewound", turn_id="T1", removed=0)
    assert not desk.done(React)
    assert not desk.done(Wake)


def test_nothing_left_ends_an_unstick_with_mark_and_report() -> None:
    desk = (
        Desk()
        .post("inbound", channel="dc/C1", message="m1")
        .post("turn_opened", turn_id="T0")
        .post("refused", turn_id="T0")
    )
    desk.post("unstick", report_to="dc/C9").post("turn_opened", turn_id="T1").post("refused", turn_id="T1")
    desk.post("rewound", turn_id="T1", removed=0)
    assert [mark.message for mark in desk.done(React)] == ["m1", "m1"]
    report = desk.done(Send)[-1]
    assert (report.purpose, str(report.channel)) == ("report", "dc/C9")
    assert report.text == "[unstick] gave up: nothing was left to remove, 1 of 3 rewinds used"
    assert desk.state.unsticking is None


def test_nothing_left_for_the_breaker_is_only_logged() -> None:
    desk = Desk()
    for number in range(3):
        desk.post("turn_opened", turn_id=f"T{number}", channel="dc/C1", message=f"m{number}")
        desk.post("failed", turn_id=f"T{number}", error="invalid_request", status=400)
    desk.post("rewound", turn_id="T2", removed=0)
    assert not desk.done(React)
    assert not desk.done(Wake)
    assert (desk.state.streaks.sheds, desk.state.streaks.breaker_rewinds) == (0, 1)


def test_an_unstick_waits_for_a_rewind() -> None:
    desk = asked(Desk(AUTO)).post("unstick")
    assert any(isinstance(signal, UnstickRefused) for signal in desk.signals)
    assert ("unstick", "F2-rewind") in desk.rows
    assert not desk.done(Wake)


def test_a_report_that_has_no_place_is_told() -> None:
    desk = Desk().post("unstick", report_to="?/C9").post("turn_opened", turn_id="T1").post("refused", turn_id="T1")
    desk.post("rewound", turn_id="T1", removed=0)
    assert not desk.done(Send)
    assert any(isinstance(signal, SpeechUnrouted) for signal in desk.signals)


def test_a_report_goes_to_the_one_channel_of_a_bare_id() -> None:
    desk = Desk().post("channel_registered", channel="dc/C9").post("unstick", report_to="?/C9")
    desk.post("turn_opened", turn_id="T1").post("stopped", text="x", turn_id="T1").advance(2500)
    assert [str(send.channel) for send in desk.done(Send)] == ["dc/C9"]


def test_rewinds_that_are_never_answered_are_bounded() -> None:
    desk = Desk({"refusal": {"auto_rewind": True, "max_rewinds": 10}, "limits": {"open_turns": 2}})
    for number in range(4):
        desk.post("turn_opened", turn_id=f"T{number}", channel="dc/C1", message="m").post(
            "refused", turn_id=f"T{number}"
        )
    assert [shed.turn_id for shed in desk.state.shed] == ["T2", "T3"]
    assert [signal.limit for signal in desk.signals if isinstance(signal, LimitReached)] == ["open_turns"] * 2


@pytest.mark.parametrize("removed", [0, 1])
def test_a_restart_on_either_side_of_the_hosts_answer(removed: int) -> None:
    """The shed turn, its retry's wake and the mark survive; the rewind is asked again under its own id."""
    desk = asked(Desk(AUTO)).crash()
    assert [shed.turn_id for shed in desk.state.shed] == ["T1"]
    assert len(desk.done(Rewind)) == 1
    desk.post("rewound", turn_id="T1", removed=removed).crash()
    assert len(desk.done(Wake)) == removed
    assert len(desk.done(React)) == 1 - removed
    assert not desk.state.shed
    desk.post("rewound", turn_id="T1", removed=1)
    assert len(desk.done(Wake)) == removed
    assert [(str(wake.channel), wake.message) for wake in desk.state.wakes] == [("dc/C1", "m1")] * removed


def test_a_restart_between_the_rounds_of_an_unstick() -> None:
    desk = Desk().post("unstick", max_rewinds=1, report_to="dc/C9").crash()
    desk.post("turn_opened", turn_id="T1").post("refused", turn_id="T1").crash().post(
        "rewound", turn_id="T1", removed=1
    ).crash()
    desk.post("turn_opened", turn_id="T2").post("refused", turn_id="T2").crash()
    assert [send.text for send in desk.done(Send)] == ["[unstick] gave up, 1 of 1 rewinds used"]
