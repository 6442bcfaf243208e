"""docs/METRICS.md says what the catalogue says."""

import re
from pathlib import Path

import pytest

from turnkeeper.metrics import catalogue
from turnkeeper.metrics.series import Family

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "METRICS.md").read_text(encoding="utf-8")
ROWS = {
    cells[1].strip(" `"): cells[2].strip()
    for line in PAGE.splitlines()
    if line.startswith("| `turnkeeper_") and (cells := re.split(r"(?<!\\)\|", line))
}
"""Name → what stands in its column of labels."""
NAMED = ("every event type", "every outcome", "every key of `[limits]`", "the class of the exception", "its name")
"""Sets that the page names instead of listing."""


def families() -> dict[str, Family]:
    counters = {f"turnkeeper_{family.name}_total": family for family in catalogue.COUNTERS}
    return counters | {f"turnkeeper_{family.name}": family for family in (*catalogue.GAUGES, *catalogue.HISTOGRAMS)}


def test_the_page_has_every_metric_once_and_no_other() -> None:
    assert list(ROWS) == list(families())


@pytest.mark.parametrize("name", families())
def test_labels_and_values_are_those_of_the_catalogue(name: str) -> None:
    said = dict(part.split(": ", 1) for part in ROWS[name].split("; ")) if ROWS[name] else {}
    family = families()[name]
    assert [label.strip("`") for label in said] == list(family.labels)
    for label, values in zip(said.values(), family.labels.values(), strict=True):
        if not label.startswith(NAMED):
            assert tuple(re.findall(r"`([^`]+)`", label)) == values


def test_the_page_names_no_metric_that_is_none() -> None:
    short = {name.removeprefix("turnkeeper_") for name in families()}
    for name in re.findall(r"`(?:\w+\()?(?:turnkeeper_)?(\w+_(?:total|seconds))\b", PAGE):
        assert name in short
