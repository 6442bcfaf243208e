"""Every row of the tables of rules A: facts that it decides, a scenario that it decides in; and tables as such."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from turnkeeper.engine.channel import tables as s
from turnkeeper.engine.channel.tables import Cause, Known, Told
from turnkeeper.engine.chat import tables as c
from turnkeeper.engine.chat.tables import Echo, Number, Prior
from turnkeeper.engine.errors import TableError
from turnkeeper.engine.lab.runner import run_scenario
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.engine.table import ANY, DecisionTable, Row
from turnkeeper.engine.turn import tables as t
from turnkeeper.engine.turn.tables import Failure, Stop
from turnkeeper.metrics.probe import RegistryProbe

SCENARIOS = Path(__file__).parents[1] / "scenarios"
TABLES: list[DecisionTable[Any]] = [
    c.ATTRIBUTION, c.CALL, c.SAMENESS, c.STOP, c.DROP, t.DELIVERY, t.FINAL, s.SETTLEMENT, s.FAILURE,
]  # fmt: skip
Y, N = True, False
ZERO, ONE, MANY = Number.ZERO, Number.ONE, Number.MANY
NO, TRANSIENT, PERMANENT = Failure.NO, Failure.TRANSIENT, Failure.PERMANENT
EMPTY, CONSUMING, INTERIM, DIFFERS = Stop.EMPTY, Stop.CONSUMING, Stop.INTERIM, Stop.DIFFERS

# fmt: off
DECIDED: list[tuple[DecisionTable[Any], msgspec.Struct, str, str]] = [
    (c.ATTRIBUTION, c.AttributionFacts(Echo.OPEN, N, MANY, MANY, "off"), "echoed-open", "ECHOED"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.FOLD, Y, ONE, MANY, "consumed"), "proven-fold", "CONSUMED"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.FOLD, Y, ONE, MANY, "off"), "late-fold", "LATE"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.FOLD, Y, MANY, MANY, "consumed"), "late-fold", "LATE"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.FOLD, Y, ZERO, ONE, "consumed"), "late-fold", "LATE"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.FOLD, N, ONE, ONE, "consumed"), "late-fold", "LATE"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.FOLD_GONE, Y, ONE, ONE, "consumed"), "late-fold", "LATE"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.OTHER, Y, ONE, ONE, "consumed"), "late-other", "LATE"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.NONE, N, ZERO, ONE, "consumed"), "only-open", "ONLY"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.NONE, Y, ONE, MANY, "consumed"), "orphan", "NOBODY"),
    (c.ATTRIBUTION, c.AttributionFacts(Echo.NONE, N, ZERO, ZERO, "consumed"), "autonomous", "NOBODY"),
    (c.CALL, c.CallFacts(N, "sent"), "other-arguments", "MISUSE"),
    (c.CALL, c.CallFacts(Y, "in flight"), "in-flight", "JOIN"),
    (c.CALL, c.CallFacts(Y, "sent"), "sent", "REPLAY"),
    (c.CALL, c.CallFacts(Y, "failed"), "not-sent", "ERROR"),
    (c.CALL, c.CallFacts(Y, "unknown"), "not-sent", "ERROR"),
    (c.CALL, c.CallFacts(Y, "refused"), "not-sent", "ERROR"),
    (c.SAMENESS, c.SamenessFacts(Prior.NONE, Y), "new", "NEW"),
    (c.SAMENESS, c.SamenessFacts(Prior.IN_FLIGHT, Y), "newer", "NEW"),
    (c.SAMENESS, c.SamenessFacts(Prior.UNKNOWN, Y), "newer", "NEW"),
    (c.SAMENESS, c.SamenessFacts(Prior.IN_FLIGHT, N), "joined", "JOIN"),
    (c.SAMENESS, c.SamenessFacts(Prior.RECENT, N), "replayed", "REPLAY"),
    (c.SAMENESS, c.SamenessFacts(Prior.SPOKEN, N), "spoken", "REPLAY"),
    (c.SAMENESS, c.SamenessFacts(Prior.OLD, N), "old", "NEW"),
    (c.SAMENESS, c.SamenessFacts(Prior.UNKNOWN, N), "unknown", "REFUSE"),
    (c.STOP, c.StopFacts(Y, "open", ONE), "active", "IGNORED"),
    (c.STOP, c.StopFacts(N, "open", MANY), "named", "NAMED"),
    (c.STOP, c.StopFacts(N, "not open", ONE), "named-closed", "FOREIGN"),
    (c.STOP, c.StopFacts(N, "no", ZERO), "foreign", "FOREIGN"),
    (c.STOP, c.StopFacts(N, "no", ONE), "candidate", "CANDIDATE"),
    (c.STOP, c.StopFacts(N, "no", MANY), "unattributed", "SEVERAL"),
    (c.DROP, c.DropFacts("inject", Y, Y, Y), "unconfirmed", "UNCONFIRMED"),
    (c.DROP, c.DropFacts("system", N, N, N), "unconfirmed", "UNCONFIRMED"),
    (c.DROP, c.DropFacts("autosteer", Y, N, N), "superseded", "SUPERSEDED"),
    (c.DROP, c.DropFacts("edit-fold", N, N, N), "fold-suspected", "SUSPECTED"),
    (c.DROP, c.DropFacts("autosteer", N, Y, N), "dropped", "REDELIVER"),
    (c.DROP, c.DropFacts("autosteer", N, Y, Y), "dropped-again", "DROPPED"),
    (c.DROP, c.DropFacts("edit-fold", N, Y, N), "dropped-edit", "DROPPED"),
    (t.DELIVERY, t.DeliveryFacts(Y, Y, Y, PERMANENT, DIFFERS), "final-reply", "FINAL_REPLY"),
    (t.DELIVERY, t.DeliveryFacts(N, N, N, NO, DIFFERS), "fallback", "FALLBACK"),
    (t.DELIVERY, t.DeliveryFacts(N, N, N, TRANSIENT, DIFFERS), "fallback-after-failure", "FALLBACK"),
    (t.DELIVERY, t.DeliveryFacts(N, N, N, PERMANENT, DIFFERS), "fallback-after-failure", "FALLBACK"),
    (t.DELIVERY, t.DeliveryFacts(N, N, N, TRANSIENT, EMPTY), "reply-rescue", "REPLY_RESCUE"),
    (t.DELIVERY, t.DeliveryFacts(N, N, N, PERMANENT, EMPTY), "undelivered", "UNDELIVERED"),
    (t.DELIVERY, t.DeliveryFacts(N, N, Y, PERMANENT, EMPTY), "consumed", "CONSUMED"),
    (t.DELIVERY, t.DeliveryFacts(N, N, Y, TRANSIENT, CONSUMING), "consumed", "CONSUMED"),
    (t.DELIVERY, t.DeliveryFacts(N, N, Y, NO, DIFFERS), "consumed-rescue", "CONSUMED_RESCUE"),
    (t.DELIVERY, t.DeliveryFacts(N, N, N, NO, EMPTY), "silent", "SILENT"),
    (t.DELIVERY, t.DeliveryFacts(N, Y, N, NO, EMPTY), "interim-noop", "INTERIM_NOOP"),
    (t.DELIVERY, t.DeliveryFacts(N, Y, N, NO, INTERIM), "interim-noop", "INTERIM_NOOP"),
    (t.DELIVERY, t.DeliveryFacts(N, Y, Y, NO, CONSUMING), "interim-noop", "INTERIM_NOOP"),
    (t.DELIVERY, t.DeliveryFacts(N, Y, N, PERMANENT, EMPTY), "interim-undelivered", "UNDELIVERED"),
    (t.DELIVERY, t.DeliveryFacts(N, Y, N, TRANSIENT, INTERIM), "interim-reply-rescue", "REPLY_RESCUE"),
    (t.DELIVERY, t.DeliveryFacts(N, Y, Y, PERMANENT, DIFFERS), "interim-rescue", "INTERIM_RESCUE"),
    (t.FINAL, t.FinalFacts("authoritative", N), "equal", "NOTHING"),
    (t.FINAL, t.FinalFacts("rescue-different", N), "equal", "NOTHING"),
    (t.FINAL, t.FinalFacts("authoritative", Y), "suppressed", "SUPPRESS"),
    (t.FINAL, t.FinalFacts("rescue-different", Y), "different", "RESCUE"),
    (s.SETTLEMENT, s.SettlementFacts(Known.CURRENT, Told.SENT), "sent", "SETTLE"),
    (s.SETTLEMENT, s.SettlementFacts(Known.CURRENT, Told.FAILED), "failed", "RETRY"),
    (s.SETTLEMENT, s.SettlementFacts(Known.CURRENT, Told.UNKNOWN), "unknown", "DOUBT"),
    (s.SETTLEMENT, s.SettlementFacts(Known.EARLIER, Told.SENT), "earlier-sent", "SETTLE"),
    (s.SETTLEMENT, s.SettlementFacts(Known.OVERTAKEN, Told.SENT), "overtaken-sent", "SETTLE_TOLD"),
    (s.SETTLEMENT, s.SettlementFacts(Known.EARLIER, Told.FAILED), "earlier-failed", "IGNORE"),
    (s.SETTLEMENT, s.SettlementFacts(Known.OVERTAKEN, Told.UNKNOWN), "earlier-unknown", "IGNORE"),
    (s.SETTLEMENT, s.SettlementFacts(Known.UNKNOWN, Told.SENT), "confirmed", "CONFIRM"),
    (s.SETTLEMENT, s.SettlementFacts(Known.UNKNOWN, Told.FAILED), "corrected", "CORRECT"),
    (s.SETTLEMENT, s.SettlementFacts(Known.UNKNOWN, Told.UNKNOWN), "still-unknown", "IGNORE"),
    (s.SETTLEMENT, s.SettlementFacts(Known.SENT, Told.SENT), "sent-again", "DUPLICATE"),
    (s.SETTLEMENT, s.SettlementFacts(Known.SENT, Told.FAILED), "sent-then-failed", "CONTRADICTION"),
    (s.SETTLEMENT, s.SettlementFacts(Known.FAILED, Told.SENT), "failed-then-sent", "BELATED"),
    (s.SETTLEMENT, s.SettlementFacts(Known.FAILED, Told.FAILED), "failed-again", "DUPLICATE"),
    (s.SETTLEMENT, s.SettlementFacts(Known.SENT, Told.UNKNOWN), "receipt-unknown", "IGNORE"),
    (s.SETTLEMENT, s.SettlementFacts(Known.NEVER, Told.SENT), "never-heard-of", "IGNORE"),
    (s.FAILURE, s.FailureFacts(Cause.NOT_MODIFIED, Y, N), "not-modified", "SUCCESS"),
    (s.FAILURE, s.FailureFacts(Cause.QUOTE_GONE, Y, N), "quote-gone", "WITHOUT_QUOTE"),
    (s.FAILURE, s.FailureFacts(Cause.FORMAT, Y, N), "format", "PLAIN"),
    (s.FAILURE, s.FailureFacts(Cause.NOT_SENT, N, N), "not-sent", "AGAIN"),
    (s.FAILURE, s.FailureFacts(Cause.FLOOD, Y, Y), "permanent", "FAIL"),
    (s.FAILURE, s.FailureFacts(Cause.OTHER, Y, Y), "permanent", "FAIL"),
    (s.FAILURE, s.FailureFacts(Cause.FLOOD, N, N), "flood-wait", "HOLD"),
    (s.FAILURE, s.FailureFacts(Cause.OTHER, N, Y), "transient", "BACK_OFF"),
    (s.FAILURE, s.FailureFacts(Cause.OTHER, N, N), "exhausted", "FAIL"),
]
# fmt: on
ROWS = [(table.name, row.name) for table in TABLES for row in table.rows]
ELSEWHERE = {("settlement", "overtaken-sent")}
"""The platform of a scenario settles a second attempt at once: tests/channel decides this row."""


@pytest.mark.parametrize(
    ("table", "facts", "row", "verdict"), DECIDED, ids=[f"{d[0].name}-{d[2]}-{i}" for i, d in enumerate(DECIDED)]
)
def test_a_row_decides(table: DecisionTable[Any], facts: msgspec.Struct, row: str, verdict: str) -> None:
    decision = table.decide(facts)
    assert (decision.row, decision.verdict.name) == (row, verdict)
    assert (decision.table, decision.why != "") == (table.name, True)


def test_every_row_has_a_test() -> None:
    assert set(ROWS) == {(table.name, row) for table, _, row, _ in DECIDED}


@cache
def decided_in_scenarios() -> frozenset[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for family in ("a*", "n*", "p*", "z*", "r-a*", "r-z*"):
        for file in sorted(SCENARIOS.glob(f"{family}.jsonl")):
            found |= run_scenario(read_scenario(file), probe=RegistryProbe()).rows
    return frozenset(found)


@pytest.mark.parametrize(("table", "row"), ROWS, ids=["-".join(one) for one in ROWS])
def test_a_scenario_decides_by_it(table: str, row: str) -> None:
    assert ((table, row) in decided_in_scenarios()) is ((table, row) not in ELSEWHERE)


def told_by_the_rules(facts: t.DeliveryFacts) -> str:
    """The delivery table of RULES-replies A7 once more, as a reader would follow it."""
    covered = facts.stop in {EMPTY, CONSUMING, INTERIM}
    if facts.finals:
        return "final-reply"
    if facts.interims:
        noop = {NO: "interim-noop", PERMANENT: "undelivered", TRANSIENT: "reply-rescue"}
        return noop[facts.failed] if covered else "interim-rescue"
    if facts.consumed:
        return "consumed" if facts.stop in {EMPTY, CONSUMING} else "consumed-rescue"
    if facts.stop is not EMPTY:
        return "fallback"
    return {NO: "silent", TRANSIENT: "reply-rescue", PERMANENT: "undelivered"}[facts.failed]


def test_the_delivery_table_is_that_of_the_rules() -> None:
    every = product((Y, N), (Y, N), (Y, N), Failure, Stop)
    for finals, interims, consumed, failed, stop in every:
        facts = t.DeliveryFacts(finals, interims, consumed, failed, stop)
        assert t.DELIVERY.decide(facts).verdict.value == told_by_the_rules(facts), facts


def test_a_ledgered_id_is_never_taken_for_the_only_open_turn() -> None:
    for echo, named, consumed, turns in product((Echo.FOLD, Echo.FOLD_GONE, Echo.OTHER), (Y, N), Number, Number):
        for proof in ("consumed", "off"):
            row = c.ATTRIBUTION.decide(c.AttributionFacts(echo, named, consumed, turns, proof)).row
            assert row in {"proven-fold", "late-fold", "late-other"}


# ---------------------------------------------------------------- tables as such


class Light(StrEnum):
    RED = "red"
    GREEN = "green"


class Facts(msgspec.Struct, frozen=True):
    light: Light
    late: bool
    mode: Literal["walk", "run"]


def table(*rows: Row[str]) -> DecisionTable[str]:
    return DecisionTable("crossing", Facts, list(rows), source="a test")


def test_the_first_row_that_matches_decides() -> None:
    crossing = table(
        Row("stop", (Light.RED, ANY, ANY), "wait", "it is red"),
        Row("hurry", (ANY, True, ("walk", "run")), "run", "it is late"),
        Row("go", (ANY, ANY, ANY), "walk", "it is green"),
    )
    assert crossing.decide(Facts(Light.RED, True, "run")).row == "stop"
    assert crossing.decide(Facts(Light.GREEN, True, "run")).row == "hurry"
    assert crossing.decide(Facts(Light.GREEN, False, "run")).why == "it is green"
    assert crossing.decision("go").verdict == "walk"


def test_a_table_reads_as_markdown() -> None:
    text = table(
        Row("stop", (Light.RED, ANY, ANY), "wait", "red | or so"), Row("go", (ANY, True, ("walk", "run")), "x", "w"),
        Row("rest", (ANY, False, ANY), "y", "z"),
    ).markdown()  # fmt: skip
    assert text.splitlines() == [
        "## crossing", "", "Source: a test.", "",
        "| row | light | late | mode | verdict | why |", "|---|---|---|---|---|---|",
        "| stop | red | any | any | wait | red \\| or so |", "| go | any | yes | walk or run | x | w |",
        "| rest | any | no | any | y | z |",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([Row("a", (Light.RED, ANY, ANY), "x", "w")], "no row of Facts covers light=green, late=no, mode=walk"),
        (
            [Row("a", (ANY, ANY, ANY), "x", "w"), Row("b", (ANY, True, ANY), "y", "w")],
            r"row 2 \(b\) can never decide",
        ),
        ([Row("a", (ANY, ANY), "x", "w")], "a"),
        ([Row("a", ("blue", ANY, ANY), "x", "w")], "light"),
        ([Row("a", (ANY, ANY, ("walk", "swim")), "x", "w")], "mode"),
    ],
    ids=["incomplete", "dead", "columns", "value", "values"],
)
def test_a_table_that_is_no_rule_is_refused(rows: list[Row[str]], error: str) -> None:
    with pytest.raises(TableError, match=error):
        table(*rows)


def test_a_column_has_finitely_many_values() -> None:
    class Endless(msgspec.Struct, frozen=True):
        count: int

    with pytest.raises(TableError, match="column count"):
        DecisionTable("endless", Endless, [Row("a", (ANY,), "x", "w")], source="a test")


def test_a_table_is_no_product_of_everything() -> None:
    wide = msgspec.defstruct("Wide", [(f"c{i}", bool) for i in range(10)], frozen=True)
    with pytest.raises(TableError, match="1024 combinations, at most 1000"):
        DecisionTable("wide", wide, [Row("a", (ANY,) * 10, "x", "w")], source="a test")
