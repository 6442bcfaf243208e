"""Counting: from real runs of the real rules, exactly once, never in a replay."""

import re
from threading import Thread

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.metrics.conftest import INCIDENT, Play
from turnkeeper.engine.cell import Cell, Run
from turnkeeper.engine.config import Config, as_policy
from turnkeeper.engine.errors import ConfigError, DecodeError, InvariantViolated
from turnkeeper.engine.events import Activity, Stopped, TurnOpened
from turnkeeper.engine.journal import Body, Record
from turnkeeper.engine.protocol import Count
from turnkeeper.engine.recovery import record_of
from turnkeeper.engine.signals import LimitReached, Recovered
from turnkeeper.engine.transcript import view
from turnkeeper.metrics.instruments import Instruments
from turnkeeper.metrics.probe import RegistryProbe


def record(seq: int = 1, at_ms: int = 0, body: Body | None = None) -> Record:
    return Record(seq, at_ms, 1, body or Body(event=Activity("c1", "test")), "ok", 0)


def run(*counts: Count, **fields: object) -> Run:
    return Run(counts=list(counts), **fields)  # type: ignore[arg-type]


class Bench:
    """A cell whose runs are observed."""

    def __init__(self, config: Config | None = None) -> None:
        self.cell = Cell()
        self.cell.apply(Body(configured=as_policy(config or Config())), 0, 0)
        self.probe = RegistryProbe()
        self.seq = 0

    def post(self, body: Body, at_ms: int = 0) -> Run:
        self.seq += 1
        done = self.cell.apply(body, at_ms, self.seq)
        self.probe.observe(record_of(self.seq, at_ms, body, done), done)
        return done


def test_the_incident_in_numbers(play: Play) -> None:
    ran = play(INCIDENT)
    assert ran['turnkeeper_events_total{type="turn_opened"}'] == 1
    assert ran['turnkeeper_events_total{type="reply"}'] == 1
    assert ran['turnkeeper_events_total{type="settled"}'] == 1
    assert ran['turnkeeper_replies_total{owner="proven-fold",interim="false"}'] == 1
    assert ran['turnkeeper_fold_replies_attributed_total{source="autosteer"}'] == 1
    assert ran['turnkeeper_turns_settled_total{outcome="final-reply"}'] == 1
    assert ran['turnkeeper_deliveries_total{purpose="reply",outcome="sent"}'] == 1
    assert ran['turnkeeper_stop_texts_total{result="suppressed-different"}'] == 1
    assert ran['turnkeeper_quotes_total{event="reserved"}'] == 1
    assert ran['turnkeeper_quotes_total{event="spent"}'] == 1
    assert ran['turnkeeper_inputs_total{state="resolved"}'] == 2
    assert ran['turnkeeper_late_then_rescued_total{source="autosteer"}'] == 0
    assert ran["turnkeeper_open_turns"] == 0
    assert ran["turnkeeper_deliveries_in_flight"] == 0


def test_without_the_proof_the_signature_of_the_incident_is_counted(play: Play) -> None:
    ran = play(INCIDENT, {"attribution": {"fold_proof": "off"}})
    assert ran['turnkeeper_late_then_rescued_total{source="autosteer"}'] == 1
    assert ran['turnkeeper_late_replies_total{source="autosteer"}'] == 1
    assert ran['turnkeeper_replies_total{owner="late",interim="false"}'] == 1
    assert ran['turnkeeper_rescues_total{kind="consumed-rescue"}'] == 1
    assert ran['turnkeeper_deliveries_total{purpose="rescue",outcome="sent"}'] == 1
    assert ran['turnkeeper_turns_settled_total{outcome="consumed-rescue"}'] == 1


def test_a_crash_counts_nothing_twice(play: Play) -> None:
    """Replay is not observed: what was counted before the crash stays as it was."""
    ran = play([*INCIDENT, {"crash": True, "down_ms": 1000}, {"activity": {"cause": "hook"}}])
    assert ran['turnkeeper_events_total{type="turn_opened"}'] == 1
    assert ran['turnkeeper_events_total{type="activity"}'] == 1
    assert ran['turnkeeper_turns_settled_total{outcome="final-reply"}'] == 1


def test_open_turns_and_flights_are_seen_while_they_last(play: Play) -> None:
    ran = play([*INCIDENT[:3], INCIDENT[3] | {"deliver": "hold"}])
    assert ran["turnkeeper_open_turns"] == 1
    assert ran["turnkeeper_deliveries_in_flight"] == 1


