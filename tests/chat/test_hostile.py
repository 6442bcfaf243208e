"""Any events in any order, with deadlines of 0 and small limits: nothing raises, nobody spins, everything ends."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.channel.bench import Bench
from turnkeeper.engine.chat.state import ChatState
from turnkeeper.engine.commands import Edit, Preview, React, Send, TurnSettled
from turnkeeper.engine.ids import chat_at
from turnkeeper.engine.turn.state import TurnState, answers_of

TURNS, FOLDS, CALLS = st.sampled_from("PQR"), st.sampled_from("FGPQ"), st.sampled_from(["1", "2", "3", "4", "5"])
ECHOES = st.sampled_from(["P", "Q", "R", "F", "G", "", None, 5, ["P"]])
LISTS = st.sampled_from([None, [], "P", ["P"], ["Q", "F"], ["P", "F"], ["P", "Q"], ["P", "Q", "F", "G"], [None, "P"]])
TEXTS = st.sampled_from(["One", "Two", "One\n\nTwo", " ", ""])
PLACES = st.sampled_from(["tg/1", "tg/2", "?/1"])


def event(kind: str, **fields: Any) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    drawn = {name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in fields.items()}
    return st.tuples(st.just(kind), st.fixed_dictionaries(drawn))


EVENTS = st.one_of(
    event("turn_opened", turn_id=TURNS, source=st.sampled_from(["primary", "primary", "system", "subagent"]), channel=PLACES, message=st.integers(1, 3)),
    event("input_folded", turn_id=FOLDS, source=st.sampled_from(["autosteer", "edit-fold", "inject"]), channel=PLACES, message=st.integers(4, 6)),
    event("input_seen", turn_id=FOLDS),
    event("reply", call_id=CALLS, turn_id=ECHOES, consumed_turn_ids=LISTS, text=TEXTS, interim=st.booleans()),
    event("reply", call_id=CALLS, turn_id=ECHOES, consumed_turn_ids=LISTS, text=TEXTS, reply_in=PLACES),
    event("edit", call_id=CALLS, message=st.sampled_from([1, "7"]), text=TEXTS, turn_id=ECHOES),
    event("preview", turn_id=st.none() | TURNS, text=TEXTS),
    event("stopped", text=TEXTS, turn_id=st.none() | TURNS),
    event("question_opened", call_id=CALLS, turn_id=st.none() | TURNS),
    event("question_answered", call_id=CALLS),
    event("activity", cause="tool"),
    event("speech_moved", turn_id=TURNS, channel=PLACES, cause="re_pin"),
    event("refused", turn_id=TURNS),
    event("failed", turn_id=TURNS, error="x"),
    event("interrupted"),
    event("lost", reason="x"),
)  # fmt: skip
SETTLEMENTS = st.fixed_dictionaries(
    {
        "outcome": st.sampled_from(["sent", "sent", "failed", "unknown"]),
        "permanent": st.booleans(),
        "reason": st.sampled_from([None, "format", "quote_gone", "not_sent", "not_modified"]),
        "retry_after_ms": st.sampled_from([None, None, 0, -5, 3000, 10**15]),
        "parts_done": st.sampled_from([None, None, -1, 0, 1]),
        "attempt": st.sampled_from([None, 1, 2, 9]),
    }
)
ACTS = st.one_of(
    EVENTS.map(lambda drawn: ("post", drawn)),
    EVENTS.map(lambda drawn: ("post", drawn)),
    st.integers(0, 5).map(lambda which: ("hand", which)),
    st.tuples(st.integers(0, 5), SETTLEMENTS).map(lambda drawn: ("settle", drawn)),
    st.sampled_from([0, 1, 2000, 5000, 18_000, 60_000, 600_000]).map(lambda span: ("advance", span)),
    st.sampled_from([0, 5000, 4_000_000]).map(lambda span: ("recover", span)),
)
ZERO = {
    "stop_grace_ms": 0,
    "quiet_ms": 0,
    "retry_grace_ms": 0,
    "interrupt_grace_ms": 0,
    "drop_confirm_ms": 0,
    "question_max_ms": 0,
}
CONFIGS = st.fixed_dictionaries(
    {
        "timers": st.sampled_from([{}, ZERO, {"turn_idle_ms": 1, "turn_max_ms": 1}]),
        "delivery": st.sampled_from(
            [{}, {"retries": 0}, {"settle_timeout_ms": 1, "queue_timeout_ms": 1, "backoff_ms": [0]}, {"on_unknown": "resend"}]
        ),
        "finalize": st.sampled_from([{}, {"without_stop": True}, {"final_reply": "rescue-different"}]),
        "limits": st.sampled_from(
            [{}, {"ledger": 1, "tombstones": 0, "calls": 1, "contents": 1, "deliveries": 1, "receipts": 1, "settled_turns": 0, "outbox": 1}]
        ),
    }
)  # fmt: skip


def act(bench: Bench, kind: str, drawn: Any) -> None:
    out = [command for command in bench.commands if isinstance(command, Send | Edit | Preview | React)]
    if kind == "post":
        bench.post(drawn[0], **drawn[1])
    elif kind == "advance":
        bench.advance(drawn)
    elif kind == "recover":
        bench.recover(drawn)
    elif kind == "hand" and out:
        bench.hand(out[-1 - drawn % len(out)])
    elif kind == "settle" and out:
        which, fields = drawn
        bench.settle(out[-1 - which % len(out)], **fields)


def hand_all(bench: Bench) -> None:
    for command in tuple(bench.cell.pending.values()):
        if isinstance(command, Send | Edit | Preview | React):
            bench.hand(command)


@settings(max_examples=150, deadline=None)
@given(CONFIGS, st.booleans(), st.lists(ACTS, max_size=40))
def test_nothing_raises_nobody_spins_and_everything_ends(
    config: dict[str, Any], reconciles: bool, acts: list[tuple[str, Any]]
) -> None:
    bench = Bench(config, reconciles=reconciles)
    for kind, drawn in acts:
        act(bench, kind, drawn)
        due_ms = bench.cell.next_due_ms()
        assert due_ms is None or due_ms > bench.now_ms
    for _ in range(12):
        hand_all(bench)
        bench.advance(86_400_000)
    ended = Counter(command.turn_id for command in bench.done(TurnSettled))
    # An id that a limit of 0 tombstones made forget is a new one: it may be opened, and end, again.
    opened = Counter(drawn[1]["turn_id"] for kind, drawn in acts if kind == "post" and drawn[0] == "turn_opened")
    assert all(times <= (opened[turn_id] if config["limits"] else 1) for turn_id, times in ended.items())
    owner = bench.cell.owners.get(chat_at("c1"))
    if owner is None:
        return
    chat: ChatState = owner.state
    assert [turn.turn_id for turn in chat.turns.values() if turn.status != "settled"] == []
    assert [key for key, out in chat.outbound.items() if out.outcome == "in flight"] == []
    assert bench.cell.next_due_ms() is None
    for other in bench.cell.owners.values():
        if isinstance(other.state, TurnState):
            kept = {one.delivery for one in answers_of(other.state)} | {other.state.speaks}
            assert any(delivery in chat.outbound for delivery in kept), "a settled turn lives for nothing"
