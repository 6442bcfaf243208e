"""A state machine over the cell: whatever is done in whatever order, every invariant holds, and so does a crash."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from turnkeeper.engine.lab.simulation.player import Player
from turnkeeper.engine.lab.simulator import finish

TEXTS = st.sampled_from(["Done.", "Done. ", "On it.", "Look", ""])
MOODS = st.sampled_from(
    [
        None,
        None,
        "hold",
        "unknown",
        "fail",
        "fail-permanent",
        {"fail": {"retry_after_ms": 500}},
        {"fail": {"reason": "format"}},
    ]
)
SPANS = st.sampled_from([0, 1, 500, 2000, 5000, 20_000, 60_000, 700_000])
FOLDS = st.sampled_from(["autosteer", "edit-fold", "inject", "system"])


class Conversation(RuleBasedStateMachine):
    """One chat of users, an agent, a platform and a process."""

    turns = Bundle("turns")
    inputs = Bundle("inputs")
    calls = Bundle("calls")
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.player = Player({}, paranoid=True)
        self.made = 0

    def number(self) -> int:
        self.made += 1
        return self.made

    def play(self, kind: str, mood: Any = None, **fields: Any) -> None:
        given = {name: value for name, value in fields.items() if value is not None}
        self.player.play({kind: given, **({} if mood is None else {"deliver": mood})})

    @initialize(target=turns)
    def begin(self) -> Any:
        self.play("turn_opened", turn_id="P0", message=1000)
        return "P0"

    @rule(target=turns, source=st.sampled_from(["primary", "primary", "system", "subagent"]))
    def open_turn(self, source: str) -> Any:
        turn_id = f"P{self.number()}"
        message = None if source == "subagent" else 1000 + self.made
        self.play("turn_opened", turn_id=turn_id, source=source, message=message)
        return turn_id

    @rule(target=inputs, source=FOLDS, into=st.none() | turns)
    def fold(self, source: str, into: str | None) -> Any:
        turn_id = f"F{self.number()}"
        self.play("input_folded", turn_id=turn_id, source=source, into=into, channel="tg/100", message=1000 + self.made)
        return turn_id

    @rule(
        target=calls,
        echoed=st.one_of(turns, inputs, st.none(), st.just("nobody")),
        consumed=st.none() | st.lists(st.one_of(turns, inputs), max_size=3),
        text=TEXTS,
        interim=st.sampled_from([None, None, True]),
        mood=MOODS,
    )
    def reply(self, **fields: Any) -> Any:
        mood = fields.pop("mood")
        said = {"call_id": f"k{self.number()}", "turn_id": fields["echoed"], "consumed_turn_ids": fields["consumed"]}
        said |= {"text": fields["text"], "interim": fields["interim"]}
        self.play("reply", mood, **said)
        return said

    @rule(said=calls, mood=MOODS)
    def same_call_again(self, said: dict[str, Any], mood: Any) -> None:
        self.play("reply", mood, **said)

    @rule(said=calls, mood=MOODS)
    def retry(self, said: dict[str, Any], mood: Any) -> None:
        self.play("reply", mood, **{**said, "call_id": f"k{self.number()}"})

    @rule(named=st.none() | turns, text=TEXTS, mood=MOODS)
    def stop(self, named: str | None, text: str, mood: Any) -> None:
        self.play("stopped", mood, turn_id=named, text=text)

    @rule(named=st.none() | turns, mood=MOODS)
    def preview(self, named: str | None, mood: Any) -> None:
        self.play("preview", mood, turn_id=named, text="Loo")

    @rule(read=st.one_of(turns, inputs))
    def see(self, read: str) -> None:
        self.play("input_seen", turn_id=read)

    @rule(event=st.sampled_from(["interrupted", "quiesced", "resumed"]))
    def say(self, event: str) -> None:
        self.play(event)

    @rule(turn=turns, event=st.sampled_from(["refused", "failed"]))
    def end_badly(self, turn: str, event: str) -> None:
        extra = {"error": "invalid_request", "status": 400} if event == "failed" else {}
        self.play(event, turn_id=turn, **extra)

    @rule()
    def lose(self) -> None:
        self.play("lost", reason="gone")

    @rule(target=sent)
    def look_at_what_is_held(self) -> Any:
        return multiple(*self.player.platform.held())

    @rule(delivery=consumes(sent), outcome=st.sampled_from(["sent", "failed", "unknown"]))
    def settle(self, delivery: str, outcome: str) -> None:
        self.play("settle", delivery=delivery, outcome=outcome)

    @rule(span=SPANS, mood=MOODS)
    def wait(self, span: int, mood: Any) -> None:
        self.player.play({"advance": span, **({} if mood is None else {"deliver": mood})})

    @rule(down_ms=SPANS, reconcile=st.none() | st.just({}))
    def crash(self, down_ms: int, reconcile: Any) -> None:
        self.player.play({"crash": True, "down_ms": down_ms, **({} if reconcile is None else {"reconcile": reconcile})})

    @invariant()
    def nothing_is_breached(self) -> None:
        # The same few words are said again and again here, so the oracle's own complaints are for the simulator.
        broken = [one for one in self.player.breaches if one.startswith(("invariant", "set aside", "replay"))]
        assert not broken, broken
        self.player.breaches.clear()
        self.player.judge()
        assert not self.player.breaches, self.player.breaches

    def teardown(self) -> None:
        finish(self.player)
        left = [
            one for one in self.player.breaches if one.startswith(("never", "ended", "audit", "invariant", "set aside"))
        ]
        assert not left, left


Conversation.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
TestConversation = Conversation.TestCase
