"""Every scenario that holds a send, in every order to depth 4: no breach, and the file's own order among them."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from turnkeeper.engine.commands import Send
from turnkeeper.engine.lab.explorer import Explored, explore
from turnkeeper.engine.lab.lines import lines_of
from turnkeeper.engine.lab.runner import ScenarioRunner
from turnkeeper.engine.lab.scenario import is_transcript, read_scenario

SCENARIOS = Path(__file__).parents[1] / "scenarios"
STATES = 150
"""Followed for a file; one that has more says so, and is explored as far as that goes."""


@cache
def holding_a_send() -> list[Path]:
    files = [file for file in sorted(SCENARIOS.glob("*.jsonl")) if b'"send"' in file.read_bytes()]
    return [file for file in files if not is_transcript(lines_of(file))]


def told(found: Explored) -> str:
    """A breach as `turnkeeper explore` prints it."""
    return "\n".join(line for one in found.breaches for line in (one.what, *one.example, *one.transcript))


def texts(line: list[dict[str, Any]]) -> Iterator[tuple[str, object]]:
    for one in line:
        if one["type"] == "send":
            yield one["text"], one.get("quote")


@pytest.mark.parametrize("file", holding_a_send(), ids=lambda file: file.stem)
def test_no_order_of_a_scenario_breaches(file: Path) -> None:
    scenario = read_scenario(file)
    found = explore(scenario, depth=4, states_max=STATES)
    assert not found.breaches, told(found)
    assert found.orders
    (own,) = (outcome for outcome in found.outcomes if outcome.own)
    runner = ScenarioRunner(scenario)
    runner.run()
    for channel, line in own.seen["channels"].items():
        ran = [
            (command.text, command.quote)
            for how, command in runner.platform.visible
            if isinstance(command, Send) and str(command.channel) == channel and how == "sent"
        ]
        seen = list(texts(line))
        assert all(one in seen for one in ran), (channel, ran, seen)


@pytest.mark.parametrize("name", ["a34-one-quote", "n07-sibling-in-flight-blocks"])
def test_the_two_that_started_it_are_explored_whole(name: str) -> None:
    found = explore(read_scenario(SCENARIOS / f"{name}.jsonl"), depth=6)
    assert not found.breaches, told(found)
    assert not found.left_out
    assert [outcome.own for outcome in found.outcomes] == [True]


def test_most_scenarios_are_explored_whole() -> None:
    files = holding_a_send()
    assert len(files) > 400
    cut = [file.stem for file in files[::10] if explore(read_scenario(file), depth=4, states_max=STATES).left_out]
    assert len(cut) * 5 < len(files[::10]), cut
