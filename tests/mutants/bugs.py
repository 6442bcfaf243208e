"""The planted bugs that the simulator must find alone: `make bugs`.

Each bug is planted in the running engine, and seeds are simulated until one breaches: the oracle, which sees what
users, agent and host saw, has to complain. No scenario and no expectation is asked, and what the engine checks of
itself does not count. Printed is how many seeds it took from the first on; exit 1 if a bug survives them all.

`python -m tests.mutants.bugs [WORD…] [--seeds N] [--from N] [--jobs N]` hunts those whose names hold every word.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from tests.mutants import answers, ends, replies
from tests.mutants.planting import patched
from turnkeeper.engine import cell
from turnkeeper.engine.invariants import unjudged
from turnkeeper.engine.lab import runtime
from turnkeeper.engine.lab.simulator import simulate_seed

__all__ = ["BUGS", "SEEDS_MAX", "Catch", "hunt"]

SEEDS_MAX = 2000
OF_REPLIES = {**replies.MUTANTS, **ends.MUTANTS}
"""Name → how to plant it: whose a reply is, and how a turn ends (RULES-replies)."""
BUGS = {**OF_REPLIES, **answers.MUTANTS}
"""These, and what a turn answers (RULES-answers)."""


class Catch(NamedTuple):
    """What became of a hunt."""

    bug: str
    seeds: int
    """How many seeds it took."""
    seed: int | None
    """The one that found it; None: the bug survived."""
    complaint: str


def hunt(bug: str, seeds: Iterable[int]) -> Catch:
    """Simulate seeds with a bug planted until one breaches, that without it does not."""
    count = 0
    for count, seed in enumerate(seeds, 1):
        with BUGS[bug](), unwatched():
            complaint = breach_of(seed)
        if complaint and not breach_of(seed):
            return Catch(bug, count, seed, complaint)
    return Catch(bug, count, None, "SURVIVED")


@contextmanager
def unwatched() -> Iterator[None]:
    """Leave out what the engine checks of itself, so that only what outsiders see counts."""
    with patched(cell, "violations", unjudged), patched(runtime, "audit", lambda _: []):
        yield


def breach_of(seed: int) -> str:
    """Return what a seed complains of first; empty if of nothing. A raise is a complaint of the host."""
    try:
        breaches = simulate_seed(seed, paranoid=False).breaches
    except Exception as error:  # noqa: BLE001 - whatever a bug breaks, the host would see it
        return f"raised {type(error).__name__}: {error}"
    return breaches[0] if breaches else ""


def hunts(bugs: list[str], seeds: range, jobs: int) -> Iterator[Catch]:
    """Hunt every bug, several at a time."""
    if jobs == 1:
        yield from (hunt(bug, seeds) for bug in bugs)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(hunt, bugs, [seeds] * len(bugs))


def main(given: list[str] | None = None) -> int:
    """Hunt the bugs that are asked for, and print the table."""
    parser = argparse.ArgumentParser(prog="make bugs")
    parser.add_argument("words", nargs="*", help="only bugs whose names hold every word")
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="seeds for each bug, at most")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args(given)
    bugs = [bug for bug in BUGS if all(word in bug for word in asked.words)]
    if not bugs:
        parser.error(f"no bug has all of these words in its name: {' '.join(asked.words)}")
    began_s, caught = time.monotonic(), 0
    print("| bug | rules | seeds | complaint |\n|---|---|---:|---|")
    for catch in hunts(bugs, range(asked.first, asked.first + asked.seeds), asked.jobs):
        caught += catch.seed is not None
        found = str(catch.seeds) if catch.seed is not None else f"> {catch.seeds}"
        rules = "replies" if catch.bug in OF_REPLIES else "answers"
        print(f"| {catch.bug} | {rules} | {found} | {shown(catch.complaint)} |", flush=True)
    print(f"\n{caught} of {len(bugs)} bugs caught, from seed {asked.first}, in {time.monotonic() - began_s:.0f} s")
    return 0 if caught == len(bugs) else 1


def shown(complaint: str) -> str:
    """Put a complaint into a cell of the table."""
    line = complaint.replace("|", "/").replace("\n", " ")
    return line if len(line) <= 110 else line[:109] + "…"


if __name__ == "__main__":
    sys.exit(main())