def test_durations_come_from_the_records(play: Play) -> None:
    """A reply that is settled after 3 s, with the end of its turn waiting for it."""
    ran = play(
        [
            {"turn_opened": {"turn_id": "P", "message": 6406}},
            {"reply": {"call_id": "k1", "turn_id": "P", "text": "hi"}, "deliver": "hold"},
            {"stopped": {"text": ""}},
            {"advance": 3000},
            {"settle": {"call_id": "k1", "outcome": "sent"}},
        ]
    )
    assert ran["turnkeeper_delivery_seconds_count"] == 1
    assert ran["turnkeeper_delivery_seconds_sum"] == 3
    assert ran['turnkeeper_delivery_seconds_bucket{le="2.5"}'] == 0
    assert ran['turnkeeper_delivery_seconds_bucket{le="5.0"}'] == 1
    assert ran['turnkeeper_delivery_seconds_bucket{le="+Inf"}'] == 1
    assert ran["turnkeeper_turn_seconds_sum"] == 3
    assert ran["turnkeeper_finalization_wait_seconds_count"] == 1
    assert ran["turnkeeper_finalization_wait_seconds_sum"] == 1, (
        "Stop's grace ended after 2 s, the reply settled after 3"
    )


def test_each_attempt_is_timed_on_its_own(play: Play) -> None:
    ran = play(
        [
            {"turn_opened": {"turn_id": "P", "message": 1}},
            {"reply": {"call_id": "k1", "turn_id": "P", "text": "hi"}, "deliver": "fail"},
            {"advance": 10_000},
        ],
        {"delivery": {"jitter_percent": 0}},
    )
    assert ran["turnkeeper_delivery_seconds_count"] == 2
    assert ran['turnkeeper_deliveries_total{purpose="reply",outcome="sent"}'] == 1
    assert ran["turnkeeper_deliveries_in_flight"] == 0


def test_what_nobody_settles_is_in_flight_no_longer(play: Play) -> None:
    ran = play(
        [
            {"turn_opened": {"turn_id": "P", "message": 1}},
            {"reply": {"call_id": "k1", "turn_id": "P", "text": "hi"}, "deliver": "hold"},
            {"advance": 60_000},
        ]
    )
    assert ran["turnkeeper_deliveries_in_flight"] == 0
    assert ran["turnkeeper_delivery_seconds_count"] == 0
    assert ran['turnkeeper_deliveries_total{purpose="reply",outcome="unknown"}'] == 1


def test_a_turn_that_is_refused_at_the_door_is_not_open(play: Play) -> None:
    opened = [{"turn_opened": {"turn_id": turn, "message": 1}} for turn in ("P", "Q", "P")]
    ran = play(opened, {"limits": {"open_turns": 1}})
    assert ran["turnkeeper_open_turns"] == 1
    assert ran['turnkeeper_limit_reached_total{limit="open_turns"}'] == 1
    assert ran['turnkeeper_events_total{type="turn_opened"}'] == 3


def test_an_event_that_is_set_aside_counts_as_that_and_as_nothing_else() -> None:
    """The step meets a state that no rule makes; the cell undoes the run."""
    bench = Bench()
    bench.post(Body(event=TurnOpened("c1", "P", message=1)))
    owner = next(owner for owner in bench.cell.owners.values() if owner.address.kind == "chat")
    sound, owner.state = owner.state, object()
    assert bench.post(Body(event=Stopped("c1", "bye"))).error is not None
    owner.state = sound
    assert bench.probe.sample('turnkeeper_set_aside_total{error="AttributeError"}') == 1
    assert bench.probe.sample('turnkeeper_events_total{type="stopped"}') == 1
    assert bench.probe.sample("turnkeeper_open_turns") == 1


def test_an_error_class_that_no_list_names_has_one_label() -> None:
    probe = RegistryProbe()
    probe.observe(record(), run(Count("set_aside", ("SomebodysOwnError",))))
    assert probe.sample('turnkeeper_set_aside_total{error="unlisted"}') == 1


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (Count("replyes", ("late", "true")), "count replyes('late', 'true') names no metric; known: events, replies"),
        (Count("replies", ("late",)), "count replies('late',): expected 2 label values (owner, interim)"),
        (Count("replies", ("latest", "true")), "owner is 'latest'; expected one of echoed-open, proven-fold, late"),
        (Count("speech_unrouted", ("c1",)), "expected 0 label values (none)"),
    ],
)
def test_a_count_that_no_list_has_is_a_bug(count: Count, said: str) -> None:
    """It raises in tests; in production it is counted, and nothing else is lost."""
    with pytest.raises(InvariantViolated) as caught:
        RegistryProbe().observe(record(), run(count))
    assert said in str(caught.value)
    registry = CollectorRegistry()
    Instruments(registry).observe(record(), run(count, Count("quotes", ("spent",))))
    assert registry.get_sample_value("turnkeeper_invariant_violations_total", {"invariant": "closed_labels"}) == 1
    assert registry.get_sample_value("turnkeeper_quotes_total", {"event": "spent"}) == 1


def test_broken_invariants_are_counted_by_name() -> None:
    registry = CollectorRegistry()
    Instruments(registry).observe(record(), run(violated=["one_terminal", "a_new_one"]))
    assert registry.get_sample_value("turnkeeper_invariant_violations_total", {"invariant": "one_terminal"}) == 1
    assert registry.get_sample_value("turnkeeper_invariant_violations_total", {"invariant": "unlisted"}) == 1
    with pytest.raises(InvariantViolated, match="'a_new_one' is not listed"):
        RegistryProbe().observe(record(), run(violated=["a_new_one"]))


