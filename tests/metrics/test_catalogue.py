"""The names and labels on the wire are those of the protocol, and no step counts anything else."""

import ast
import builtins
from pathlib import Path
from typing import get_args

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from turnkeeper.engine import events
from turnkeeper.engine.chat.tables import ATTRIBUTION
from turnkeeper.engine.commands import Outcome, Purpose, RewindCause
from turnkeeper.engine.config import Limits
from turnkeeper.engine.invariants import PREDICATES
from turnkeeper.engine.lab.runner import run_scenario
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.scenario import is_transcript, lines_of, read_scenario
from turnkeeper.engine.transcript.view import REASONS
from turnkeeper.engine.turn.tables import REFUSAL
from turnkeeper.metrics import catalogue
from turnkeeper.metrics.instruments import Instruments
from turnkeeper.metrics.probe import RegistryProbe

ROOT = Path(__file__).resolve().parents[2]
OPEN = None
"""A closed set that another list of the code names; the test below says which."""

# The list of the protocol, copied: name → label → its values.
COUNTERS: dict[str, dict[str, set[str] | None]] = {
    "turnkeeper_events_total": {"type": OPEN},
    "turnkeeper_replies_total": {
        "owner": {"echoed-open", "proven-fold", "late", "only-open", "orphan", "autonomous"},
        "interim": {"true", "false"},
    },
    "turnkeeper_fold_replies_attributed_total": {"source": {"autosteer", "edit-fold"}},
    "turnkeeper_turns_settled_total": {"outcome": OPEN},
    "turnkeeper_rescues_total": {
        "kind": {"fallback", "consumed-rescue", "interim-rescue", "reply-rescue", "final-different"}
    },
    "turnkeeper_deliveries_total": {"purpose": OPEN, "outcome": {"sent", "failed", "unknown"}},
    "turnkeeper_quotes_total": {"event": {"reserved", "spent", "released"}},
    "turnkeeper_inputs_total": {
        "state": {"resolved", "dropped", "fold-suspected", "superseded", "unconfirmed", "cancelled"}
    },
    "turnkeeper_previews_total": {"event": {"opened", "replaced", "detached", "mismatch", "unattributed"}},
    "turnkeeper_refusals_total": {"mark": {"marked", "no-message", "rewound", "ephemeral"}},
    "turnkeeper_rewinds_total": {"cause": OPEN},
    "turnkeeper_anchor_commits_total": {"result": {"moved", "late"}},
    "turnkeeper_prompt_messages_total": {"reason": {"kept", "receipt", "standalone", "e0", "e1", "e2"}},
    "turnkeeper_prompts_total": {"result": {"clean", "cleaned"}},
    "turnkeeper_late_replies_total": {"source": OPEN},
    "turnkeeper_late_then_rescued_total": {"source": {"autosteer", "edit-fold"}},
    "turnkeeper_stop_texts_total": {"result": {"sent", "equal", "suppressed-different", "empty"}},
    "turnkeeper_failure_records_total": {"kind": {"refusal", "failure"}, "locus": {"named", "none"}},
    "turnkeeper_speech_unrouted_total": {},
    "turnkeeper_limit_reached_total": {"limit": OPEN},
    "turnkeeper_set_aside_total": {"error": OPEN},
    "turnkeeper_invariant_violations_total": {"invariant": OPEN},
}
GAUGES: dict[str, dict[str, set[str] | None]] = {
    "turnkeeper_open_turns": {},
    "turnkeeper_deliveries_in_flight": {},
    "turnkeeper_live_actors": {"kind": {"chat", "turn", "channel"}},
    "turnkeeper_ingress_depth_max": {},
    "turnkeeper_config_last_reload_successful": {},
}
HISTOGRAMS = {
    "turnkeeper_event_seconds",
    "turnkeeper_delivery_seconds",
    "turnkeeper_turn_seconds",
    "turnkeeper_finalization_wait_seconds",
}


@pytest.fixture(scope="module")
def wire() -> dict[str, dict[str, set[str]]]:
    """What an exporter would say before anything happened: sample name → label → values."""
    registry = CollectorRegistry()
    Instruments(registry)
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for name, value in sample.labels.items():
                labels.setdefault(name, set()).add(value)
    return found


def test_every_metric_of_the_protocol_is_there_and_no_other(wire: dict[str, dict[str, set[str]]]) -> None:
    parts = {f"{name}_{part}" for name in HISTOGRAMS for part in ("bucket", "count", "sum")}
    assert set(wire) == set(COUNTERS) | set(GAUGES) | parts


