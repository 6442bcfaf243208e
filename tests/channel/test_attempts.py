"""Attempts that cross: what a scenario's platform, which settles a second attempt at once, cannot show."""

from __future__ import annotations

from tests.channel.bench import Bench
from turnkeeper.engine.commands import Ack, Reconcile, Send, TurnSettled
from turnkeeper.engine.signals import LimitReached, ReactionFailed, SettlementContradicts


def replied(*, reconciles: bool = False, **config: dict[str, object]) -> tuple[Bench, Send]:
    """A turn with one reply that was handed over."""
    bench = Bench(config, reconciles=reconciles)
    bench.post("turn_opened", turn_id="P", channel="tg/100", message=6406).post("input_seen", turn_id="P")
    bench.post("reply", call_id="c1", turn_id="P", text="T1")
    (send,) = bench.done(Send)
    assert bench.hand(send)
    return bench, send


def test_an_attempt_that_arrived_while_a_later_one_is_with_the_host_settles_it_and_is_told() -> None:
    bench, first = replied(delivery={"on_unknown": "resend"})
    bench.settle(first, "unknown")
    second = bench.done(Send)[-1]
    assert (second.attempt, second.quote) == (2, 6406)
    assert bench.hand(second)
    bench.settle(first, "sent", messages=[9001])
    assert ("settlement", "overtaken-sent") in bench.rows
    assert [signal.row for signal in bench.signals if isinstance(signal, SettlementContradicts)] == ["overtaken-sent"]
    bench.settle(second, "sent", messages=[9002])
    assert bench.rows[-1] == ("settlement", "sent-again")
    assert [(ack.ok, ack.message) for ack in bench.done(Ack)] == [(True, 9001)]


def test_an_attempt_that_arrived_cancels_a_later_one_not_yet_handed_over() -> None:
    bench, first = replied(delivery={"on_unknown": "resend"})
    bench.settle(first, "unknown")
    second = bench.done(Send)[-1]
    bench.settle(first, "sent", messages=[9001])
    assert not bench.hand(second)
    assert bench.channel().out is None


def test_a_later_attempt_is_not_disturbed_by_what_an_earlier_one_failed_of() -> None:
    bench, first = replied(delivery={"on_unknown": "resend"})
    bench.settle(first, "unknown")
    second = bench.done(Send)[-1]
    assert bench.hand(second)
    bench.settle(first, "failed", permanent=True).settle(first, "unknown")
    assert bench.done(Ack) == []
    bench.settle(second, "unknown")
    assert [ack.error for ack in bench.done(Ack)] == ["unknown"]
    assert len(bench.done(Send)) == 2


def test_what_is_reconciled_as_not_sent_for_ever_fails_in_the_end() -> None:
    """Nothing that a turn waits for is without a bound (A5)."""
    day = 86_400_000
    timers: dict[str, object] = {"quiet_ms": day, "turn_idle_ms": day, "turn_max_ms": day}
    bench, _ = replied(reconciles=True, timers=timers)
    for _ in range(100):
        bench.advance(60_000)
        asked = bench.done(Reconcile)[-1]
        bench.post("settled", delivery=asked.delivery, attempt=asked.attempt, outcome="failed", reason="not_sent")
        if bench.done(Ack):
            break
        send = bench.done(Send)[-1]
        if not bench.hand(send):
            bench.advance(200_000)
            bench.hand(bench.done(Send)[-1])
    assert [ack.error for ack in bench.done(Ack)] == ["delivery failed: not_sent"]


def test_a_verdict_is_given_once_and_only_for_the_attempt_that_is_wanted() -> None:
    bench, send = replied()
    assert not bench.hand(send)
    bench.settle(send, "failed")
    assert not bench.hand(send)
    bench.advance(1000)
    again = bench.done(Send)[-1]
    assert again.attempt == 2
    assert bench.hand(again)
    bench.settle(again, "sent", messages=[1])
    assert not bench.hand(again)


def test_a_queued_rescue_whose_earlier_attempt_arrived_is_not_sent() -> None:
    bench, send = replied(delivery={"retries": 0}, timers={"retry_grace_ms": 0})
    bench.settle(send, "unknown").post("stopped", text="").advance(2000)
    assert bench.done(TurnSettled)[-1].delivered == "unknown"
    bench.settle(send, "failed")
    rescue = bench.done(Send)[-1]
    assert (rescue.purpose, rescue.text, rescue.quote) == ("rescue", "T1", 6406)
    assert bench.hand(rescue)
    bench.settle(rescue, "failed").settle(rescue, "sent", messages=[5])
    assert ("settlement", "failed-then-sent") in bench.rows
    assert len(bench.done(Send)) == 2


def test_only_ids_stay_of_a_send_that_is_unknown() -> None:
    bench, send = replied()
    bench.settle(send, "unknown")
    (kept,) = bench.channel().unknown.values()
    assert (kept.text, kept.files, kept.took) == ("", (), None)


def test_what_waits_too_long_at_a_restart_leaves_no_quote_behind() -> None:
    """The front ends last: the next one must not ask for a quote that it will never use."""
    bench, send = replied()
    bench.post("reply", call_id="c2", turn_id="P", text="T2").post(
        "turn_opened", turn_id="Q", channel="tg/100", message=7
    )
    bench.post("reply", call_id="c3", turn_id="Q", text="T3")
    bench.settle(send, "failed", retry_after_ms=5)
    bench.recover(3_600_001)
    assert [ack.error for ack in bench.done(Ack)] == ["delivery failed: too old"] * 3
    bench.post("reply", call_id="c4", turn_id="Q", text="T4").post("reply", call_id="c5", turn_id="P", text="T5")
    first = bench.done(Send)[-1]
    assert (first.text, first.quote) == ("T4", 7)
    bench.hand(first)
    bench.settle(first, "sent", messages=[1])
    assert (bench.done(Send)[-1].text, bench.done(Send)[-1].quote) == ("T5", 6406)


def test_a_send_that_left_the_unconfirmed_ones_is_not_handed_over_and_fails_in_the_queue() -> None:
    bench = Bench({"limits": {"unconfirmed": 1}, "timers": {"quiet_ms": 86_400_000}})
    bench.post("turn_opened", turn_id="P", channel="tg/1", message=1)
    bench.post("turn_opened", turn_id="Q", channel="tg/2", message=2)
    bench.post("reply", call_id="c1", turn_id="P", text="T1").post("reply", call_id="c2", turn_id="Q", text="T2")
    first, second = bench.done(Send)
    assert [signal.limit for signal in bench.signals if isinstance(signal, LimitReached)][-1] == "unconfirmed"
    assert not bench.hand(first)
    assert bench.hand(second)
    bench.settle(second, "sent", messages=[1]).advance(600_000)
    assert [(ack.call_id, ack.error) for ack in bench.done(Ack)] == [
        ("c2", None),
        ("c1", "delivery failed: queue timeout"),
    ]


def test_reactions_that_nobody_settles_are_bounded() -> None:
    bench = Bench({"limits": {"outbox": 1}, "delivery": {"settle_timeout_ms": 0}})
    for number, turn in enumerate("PQ"):
        bench.post("turn_opened", turn_id=turn, channel="tg/100", message=number).post("refused", turn_id=turn)
    assert len(bench.channel().loose) == 1
    assert [signal.why for signal in bench.signals if isinstance(signal, ReactionFailed)] == ["outbox full"]
