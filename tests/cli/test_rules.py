"""The list of rules is complete, the pages are what the tables say, and every way in leads somewhere."""

import importlib
import json
import pkgutil
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Turnkeeper
from turnkeeper import engine
from turnkeeper.engine import cell
from turnkeeper.engine.commands import TurnSettled
from turnkeeper.engine.lab.phases import EDGES, diagram
from turnkeeper.engine.lab.rule_pages import meanings, pages
from turnkeeper.engine.lab.rules import RULES, SYMPTOMS, Rule, rule_named
from turnkeeper.engine.lab.runner import run_scenario
from turnkeeper.engine.lab.scenario import as_recording, is_transcript, lines_of, read_scenario
from turnkeeper.engine.table import DecisionTable

SCENARIOS = sorted((ROOT / "tests" / "scenarios").glob("*.jsonl"))
CLOSING = [
    {"scenario": "a refusal while a reply is out"},
    {"turn_opened": {"turn_id": "P", "message": 1}},
    {"reply": {"call_id": "k", "turn_id": "P", "text": "yes"}, "deliver": "hold"},
    {"refused": {"turn_id": "P"}},
    {"settle": {"call_id": "k", "outcome": "sent"}},
    {"turn_opened": {"turn_id": "Q", "message": 2}},
    {"reply": {"call_id": "l", "turn_id": "Q", "text": "yes"}, "deliver": "hold"},
    {"failed": {"turn_id": "Q", "error": "x"}},
    {"settle": {"call_id": "l", "outcome": "failed", "permanent": True}},
]


def tables_of_the_engine() -> dict[int, DecisionTable[Any]]:
    found: dict[int, DecisionTable[Any]] = {}
    for module in pkgutil.walk_packages(engine.__path__, "turnkeeper.engine."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, DecisionTable):
                found[id(value)] = value
    return found


