"""`make mutation`: change the rules at random places, and see whether a scenario notices.

`python -m tests.mutation.run --sample 200 --seed 1` tries so many mutants of `engine/{chat,turn,channel}` and
`engine/table.py`; without `--sample` all of them. Every mutant runs the scenarios that call the changed function,
and no other test. Survivors are printed with the line before and after.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import Random

from tests.mutation.plan import ROOT, Mutant, files_of_rules, mutants_of
from tests.mutation.trial import Reached, forked, reached_by, try_out

__all__ = ["main"]


@cache
def _functions(file: str) -> tuple[tuple[int, int, int], ...]:
    """List (first line with decorators, first line of the body's code, last line) of each function of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found: list[tuple[int, int, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found.append((first, node.body[0].lineno, node.end_lineno or first))
    return tuple(found)


def _called(mutant: Mutant, reached: Reached, passing: list[str]) -> list[str]:
    """List the scenarios that may notice: those that call the function, or all for what runs at import."""
    around = [one for one in _functions(mutant.file) if one[1] <= mutant.line <= one[2]]
    if not around or mutant.file == "engine/table.py":
        return passing
    return reached.get((mutant.file, max(around)[0]), [])


def _tried(mutant: Mutant, stems: list[str], seeds: int = 0) -> tuple[str, str]:
    told: tuple[str, str] | None = forked(lambda: try_out(mutant, stems, seeds))
    return ("killed", "it ran for ever, or died") if told is None else told


def _chosen(sample: int, seed: int) -> tuple[list[Mutant], int]:
    """Return the mutants to try, and how many there are."""
    mutants = [mutant for file in files_of_rules() for mutant in mutants_of(file, seed)]
    total = len(mutants)
    return (Random(seed).sample(mutants, min(sample, total)) if sample else mutants), total


def _tell(mutant: Mutant, how: str, by: str, stems: list[str], out: Path | None) -> None:
    if how in {"survived", "noticed by the simulator"}:
        before, after = mutant.change()
        sys.stdout.write(
            f"{how}: {mutant.file}:{mutant.line} ({len(stems)} scenarios, {by or 'not simulated'})\n  - {before}\n  + {after}\n"
        )
        sys.stdout.flush()
    if out:
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"file": mutant.file, "line": mutant.line, "how": how, "by": by}) + "\n")


def main() -> int:
    """Try mutants; returns 0 whatever survives: the score is read, not enforced."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=0, help="so many mutants; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--simulate", type=int, default=0, help="give survivors to the simulator for so many seeds")
    parser.add_argument("--out", type=Path, help="write one JSON object a line")
    asked = parser.parse_args()
    began_s = time.monotonic()
    reached, passing = forked(reached_by)
    mutants, total = _chosen(asked.sample, asked.seed)
    sys.stdout.write(f"{len(mutants)} of {total} mutants, {len(passing)} scenarios\n")
    ends: Counter[str] = Counter()
    with ThreadPoolExecutor(asked.workers) as pool:
        stems = [_called(mutant, reached, passing) for mutant in mutants]
        results = pool.map(_tried, mutants, stems, [asked.simulate] * len(mutants))
        for number, (mutant, (how, by), called) in enumerate(zip(mutants, results, stems, strict=True), start=1):
            ends[how] += 1
            _tell(mutant, how, by, called, asked.out)
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{number} of {len(mutants)}")
    spent_s = time.monotonic() - began_s
    noticed = len(mutants) - ends["survived"] - ends["noticed by the simulator"]
    sys.stdout.write(
        f"scenarios noticed {noticed} of {len(mutants)} ({100 * noticed / len(mutants):.1f} %), {dict(ends)}\n"
    )
    sys.stdout.write(f"{spent_s:.0f} s, {spent_s / len(mutants):.2f} s a mutant\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