@pytest.mark.parametrize("name", [*COUNTERS, *GAUGES])
def test_labels_are_those_of_the_protocol(name: str, wire: dict[str, dict[str, set[str]]]) -> None:
    wanted = COUNTERS.get(name, GAUGES.get(name, {}))
    assert set(wire[name]) == set(wanted)
    for label, values in wanted.items():
        if values is not OPEN:
            assert wire[name][label] == values, label


def test_sets_that_other_lists_name(wire: dict[str, dict[str, set[str]]]) -> None:
    kinds = {kind.__struct_config__.tag for kind in get_args(events.Event)}
    assert wire["turnkeeper_events_total"]["type"] == kinds
    assert wire["turnkeeper_turns_settled_total"]["outcome"] == set(get_args(Outcome))
    assert wire["turnkeeper_deliveries_total"]["purpose"] == set(get_args(Purpose))
    assert wire["turnkeeper_rewinds_total"]["cause"] == set(get_args(RewindCause))
    assert wire["turnkeeper_limit_reached_total"]["limit"] == set(Limits.__struct_fields__)
    assert wire["turnkeeper_prompt_messages_total"]["reason"] == set(REASONS)
    assert wire["turnkeeper_late_replies_total"]["source"] == {
        "primary", "autosteer", "edit-fold", "inject", "system", "subagent",
    }  # fmt: skip


def test_rows_of_tables_are_label_values() -> None:
    owners = {"late" if row.name.startswith("late-") else row.name for row in ATTRIBUTION.rows}
    assert owners == COUNTERS["turnkeeper_replies_total"]["owner"]
    marks = {row.name for row in REFUSAL.rows} - {"interrupted"}
    assert marks == COUNTERS["turnkeeper_refusals_total"]["mark"]


def test_no_label_is_an_id() -> None:
    labels = {label for family in (*catalogue.COUNTERS, *catalogue.GAUGES) for label in family.labels}
    assert not labels & {"chat", "channel", "turn", "turn_id", "message", "delivery", "call_id", "server", "text"}


def test_the_number_of_series_is_known() -> None:
    series = sum(len(list(family.series())) for family in (*catalogue.COUNTERS, *catalogue.GAUGES))
    assert series < 250


def counts_in(folder: Path) -> list[tuple[str, str, tuple[str | None, ...]]]:
    """List every `draft.count(…)` of the steps: where, the metric, and the labels that are written out."""
    found = []
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            counts = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "count"
            if not counts or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "draft":
                words = [str(arg.value) if isinstance(arg, ast.Constant) else None for arg in node.args]
                found.append((f"{file.name}:{node.lineno}", str(words[0]), tuple(words[1:])))
    return found


def test_steps_count_what_the_catalogue_has() -> None:
    families = {family.name: family for family in catalogue.COUNTERS}
    found = counts_in(ROOT / "engine")
    assert len(found) > 30
    for where, metric, labels in found:
        assert metric in families, f"{where} counts {metric!r}"
        sets = list(families[metric].labels.values())
        assert len(labels) == len(sets), where
        for value, known in zip(labels, sets, strict=True):
            assert value is None or value in known, f"{where}: {value!r}"


def test_sets_that_only_the_code_names(wire: dict[str, dict[str, set[str]]]) -> None:
    """Invariants are those that are checked, errors the classes that a step of ours may raise."""
    invariants = wire["turnkeeper_invariant_violations_total"]["invariant"]
    checked = {check.__name__ for checks in PREDICATES.values() for check in checks}
    assert invariants == {*checked, "closed_labels", "unlisted"}
    assert "one_terminal" in checked
    errors = wire["turnkeeper_set_aside_total"]["error"] - {"unlisted"}
    assert {name for name in errors if not hasattr(builtins, name)} == {
        "DecodeError", "InvariantViolated", "ValidationError",
    }  # fmt: skip


def test_every_scenario_counts_what_the_catalogue_has() -> None:
    """The strict probe raises for any other count; and some scenario counts nearly everything."""
    names: set[str] = set()
    for file in sorted((ROOT / "tests" / "scenarios").glob("*.jsonl")):
        lines = lines_of(file)
        if not is_transcript(lines):
            probe = RegistryProbe()
            run_scenario(read_scenario(file, lines), CellRuntime, probe)
            names |= {s.name for family in probe.registry.collect() for s in family.samples if s.value}
    never = {name for name in COUNTERS if name not in names}
    assert never <= NOT_COUNTED_BY_SCENARIOS, never


NOT_COUNTED_BY_SCENARIOS = {
    "turnkeeper_invariant_violations_total",
    "turnkeeper_prompt_messages_total",
    "turnkeeper_prompts_total",
    "turnkeeper_set_aside_total",
    "turnkeeper_limit_reached_total",
}
