"""Runs every mutant: `make mutants`. Prints table / row → killed by whom; exit 1 on a survivor without a reason.

`python -m tests.mutants.run [WORD…]` runs those whose names hold every word.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from tests.mutants import answers, ends, replies
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.judge import Judge
from tests.mutants.tables import mutants_of, tables

SEEDS = 400
Fault = tuple[str, tuple[str, str] | None, Callable[[], AbstractContextManager[None]]]


def faults() -> Iterator[Fault]:
    """Yield every fault: its name, the row it is about, and how to apply it."""
    for table in tables():
        for mutant in mutants_of(table):
            yield mutant.name, (table.name, mutant.row), mutant.applied
    for module in (replies, ends, answers):
        for name, planted in module.MUTANTS.items():
            yield f"planted: {name}", None, planted


def main(words: list[str]) -> int:
    """Run the mutants."""
    judge = Judge(SEEDS)
    if judge.broken:
        print(f"these fail without any fault: {', '.join(judge.broken)}")
    survivors: list[Fault] = []
    killed = 0
    began = time.monotonic()
    wanted = [fault for fault in faults() if all(word in fault[0] for word in words)]
    for name, row, applied in wanted:
        with applied():
            killer = judge.killer(row)
        if killer:
            killed += 1
            print(f"killed    {name} → {killer}")
        else:
            survivors.append((name, row, applied))
    left = _by_seeds(judge, survivors) if survivors else []
    killed += len(survivors) - len(left)
    reasoned = [name for name in left if name in EQUIVALENT]
    for name in left:
        print(f"{'equivalent' if name in EQUIVALENT else 'SURVIVED'}  {name}  {EQUIVALENT.get(name, '')}")
    took_s = time.monotonic() - began
    print(f"{len(wanted)} mutants in {took_s:.0f} s: {killed} killed, {len(reasoned)} equivalent, ", end="")
    print(f"{len(left) - len(reasoned)} survived")
    return 1 if len(left) > len(reasoned) or judge.broken else 0


def _by_seeds(judge: Judge, survivors: list[Fault]) -> list[str]:
    """Ask the simulator about what every scenario let pass; returns what it lets pass too."""
    judge.learn_seeds()
    left: list[str] = []
    for name, row, applied in survivors:
        with applied():
            killer = judge.killer(row)
        if killer:
            print(f"killed    {name} → {killer}")
        else:
            left.append(name)
    return left


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
