"""Every row of the tables of what a turn answers: facts that it decides, and a scenario that it decides in."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from turnkeeper.engine.chat import answer_tables as a
from turnkeeper.engine.chat import rewind_tables as r
from turnkeeper.engine.chat.answer_tables import Said
from turnkeeper.engine.lab.runner import run_scenario
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.engine.table import DecisionTable
from turnkeeper.engine.turn import tables as t
from turnkeeper.metrics.probe import RegistryProbe

SCENARIOS = Path(__file__).parents[1] / "scenarios"
FAMILIES = ("r-b*", "b*", "n*", "z*")
TABLES: list[DecisionTable[Any]] = [
    a.OCCURRENCE, a.ANCHOR, a.COMMIT, a.WAKE, a.MERGE_CHANNEL, a.MERGE_MESSAGE, a.LOCUS, a.NOTICE,
    r.REWIND, r.REWOUND, r.UNSTICK, t.REFUSAL, t.PROSE,
]  # fmt: skip
M, F, K = Said.MESSAGE, Said.FIRST_VIEW, Said.MARKER
Y, N = True, False

# fmt: off
DECIDED: list[tuple[DecisionTable[Any], msgspec.Struct, str, str]] = [
    (a.OCCURRENCE, a.OccurrenceFacts(Y, Y, Y), "retraction", "RETRACTION"),
    (a.OCCURRENCE, a.OccurrenceFacts(Y, Y, N), "deletion", "NEW"),
    (a.OCCURRENCE, a.OccurrenceFacts(Y, N, Y), "duplicate", "DUPLICATE"),
    (a.OCCURRENCE, a.OccurrenceFacts(Y, N, N), "duplicate", "DUPLICATE"),
    (a.OCCURRENCE, a.OccurrenceFacts(N, N, N), "new", "NEW"),
    (a.ANCHOR, a.AnchorFacts(M, Y, N, N, N), "A1-message", "SET"),
    (a.ANCHOR, a.AnchorFacts(F, Y, N, N, N), "A1-message", "SET"),
    (a.ANCHOR, a.AnchorFacts(M, Y, N, Y, N), "A2-parked", "PARK"),
    (a.ANCHOR, a.AnchorFacts(F, Y, N, Y, N), "A8-first-view", "PARK"),
    (a.ANCHOR, a.AnchorFacts(M, N, N, Y, N), "A5-nameless", "KEEP"),
    (a.ANCHOR, a.AnchorFacts(M, Y, Y, Y, N), "A6-assembled", "KEEP"),
    (a.ANCHOR, a.AnchorFacts(K, Y, N, Y, N), "A7-marker", "KEEP"),
    (a.ANCHOR, a.AnchorFacts(M, Y, N, N, Y), "A14-subagent", "KEEP"),
    (a.COMMIT, a.CommitFacts(N, Y, N), "failed", "NOTHING"),
    (a.COMMIT, a.CommitFacts(Y, N, Y), "unparked", "NOTHING"),
    (a.COMMIT, a.CommitFacts(Y, Y, Y), "A10-late", "LATE"),
    (a.COMMIT, a.CommitFacts(Y, Y, N), "A10", "MOVED"),
    (a.WAKE, a.WakeFacts(Y, Y, N, M, Y), "B1-message", "PAIR"),
    (a.WAKE, a.WakeFacts(Y, Y, N, F, Y), "B3-first-view", "PAIR"),
    (a.WAKE, a.WakeFacts(Y, Y, N, M, N), "B5-nameless", "CHANNEL"),
    (a.WAKE, a.WakeFacts(Y, Y, N, K, Y), "B7-marker", "CHANNEL"),
    (a.WAKE, a.WakeFacts(Y, N, N, M, Y), "B13b", "NOTHING"),
    (a.WAKE, a.WakeFacts(N, Y, N, M, Y), "gate", "NOTHING"),
    (a.WAKE, a.WakeFacts(Y, Y, Y, M, Y), "A14-subagent", "NOTHING"),
    (a.MERGE_CHANNEL, a.MergeChannelFacts(Y, Y), "M1-addressed", "ADDRESSED"),
    (a.MERGE_CHANNEL, a.MergeChannelFacts(N, Y), "M1-newest", "NEWEST"),
    (a.MERGE_CHANNEL, a.MergeChannelFacts(N, N), "M1-none", "NONE"),
    (a.MERGE_MESSAGE, a.MergeMessageFacts(Y, Y), "M2", "ALL"),
    (a.MERGE_MESSAGE, a.MergeMessageFacts(Y, N), "M3-different", "NONE"),
    (a.MERGE_MESSAGE, a.MergeMessageFacts(N, Y), "M3-mixed", "NONE"),
    (a.LOCUS, a.LocusFacts(Y, Y, Y, Y, Y), "subagent", "NONE"),
    (a.LOCUS, a.LocusFacts(N, Y, Y, Y, Y), "home", "HOME"),
    (a.LOCUS, a.LocusFacts(N, N, Y, Y, Y), "trigger", "TRIGGER"),
    (a.LOCUS, a.LocusFacts(N, N, N, Y, Y), "configured", "CONFIGURED"),
    (a.LOCUS, a.LocusFacts(N, N, N, N, Y), "latest", "ANCHOR"),
    (a.LOCUS, a.LocusFacts(N, N, N, N, N), "none", "NONE"),
    (a.NOTICE, a.NoticeFacts(N, Y, N, Y, N), "G6", "SILENT"),
    (a.NOTICE, a.NoticeFacts(Y, N, N, Y, N), "G4-G5", "RECORD"),
    (a.NOTICE, a.NoticeFacts(Y, N, Y, N, N), "G4-G5", "RECORD"),
    (a.NOTICE, a.NoticeFacts(Y, Y, Y, Y, N), "G1", "SILENT"),
    (a.NOTICE, a.NoticeFacts(Y, Y, N, N, N), "G3", "NO_CHANNEL"),
    (a.NOTICE, a.NoticeFacts(Y, Y, N, Y, Y), "G2-conversation", "CONVERSATION"),
    (a.NOTICE, a.NoticeFacts(Y, Y, N, Y, N), "G2", "LANDS"),
    (r.REWIND, r.RewindFacts("refused", N, Y, Y, Y), "not-the-chats", "NONE"),
    (r.REWIND, r.RewindFacts("failed", N, N, Y, Y), "not-the-chats", "NONE"),
    (r.REWIND, r.RewindFacts("refused", Y, Y, N, Y), "F2-unstick", "UNSTICK"),
    (r.REWIND, r.RewindFacts("refused", Y, Y, Y, N), "F5-unstick", "GIVE_UP"),
    (r.REWIND, r.RewindFacts("refused", Y, N, Y, Y), "F1-auto", "AUTO"),
    (r.REWIND, r.RewindFacts("refused", Y, N, Y, N), "F5-auto", "GIVE_UP"),
    (r.REWIND, r.RewindFacts("refused", Y, N, N, Y), "plain", "NONE"),
    (r.REWIND, r.RewindFacts("failed", Y, N, Y, Y), "F3-breaker", "BREAKER"),
    (r.REWIND, r.RewindFacts("failed", Y, Y, Y, Y), "F3-breaker", "BREAKER"),
    (r.REWIND, r.RewindFacts("failed", Y, N, Y, N), "F3-cap", "NONE"),
    (r.REWIND, r.RewindFacts("failed", Y, N, N, Y), "F3-other", "NONE"),
    (r.REWOUND, r.RewoundFacts(N, Y, "auto_rewind"), "unasked", "NOTHING"),
    (r.REWOUND, r.RewoundFacts(Y, Y, "poison_breaker"), "F6-retry", "WAKE"),
    (r.REWOUND, r.RewoundFacts(Y, N, "auto_rewind"), "F5-nothing", "GIVE_UP"),
    (r.REWOUND, r.RewoundFacts(Y, N, "unstick"), "F5-nothing", "GIVE_UP"),
    (r.REWOUND, r.RewoundFacts(Y, N, "poison_breaker"), "F5-breaker", "NOTHING"),
    (r.UNSTICK, r.UnstickFacts(Y, N, N, N), "subagent", "REFUSED"),
    (r.UNSTICK, r.UnstickFacts(N, Y, N, N), "F2-busy", "REFUSED"),
    (r.UNSTICK, r.UnstickFacts(N, N, Y, N), "F2-forced", "REFUSED"),
    (r.UNSTICK, r.UnstickFacts(N, N, N, Y), "F2-rewind", "REFUSED"),
    (r.UNSTICK, r.UnstickFacts(N, N, N, N), "F2-idle", "BEGINS"),
    (t.REFUSAL, t.RefusalFacts(Y, N, Y, Y), "interrupted", "NOTHING"),
    (t.REFUSAL, t.RefusalFacts(N, Y, N, Y), "ephemeral", "NOTHING"),
    (t.REFUSAL, t.RefusalFacts(N, N, Y, Y), "rewound", "NOTHING"),
    (t.REFUSAL, t.RefusalFacts(N, N, N, Y), "marked", "REACT"),
    (t.REFUSAL, t.RefusalFacts(N, N, N, N), "no-message", "NOTHING"),
    (t.PROSE, t.ProseFacts("locus", Y), "locus", "LOCUS"),
    (t.PROSE, t.ProseFacts("hybrid", Y), "hybrid-prefixed", "PREFIX"),
    (t.PROSE, t.ProseFacts("hybrid", N), "hybrid", "LOCUS"),
    (t.PROSE, t.ProseFacts("explicit", Y), "explicit", "PREFIX"),
    (t.PROSE, t.ProseFacts("explicit", N), "unprefixed", "ARCHIVE"),
    (t.PROSE, t.ProseFacts("disabled", Y), "disabled", "ARCHIVE"),
]
# fmt: on
ROWS = [(table.name, row.name) for table in TABLES for row in table.rows]
ELSEWHERE = {
    ("rewound", "F5-nothing"), ("rewound", "F5-breaker"), ("rewound", "unasked"), ("unstick", "F2-rewind"),
}  # fmt: skip
"""The simulated host of a scenario always finds something to remove, at once: test_rewound decides these."""


@pytest.mark.parametrize(
    ("table", "facts", "row", "verdict"), DECIDED, ids=[f"{d[0].name}-{d[2]}-{i}" for i, d in enumerate(DECIDED)]
)
def test_a_row_decides(table: DecisionTable[Any], facts: msgspec.Struct, row: str, verdict: str) -> None:
    decision = table.decide(facts)
    assert (decision.row, decision.verdict.name) == (row, verdict)


def test_every_row_has_a_test() -> None:
    assert set(ROWS) == {(table.name, row) for table, _, row, _ in DECIDED}


@cache
def decided_in_scenarios() -> frozenset[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for file in sorted({file for family in FAMILIES for file in SCENARIOS.glob(f"{family}.jsonl")}):
        found |= run_scenario(read_scenario(file), probe=RegistryProbe()).rows
    return frozenset(found)


@pytest.mark.parametrize(("table", "row"), ROWS, ids=["-".join(one) for one in ROWS])
def test_a_scenario_decides_by_it(table: str, row: str) -> None:
    assert ((table, row) in decided_in_scenarios()) is ((table, row) not in ELSEWHERE)


def every(facts: type[msgspec.Struct]) -> list[Any]:
    hints = get_type_hints(facts)
    domains = [
        (False, True) if h is bool else get_args(h) or tuple(h) for h in (hints[f] for f in facts.__struct_fields__)
    ]
    return [facts(*values) for values in product(*domains)]


def test_a_mark_needs_a_message_and_no_excuse() -> None:
    """However the table is written: marked only if the pair names a message and nothing else handles it."""
    for facts in every(t.RefusalFacts):
        marked = t.REFUSAL.decide(facts).verdict is t.Mark.REACT
        assert marked == (facts.message and not (facts.rewind or facts.subagent or facts.interrupted))


def test_a_marker_never_gives_a_message() -> None:
    for facts in every(a.WakeFacts):
        if a.WAKE.decide(facts).verdict is a.Carries.PAIR:
            assert facts.said is not K
            assert facts.names_message


def test_nothing_sets_the_anchor_before_its_acceptance() -> None:
    for facts in every(a.AnchorFacts):
        if facts.coalesced:
            assert a.ANCHOR.decide(facts).verdict is not a.Anchored.SET
