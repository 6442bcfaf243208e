"""What no well-behaved host does, and no other owner sends: it changes nothing, and raises nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.answers.desk import Desk
from turnkeeper.engine.config import Policy
from turnkeeper.engine.ids import ChannelRef, turn_at
from turnkeeper.engine.protocol import Answers, At, FailedHere, Opened, Quote, RefusedHere
from turnkeeper.engine.turn.state import Phase, open_turn
from turnkeeper.engine.turn.step import step

AT = At(0, Policy())


@pytest.mark.parametrize("phase", ["closing", "settling", "settled"])
@pytest.mark.parametrize("told", [RefusedHere("x", 1, None), FailedHere("x", 1, None)])
def test_a_turn_that_is_not_open_is_neither_refused_nor_failed(phase: Phase, told: RefusedHere | FailedHere) -> None:
    pair = Answers(ChannelRef("dc", "C1"), "m1")
    opened = step(
        open_turn(turn_at("c1", "T1"), AT.policy, 0), Opened("primary", pair, pair.channel, Quote()), AT
    ).state
    assert opened is not None
    done = step(replace(opened, phase=phase), told, AT)
    assert (done.commands, done.tells) == ((), ())


def test_a_bare_id_is_not_registered() -> None:
    desk = Desk().post("channel_registered", channel="?/X").post("inbound", channel="?/X", message="m1")
    assert desk.runtime.inspect("c1")["channels"] == {}


def test_the_newest_word_on_a_channel_counts() -> None:
    desk = (
        Desk()
        .post("channel_registered", channel="dc/C1", inbound_only=True)
        .post("channel_registered", channel="dc/C1", open=False)
    )
    seen = desk.runtime.inspect("c1")["channels"]["dc/C1"]
    assert (seen["open"], seen["inbound_only"]) == (False, False)


def test_a_push_neither_closes_nor_opens_a_known_channel() -> None:
    desk = Desk().post("channel_registered", channel="dc/C1").post("channel_registered", channel="dc/C2", open=False)
    for channel in ("dc/C1", "dc/C2"):
        desk.post("inbound", channel=channel, message="m1", lane="push").post("inbound", channel=channel, message="m2")
    seen = desk.runtime.inspect("c1")["channels"]
    assert (seen["dc/C1"]["open"], seen["dc/C2"]["open"]) == (True, False)


def test_what_is_over_stays_over() -> None:
    """Acceptances, resumes and rewinds that nothing waits for."""
    desk = Desk().post("accepted", server="dc", event_id="e1").post("resumed").post("rewound", turn_id="T9", removed=3)
    desk.post("quiesced").post("quiesced").post("resumed").post(
        "speech_moved", turn_id="T9", channel="dc/C1", cause="re_pin"
    )
    assert desk.platform.performed == []


def test_the_last_of_many_servers_is_not_guessed() -> None:
    """One id on two servers; one is removed: what was ambiguous before resolves only from then on."""
    desk = Desk().post("channel_registered", channel="s1/X").post("channel_registered", channel="s2/X")
    desk.post("turn_opened", turn_id="T1", channel="?/X", message="m1").post("server_removed", server="s2")
    desk.post("turn_opened", turn_id="T2", channel="?/X", message="m1")
    seen = desk.runtime.inspect("c1")["turns"]
    assert (seen["T1"]["channel"], seen["T2"]["channel"]) == ("?/X", "s1/X")