def test_every_table_of_the_engine_is_listed_once() -> None:
    listed = [rule.table for rule in RULES]
    names = [table.name for table in tables_of_the_engine().values()]
    assert sorted(table.name for table in listed) == sorted(names)
    assert len(set(names)) == len(names), "a name leads to one table"
    assert len({rule.slug for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_a_rule_can_be_found_and_changed(rule: Rule) -> None:
    assert rule.asks.endswith("?")
    assert rule_named(rule.slug) is rule_named(rule.table.name.upper()) is rule
    code = (ROOT / rule.code).read_text(encoding="utf-8")
    assert f'"{rule.table.name}"' in code
    assert rule.table.markdown() in pages()[f"{rule.slug}.md"]


def test_rows_that_symptoms_name_exist() -> None:
    for symptom in SYMPTOMS:
        for name in symptom.rows:
            table, _, row = name.rpartition(": ")
            assert rule_named(table).table.decision(row).row == row, symptom.seen


def test_signals_that_symptoms_name_exist() -> None:
    known = {kind.__struct_config__.tag for kind in engine_signals()}
    named = {name for one in SYMPTOMS for name in re.findall(r"`(\w+)`", one.seen)}
    assert named - known == {"redeliver"}, "a command"


def engine_signals() -> tuple[Any, ...]:
    from turnkeeper.engine.signals import Signal

    kinds: tuple[Any, ...] = Signal.__args__
    return kinds


def test_columns_are_explained_where_their_name_does_not_say_it() -> None:
    attribution = meanings(rule_named("attribution").table.facts)
    assert attribution["consumed_open"] == "Distinct open turns that it contains."
    assert attribution["echo"] == "What the id is that a reply echoes."


def test_the_index_leads_to_every_row() -> None:
    index = pages()["README.md"]
    for rule in RULES:
        for row in rule.table.rows:
            assert f"| {row.name} | [{rule.table.name}]({rule.slug}.md) |" in index


def test_links_of_the_pages_lead_somewhere() -> None:
    made = pages()
    for name, text in made.items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert target in made or (ROOT / "docs" / "rules" / target).resolve().is_file(), f"{name}: {target}"


def test_the_committed_pages_are_those_of_the_tables(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("explain-rules", "--check", "docs/rules")
    assert done.exit_code == 0, done.output
    assert (ROOT / "docs" / "turn.mmd").read_text(encoding="utf-8") == diagram(), "run `make docs-rules`"


def test_stale_pages_are_told(turnkeeper: Turnkeeper, tmp_path: Path) -> None:
    assert turnkeeper("explain-rules", "--write", tmp_path).exit_code == 0
    assert turnkeeper("explain-rules", "--check", tmp_path).exit_code == 0
    (tmp_path / "stop.md").unlink()
    (tmp_path / "final.md").write_text("old", encoding="utf-8")
    (tmp_path / "gone.md").write_text((tmp_path / "wake.md").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "own.md").write_text("a page of somebody else", encoding="utf-8")
    done = turnkeeper("explain-rules", "--check", tmp_path)
    assert done.exit_code == 1
    assert sorted(done.stderr.splitlines()) == [
        f"{tmp_path / 'final.md'}: differs from its table",
        f"{tmp_path / 'gone.md'}: no table has this page any more",
        f"{tmp_path / 'stop.md'}: is missing",
    ]
    assert len(json.loads(turnkeeper("explain-rules", "--check", tmp_path, "--json").output)["stale"]) == 3
    assert turnkeeper("explain-rules", "--write", tmp_path).exit_code == 0
    assert turnkeeper("explain-rules", "--check", tmp_path).exit_code == 0
    assert (tmp_path / "own.md").exists(), "only generated pages are removed"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
@pytest.mark.parametrize("columns", [60, 120])
def test_a_table_in_the_terminal(turnkeeper: Turnkeeper, rule: Rule, columns: int) -> None:
    done = turnkeeper("explain-rules", rule.table.name, columns=columns)
    assert done.exit_code == 0
    rows = [line.strip() for line in done.output.splitlines() if re.match(r"  \S", line)]
    for row in rule.table.rows:
        assert row.name in rows
    indented = [line for line in done.output.splitlines() if line.startswith("    ")]
    assert max(map(len, indented)) <= columns


def test_a_table_as_json(turnkeeper: Turnkeeper) -> None:
    told = json.loads(turnkeeper("explain-rules", "attribution", "--json").output)
    assert told["table"] == "attribution"
    assert told["code"] == "engine/chat/tables.py"
    proven = next(row for row in told["rows"] if row["row"] == "proven-fold")
    assert proven["when"]["in_consumed"] == "yes"
    assert proven["why"] == "one combined reply for a merged input"
    assert told["columns"]["open_turns"]["values"] == ["0", "1", "2 or more"]


def test_the_list_asks_the_questions(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("explain-rules")
    assert done.exit_code == 0
    for rule in RULES:
        assert rule.asks in done.output


def test_the_nearest_table_is_named(turnkeeper: Turnkeeper) -> None:
    done = turnkeeper("explain-rules", "attributions")
    assert done.exit_code == 2
    assert "did you mean attribution?" in done.stderr


def test_the_diagram_shows_what_turns_really_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every change of phase in all scenarios is an edge with that outcome, and every edge is taken."""
    taken: dict[tuple[str, str], set[str]] = defaultdict(set)
    step = cell.STEPS["turn"]

    def noting(state: Any, message: Any, at: Any) -> Any:
        done = step(state, message, at)
        settled = [command.outcome for command in done.commands if isinstance(command, TurnSettled)]
        after = "settled" if settled or done.state is None else done.state.phase
        outcome = settled[0] if settled else None if done.state is None else done.state.outcome
        if state.phase != after and outcome is not None:
            taken[state.phase, after].add(outcome)
        return done

    monkeypatch.setitem(cell.STEPS, "turn", noting)
    closing = tmp_path / "closing.jsonl"
    closing.write_text("\n".join(map(json.dumps, CLOSING)), encoding="utf-8")
    for file in [*SCENARIOS, closing]:
        lines = lines_of(file)
        if not is_transcript(lines):
            run_scenario(as_recording(read_scenario(file, lines)))
    drawn: dict[tuple[str, str], set[str]] = defaultdict(set)
    for edge in EDGES:
        drawn[edge.before, edge.after] |= set(edge.outcomes)
    assert {way: outcomes - drawn[way] for way, outcomes in taken.items() if outcomes - drawn[way]} == {}
    assert set(drawn) == set(taken)