def test_a_restart_brings_its_open_turns_along() -> None:
    probe = RegistryProbe()
    found = Recovered(events=9, chats=2, open_turns=3, unknown=0, down_ms=10)
    probe.observe(record(), run(signals=[found]))
    assert probe.sample("turnkeeper_open_turns") == 3


def test_limits_that_decide_outside_a_run_are_counted_by_whoever_decides() -> None:
    probe = RegistryProbe()
    probe.instruments.count("limit_reached", "ingress_high")
    probe.observe(record(), run(signals=[LimitReached(chat="c1", limit="ledger")]))
    assert probe.sample('turnkeeper_limit_reached_total{limit="ingress_high"}') == 1
    assert probe.sample('turnkeeper_limit_reached_total{limit="ledger"}') == 1


def test_time_spent_is_a_histogram_in_seconds() -> None:
    probe = RegistryProbe()
    for spent_ns in (10_000, 60_000, 2_000_000_000, -5):
        probe.instruments.observe(record(), run(), spent_ns)
    assert probe.sample("turnkeeper_event_seconds_count") == 4
    assert probe.sample('turnkeeper_event_seconds_bucket{le="2.5e-05"}') == 2, "a clock set back counts as no time"
    assert probe.sample('turnkeeper_event_seconds_bucket{le="0.0001"}') == 3
    assert probe.sample('turnkeeper_event_seconds_bucket{le="1.0"}') == 3
    assert probe.sample("turnkeeper_event_seconds_sum") == pytest.approx(2.00007)


def test_gauges_are_set_or_read_when_asked() -> None:
    probe = RegistryProbe()
    probe.instruments.set("config_last_reload_successful", 0)
    awake = [3]
    probe.instruments.watch("live_actors", lambda: awake[0], "chat")
    awake[0] = 4
    assert probe.sample("turnkeeper_config_last_reload_successful") == 0
    assert probe.sample('turnkeeper_live_actors{kind="chat"}') == 4
    assert probe.sample('turnkeeper_live_actors{kind="turn"}') == 0
    with pytest.raises(InvariantViolated, match=r"gauge live_actors\('user',\) does not exist; known: open_turns"):
        probe.instruments.set("live_actors", 1, "user")


def test_a_prompt_view_is_counted_by_its_report() -> None:
    probe = RegistryProbe()
    counts = dict.fromkeys(view.REASONS, 0) | {"kept": 4, "receipt": 2, "e1": 1}
    probe.instruments.prompt_built(view.Report(counts, 120))
    probe.instruments.prompt_built(view.prompt_view([]).report)
    assert probe.sample('turnkeeper_prompts_total{result="cleaned"}') == 1
    assert probe.sample('turnkeeper_prompts_total{result="clean"}') == 1
    assert probe.sample('turnkeeper_prompt_messages_total{reason="kept"}') == 4
    assert probe.sample('turnkeeper_prompt_messages_total{reason="receipt"}') == 2


def test_a_registry_has_the_metrics_once() -> None:
    """A second engine in one process gets the same instruments, or a registry of its own, never an exception later."""
    registry = CollectorRegistry()
    first = Instruments.on(registry)
    assert Instruments.on(registry) is first
    with pytest.raises(ConfigError, match=r"registry: Duplicated timeseries .* take Instruments\.on\(registry\)"):
        Instruments(registry)
    assert Instruments.on(CollectorRegistry()) is not first


def test_counting_from_many_threads_loses_nothing() -> None:
    probe = RegistryProbe()

    def count() -> None:
        for _ in range(2_000):
            probe.observe(record(), run(Count("quotes", ("spent",))))
            probe.instruments.count("limit_reached", "ingress_high")

    threads = [Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert b"turnkeeper_quotes_total" in generate_latest(probe.registry)
        threads[0].join(0.01)
    assert probe.sample('turnkeeper_quotes_total{event="spent"}') == 8_000
    assert probe.sample('turnkeeper_limit_reached_total{limit="ingress_high"}') == 8_000


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("turnkeeper_turn_settled_total", "'turnkeeper_turn_settled_total' is no metric; did you mean"),
        ("zzz", "'zzz' is no metric; see docs/METRICS.md"),
        ('turnkeeper_turns_settled_total{out="a"}', "turnkeeper_turns_settled_total has the labels outcome; found out"),
        ('turnkeeper_open_turns{kind="a"}', "turnkeeper_open_turns has the labels none; found kind"),
    ],
)
def test_a_sample_that_cannot_be_is_told(written: str, told: str) -> None:
    """0 of it would be true whatever happens."""
    with pytest.raises(DecodeError, match=re.escape(told)):
        RegistryProbe().sample(written)


def test_a_label_value_that_nothing_counted_yet_is_zero() -> None:
    assert not RegistryProbe().sample('turnkeeper_replies_total{owner="late",interim="true"}')
