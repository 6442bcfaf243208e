"""`turnkeeper simulate`: run seeds, and shrink the first that breaches to a scenario file."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from turnkeeper.engine.lab.simulator import Simulated, rows_of_rules, shrunk, simulate_seed

__all__ = ["simulate"]


class Tally:
    """What the seeds came to so far."""

    def __init__(self) -> None:
        self.seeds = 0
        self.steps = 0
        self.rows: set[tuple[str, str]] = set()
        self.began_s = time.monotonic()

    def add(self, run: Simulated) -> None:
        """Count a run."""
        self.seeds += 1
        self.steps += run.steps
        self.rows |= run.rows

    @property
    def rate(self) -> float:
        """Seeds a second."""
        return self.seeds / max(0.001, time.monotonic() - self.began_s)


@click.command()
@click.option("--seeds", default=300, show_default=True, type=click.IntRange(1), help="How many seeds to run.")
@click.option("--from", "first", default=0, show_default=True, type=click.IntRange(0), help="The first seed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--out",
    default=".",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Where the scenario file of a breach is written.",
)
@click.option("--all-rows", is_flag=True, help="Fail as well if a table row was never reached.")
def simulate(seeds: int, first: int, out: Path, *, as_json: bool, all_rows: bool) -> None:
    """Simulate users, an agent, a platform and crashes; stop at the first breach and shrink it.

    A seed is a whole run: the same one everywhere. On a breach its shortest script is written as a scenario
    file that `turnkeeper run` plays. Exit 0: no breach; 1: a breach.
    """
    tally = Tally()
    breached = _run(range(first, first + seeds), tally)
    missing = sorted(rows_of_rules() - tally.rows)
    told = {
        "seeds": tally.seeds,
        "from": first,
        "steps": tally.steps,
        "seeds_per_s": round(tally.rate, 1),
        "rows": {"reached": len(rows_of_rules() & tally.rows), "missing": missing},
        "breach": None if breached is None else _written(breached, out),
    }
    if as_json:
        click.echo(json.dumps(told))
    else:
        _print(told)
    if breached is not None or (all_rows and missing):
        sys.exit(1)


def _run(seeds: range, tally: Tally) -> Simulated | None:
    """Run the seeds; returns the first that breached."""
    with click.progressbar(
        seeds,
        label="simulating",
        show_pos=True,
        item_show_func=lambda _: f"{tally.rate:.0f}/s, {len(tally.rows)} rows",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        for seed in bar:
            run = simulate_seed(seed)
            tally.add(run)
            if run.breaches:
                return run
    return None


def _written(run: Simulated, out: Path) -> dict[str, object]:
    """Shrink a breach and write its file."""
    script = shrunk(run)
    file = out / f"seed-{run.seed}.jsonl"
    script.write(file, f"seed {run.seed}: {run.breaches[0]}", run.seed, run.breaches)
    return {"seed": run.seed, "breaches": run.breaches, "file": str(file), "steps": len(script.steps)}


def _print(told: dict[str, object]) -> None:
    rows, breach = told["rows"], told["breach"]
    click.echo(f"{told['seeds']} seeds from {told['from']}, {told['steps']} steps, {told['seeds_per_s']} seeds/s")
    if isinstance(rows, dict):
        click.echo(f"table rows reached: {rows['reached']}, not reached: {len(rows['missing'])}")
        for table, row in rows["missing"]:
            click.echo(f"  not reached: {table} / {row}")
    if isinstance(breach, dict):
        click.echo(f"seed {breach['seed']} breached:", err=True)
        for complaint in breach["breaches"][:5]:
            click.echo(f"  {complaint}", err=True)
        click.echo(f"the {breach['steps']} steps that show it: {breach['file']}", err=True)
        click.echo(f"  turnkeeper run {breach['file']}", err=True)
