"""The alerts and the dashboard ask for metrics and label values that exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from turnkeeper.metrics import catalogue
from turnkeeper.metrics.series import Family

METRICS = Path(__file__).resolve().parents[2] / "metrics"
RULES = (METRICS / "rules" / "turnkeeper.rules.yml").read_text(encoding="utf-8")
RULE_TESTS = (METRICS / "rules" / "turnkeeper.rules.test.yml").read_text(encoding="utf-8")
DASHBOARD: dict[str, Any] = json.loads((METRICS / "dashboards" / "turnkeeper.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SELECTOR = re.compile(r"(turnkeeper_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')
SCRAPED = {"instance", "le"}
"""Labels that Prometheus and histograms add."""


def families() -> dict[str, Family]:
    named = {f"turnkeeper_{family.name}_total": family for family in catalogue.COUNTERS}
    named |= {f"turnkeeper_{family.name}": family for family in catalogue.GAUGES}
    for family in catalogue.HISTOGRAMS:
        named |= {f"turnkeeper_{family.name}_{part}": family for part in ("bucket", "count", "sum")}
    return named


def check(query: str) -> set[str]:
    """Insist that every selector of a query can match something; return the metrics it asks for."""
    found = set()
    for name, matchers in SELECTOR.findall(query):
        family = families()[name]
        found.add(name)
        for label, how, value in MATCHER.findall(matchers):
            if label in SCRAPED:
                continue
            for word in value.split("|") if how == "=~" else [value]:
                assert word in family.labels[label], f"{name}: {label} is never {word!r}"
    for names in re.findall(r"by \(([^)]*)\)", query):
        for label in re.split(r",\s*", names):
            known = set().union(*(families()[name].labels for name in found))
            assert label in known | SCRAPED, f"{query}: nothing has the label {label}"
    return found


def expressions(text: str) -> list[str]:
    """Take the expressions out of a rules file."""
    lines, found = text.splitlines(), []
    for n, line in enumerate(lines):
        if line.strip().startswith("expr:"):
            depth = len(line) - len(line.lstrip())
            rest = [line.partition("expr:")[2].strip(" |")]
            for more in lines[n + 1 :]:
                if len(more) - len(more.lstrip()) <= depth:
                    break
                rest.append(more.strip())
            found.append(" ".join(rest).strip())
    return found


@pytest.mark.parametrize("query", expressions(RULES))
def test_an_alert_asks_for_what_there_is(query: str) -> None:
    assert check(query)


def test_every_alert_is_tested_and_explained() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES)
    assert len(alerts) == len(set(alerts)) == len(expressions(RULES))
    assert set(alerts) == set(re.findall(r"alertname: (\w+)", RULE_TESTS))
    assert RULES.count("severity: ") == RULES.count("summary: ") == len(alerts)


def test_the_tests_of_alerts_feed_series_that_exist() -> None:
    series = re.findall(r"series: (.*?)(?:, values.*)?$", RULE_TESTS, re.MULTILINE)
    for name, matchers in SELECTOR.findall("\n".join(series)):
        for label, _, value in MATCHER.findall(matchers):
            assert label == "le" or value in families()[name].labels[label]


@pytest.mark.parametrize("panel", PANELS, ids=[panel["title"] for panel in PANELS])
def test_a_panel_asks_for_what_there_is(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        assert check(target["expr"])
        for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
            assert f"by ({label}" in target["expr"] or f",{label})" in target["expr"]


def test_every_metric_is_on_the_dashboard() -> None:
    shown = {families()[name].name for panel in PANELS for target in panel["targets"] for name in check(target["expr"])}
    every = (*catalogue.COUNTERS, *catalogue.GAUGES, *catalogue.HISTOGRAMS)
    assert {family.name for family in every} == shown


def test_panels_do_not_overlap() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not taken & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
