"""What an exploration says: counts, outcomes, what it does with a planted bug, and the command that prints it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.mutants import ends
from tests.mutants import replies as planted
from turnkeeper.cli import main
from turnkeeper.engine.lab.explorer import explore
from turnkeeper.engine.lab.lines import parsed
from turnkeeper.engine.lab.scenario import Scenario, read_scenario

A34 = Path(__file__).parents[1] / "scenarios" / "a34-one-quote.jsonl"
RACE = b"""{"scenario": "a Stop text and a reply that is out"}
{"turn_opened": {"turn_id": "P", "message": 1}}
{"input_seen": {"turn_id": "P"}}
{"reply": {"call_id": "c1", "turn_id": "P", "text": "A"}, "deliver": "fail-permanent"}
{"stopped": {"text": "closing words", "turn_id": "P"}}
{"advance": 2500}
"""


def story(text: bytes) -> Scenario:
    return read_scenario("story.jsonl", parsed(text, "story.jsonl"))


def command(*args: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["explore", *map(str, args)], input=stdin)


def test_a_failure_may_come_before_and_after_what_follows() -> None:
    found = explore(story(RACE), depth=4)
    orders = [tuple(step.partition(" ")[0] for step in outcome.example) for outcome in found.outcomes]
    assert found.orders == 5
    assert not found.breaches
    assert not found.left_out
    assert all(order[:3] == ("turn_opened", "input_seen", "reply") for order in orders)
    for outcome in found.outcomes:
        assert outcome.seen["turns"] == {"c1/P": ["reply-rescue"]} or "closing words" in str(outcome.seen["channels"])


def test_depth_0_is_the_order_of_the_file() -> None:
    found = explore(story(RACE), depth=0)
    assert [outcome.own for outcome in found.outcomes] == [True]
    assert found.orders == 1


def test_deeper_is_more() -> None:
    orders = [explore(story(RACE), depth=depth).orders for depth in range(4)]
    assert orders == sorted(orders)
    assert orders[0] < orders[-1]


def test_what_is_left_out_is_told() -> None:
    file = A34.with_name("p11-grace-with-an-interim.jsonl")
    assert explore(read_scenario(file), depth=4, states_max=20).left_out
    assert not explore(read_scenario(file), depth=4).left_out


@pytest.mark.parametrize("name", ["quote not reserved"])
def test_a_planted_bug_is_found(name: str) -> None:
    with planted.MUTANTS[name]():
        found = explore(read_scenario(A34), depth=4)
    assert any("quote" in breach.what for breach in found.breaches)
    assert all(breach.example and breach.transcript for breach in found.breaches)


@pytest.mark.parametrize(
    ("name", "file"),
    [("a waiting send is overtaken", "a64-flood-wait"), ("joined calls are never answered", "a40-replayed")],
)
def test_a_planted_bug_that_the_order_of_the_file_hides_is_found_in_another(name: str, file: str) -> None:
    scenario = read_scenario(A34.with_name(f"{file}.jsonl"))
    with {**planted.MUTANTS, **ends.MUTANTS}[name]():
        assert not explore(scenario, depth=0).breaches
        assert explore(scenario, depth=3).breaches


def test_the_command_prints_outcomes_with_an_order() -> None:
    shown = command(A34, "--depth", "6")
    assert shown.exit_code == 0
    assert "1 distinct outcome, no breach" in shown.output
    assert "tg/100: reply 'A' (turn P, quoting 6406)" in shown.output
    assert "    - reply:c1:c1 sent\n" in shown.output


def test_the_command_ends_with_1_on_a_breach() -> None:
    with planted.MUTANTS["quote not reserved"]():
        shown = command(A34)
    assert shown.exit_code == 1
    assert "breach: " in shown.output


def test_the_command_speaks_json() -> None:
    shown = json.loads(command(A34, "--json").output)
    assert shown["orders"] == 2
    assert shown["outcomes"][0]["seen"]["channels"]["tg/100"][0]["quote"] == 6406


@pytest.mark.parametrize("text", [b"", b"{}", b'{"transcript": "t"}\n', b'{"scenario": "s"}\n{"reply": 1}\n'])
def test_what_cannot_be_explored_is_told_in_a_line(text: bytes) -> None:
    told = command("-", stdin=text)
    assert told.exit_code == 2
    assert "Error: " in told.output
