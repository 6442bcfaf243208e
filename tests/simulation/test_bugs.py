"""Planted bugs that the simulator finds alone: nine of the suite, each in the seeds around the one that shows it.

`make bugs` hunts all of them, from any seed. If a change of the simulator moves these seeds, take them from there.
"""

from __future__ import annotations

import pytest

from tests.mutants import bugs
from tests.mutants.bugs import BUGS, hunt, main

KNOWN: dict[str, int] = {
    "quote not reserved": 1,
    "ack on arrival": 0,
    "no in-flight count for only-open": 1,
    "commit ignores seq (channel lane)": 33,
    "commit ignores seq (push lane)": 34,
    "receipt check off": 162,
    "a rescue after any end": 8,
    "silence goes on counting through a crash": 75,
    "handed over again as often as it is dropped": 104,
}
"""Bug → the seed that showed it last."""
AROUND = 18


@pytest.mark.parametrize("bug", KNOWN)
def test_a_bug_is_found_by_what_outsiders_see(bug: str) -> None:
    seed = KNOWN[bug]
    catch = hunt(bug, range(max(0, seed - AROUND), seed + AROUND))
    assert catch.seed is not None, f"`make bugs` says which seed shows it now: {bug}"
    assert not catch.complaint.startswith(("invariant", "audit", "set aside", "raised")), catch.complaint


def test_the_suite_is_large_and_holds_the_bugs_that_it_is_known_by() -> None:
    assert len(BUGS) >= 75
    assert set(KNOWN) <= set(BUGS)


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ack on arrival", "--seeds", "20"]) == 0
    printed = capsys.readouterr().out
    assert "| ack on arrival | replies | 1 | untrue: call " in printed
    assert "1 of 1 bugs caught, from seed 0" in printed


def test_a_survivor_fails_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receipt check off", "--seeds", "1"]) == 1
    assert "| receipt check off | replies | > 1 | SURVIVED |" in capsys.readouterr().out


def test_no_such_bug_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["no such bug"])
    assert "no bug" in capsys.readouterr().err


def test_what_a_healthy_engine_is_blamed_for_is_no_catch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bugs, "breach_of", lambda _: "a false alarm")
    assert hunt("ack on arrival", range(3)).seed is None
