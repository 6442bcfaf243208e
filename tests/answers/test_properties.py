"""What must hold whatever comes in: merges, keys, the pair, the anchor, the mark."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.answers.desk import Desk
from turnkeeper.engine.chat.inbound import event_key
from turnkeeper.engine.chat.state import Waking
from turnkeeper.engine.chat.wakes import _shortened, merged
from turnkeeper.engine.commands import React, Record, Send
from turnkeeper.engine.ids import ChannelRef
from turnkeeper.engine.protocol import Answers

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PLACES = [None, ChannelRef("dc", "C1"), ChannelRef("dc", "C2"), ChannelRef("tg", "C1"), ChannelRef("dc", "C1", "t")]
WAKES = st.builds(
    Waking,
    st.sampled_from(["message", "timer", "auto_rewind"]),
    st.just(1),
    channel=st.sampled_from(PLACES),
    message=st.sampled_from([None, 1, "1", 2, "m"]),
    addressed=st.booleans(),
)


def core(answers: Answers) -> tuple[ChannelRef | None, str | None]:
    return answers.channel, None if answers.message is None else str(answers.message)


@QUICK
@given(st.lists(WAKES, max_size=6).flatmap(lambda wakes: st.tuples(st.just(wakes), st.permutations(wakes))))
def test_the_message_does_not_depend_on_the_order(both: tuple[list[Waking], list[Waking]]) -> None:
    one, other = (merged(tuple(wakes)).answers for wakes in both)
    assert core(one)[1] == core(other)[1]
    if one.message is not None:
        assert one.channel == other.channel


@QUICK
@given(st.lists(WAKES, max_size=6))
def test_a_message_is_what_every_wake_names(wakes: list[Waking]) -> None:
    done = merged(tuple(wakes))
    if done.answers.message is not None:
        assert {(wake.channel, str(wake.message)) for wake in wakes} == {core(done.answers)}
    assert done.addressed == any(wake.addressed and wake.channel is not None for wake in wakes)


@QUICK
@given(st.lists(WAKES, min_size=2, max_size=6))
def test_merging_the_two_oldest_first_changes_nothing(wakes: list[Waking]) -> None:
    whole, halved = merged(tuple(wakes)), merged(_shortened(tuple(wakes)))
    assert core(halved.answers) == core(whole.answers)
    assert halved.addressed == whole.addressed


SERVERS = st.one_of(st.none(), st.text(alphabet="a:%?", max_size=4))


@QUICK
@given(
    SERVERS, st.text(alphabet="a:%?", min_size=1, max_size=4), SERVERS, st.text(alphabet="a:%?", min_size=1, max_size=4)
)
def test_a_parked_key_never_collides(server: str | None, event_id: str, other: str | None, event: str) -> None:
    assert (event_key(server, event_id) == event_key(other, event)) == ((server, event_id) == (other, event))


CHANNELS = st.sampled_from(["dc/C1", "dc/C2", "dc/C1#t", "tg/C1", "?/C1", None])
TURNS = st.sampled_from(["T1", "T2", "T3", "T4"])


def fields(**kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(kinds)


def step(event: str, /, **kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(event), fields(**kinds))


STEPS = st.one_of(
    step(
        "inbound",
        channel=CHANNELS,
        message=st.sampled_from([None, 1, 2, 3]),
        kind=st.sampled_from(["message", "message", "edit", "reaction", "deletion"]),
        lane=st.sampled_from(["channel", "push"]),
        addressed=st.booleans(),
        first_view=st.booleans(),
        event_id=st.sampled_from([None, "e1", "e2"]),
        delivery=st.sampled_from(["live", "live", "debounced", "assembled"]),
    ),
    step("accepted", server=st.sampled_from(["dc", "tg"]), event_id=st.sampled_from(["e1", "e2"]), ok=st.booleans()),
    step("wake", reason=st.just("timer"), channel=CHANNELS),
    step("turn_opened", turn_id=TURNS, source=st.sampled_from(["primary", "primary", "system", "subagent"])),
    step("turn_opened", turn_id=TURNS, channel=CHANNELS, message=st.sampled_from([1, 2])),
    step("turn_continued", turn_id=TURNS, cause=st.just("budget")),
    step(
        "input_folded",
        turn_id=st.just("F"),
        source=st.just("autosteer"),
        channel=CHANNELS,
        message=st.sampled_from([1, 2]),
    ),
    step(
        "speech_moved",
        turn_id=TURNS,
        channel=st.sampled_from(["dc/C3", "?/C1"]),
        cause=st.sampled_from(["re_pin", "channel_open"]),
    ),
    step("refused", turn_id=TURNS),
    step("failed", turn_id=TURNS, error=st.just("invalid_request"), status=st.sampled_from([400, 500])),
    step("stopped", turn_id=TURNS, text=st.sampled_from(["", "x"])),
    step("reply", call_id=st.sampled_from(["k1", "k2"]), turn_id=TURNS, text=st.just("r")),
    step("interrupted"),
    step("lost", reason=st.just("x")),
    step("unstick", max_rewinds=st.sampled_from([1, 2]), report_to=CHANNELS),
    step("rewound", turn_id=TURNS, removed=st.sampled_from([0, 1])),
    step("quiesced"),
    step("resumed"),
    step("server_removed", server=st.sampled_from(["dc", "tg"])),
    step("channel_registered", channel=st.sampled_from(["dc/C1", "tg/C1", "dc/C2"])),
    step("advance"),
    step("crash"),
)
CONFIGS = st.sampled_from(
    [
        {},
        {"refusal": {"auto_rewind": True, "max_rewinds": 1}},
        {"refusal": {"auto_rewind": True}, "speech": {"fallback": "latest-inbound"}},
        {"limits": {"wakes": 2, "parked": 1, "occurrences": 2}, "breaker": {"failures": 1}},
    ]
)


class Witness:
    """Remembers what was true, to see that it stays so."""

    def __init__(self) -> None:
        self.pairs: dict[str, Answers] = {}
        self.seq = 0
        self.removed = False

    def look(self, desk: Desk, kind: str) -> None:
        state = desk.state
        for turn_id, turn in state.turns.items():
            assert self.pairs.setdefault(turn_id, turn.answers) == turn.answers
            if turn.source == "subagent":
                assert turn.answers == Answers()
        seq = state.anchor.seq if state.anchor is not None else 0
        assert seq >= self.seq or kind == "server_removed" or self.removed
        self.removed = self.removed or kind == "server_removed"
        self.seq = max(seq, self.seq)
        if state.anchor is not None:
            assert state.anchor.channel.server is not None
        assert len(state.wakes) <= desk.config.limits.wakes
        assert not any(wake.parked for wake in state.wakes) or state.quiesced
        self.commands(desk)

    def commands(self, desk: Desk) -> None:
        for mark in desk.done(React):
            pair = self.pairs[mark.delivery.rpartition(":")[2]]
            assert (mark.channel, mark.message) == (pair.channel, pair.message)
        for record in desk.done(Record):
            pair = self.pairs[record.turn_id]
            assert record.locus is None or record.locus == pair.channel
        for send in desk.done(Send):
            assert send.channel.server is not None
            pair = self.pairs[send.turn_id] if send.turn_id in self.pairs else Answers()
            if send.quote is not None and send.turn_id in self.pairs:
                assert (send.channel, send.quote) == (pair.channel, pair.message)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CONFIGS, st.lists(STEPS, max_size=25))
def test_pair_anchor_and_mark_hold_whatever_happens(
    config: dict[str, Any], steps: list[tuple[str, dict[str, Any]]]
) -> None:
    desk, witness = Desk(config), Witness()
    for kind, given_fields in steps:
        if kind == "advance":
            desk.advance(3000)
        elif kind == "crash":
            desk.restart()
        else:
            desk.post(kind, **{name: value for name, value in given_fields.items() if value is not None})
        witness.look(desk, kind)
