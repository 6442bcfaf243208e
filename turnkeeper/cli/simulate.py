"""`turnkeeper simulate`: run seeds, and shrink the first that breaches to a scenario file."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import get_args

import click

from turnkeeper.cli.playing import RuntimeName, maker_of
from turnkeeper.cli.seeds import Kind, Part, Ranges, parts_of, simulated
from turnkeeper.engine.lab.simulation.faults import FAULTS, FaultsName
from turnkeeper.engine.lab.simulator import play, rows_of_rules, shrunk

__all__ = ["simulate"]

SEEDS = 300


class Tally:
    """What the seeds came to so far."""

    def __init__(self) -> None:
        self.seeds = 0
        self.steps = 0
        self.rows: set[tuple[str, str]] = set()
        self.breached: int | None = None
        self.began_s = time.monotonic()

    def add(self, part: Part) -> None:
        """Count some seeds."""
        self.seeds += part.seeds
        self.steps += part.steps
        self.rows |= part.rows
        self.breached = part.breached

    @property
    def spent_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began_s

    @property
    def rate(self) -> float:
        """Seeds a second."""
        return self.seeds / max(0.001, self.spent_s)


@click.command()
@click.option("--seeds", type=click.IntRange(1), help=f"How many seeds to run.  [default: {SEEDS}]")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Run seeds until this time has passed.")
@click.option("--from", "first", default=0, show_default=True, type=click.IntRange(0), help="The first seed.")
@click.option(
    "--runtime",
    type=click.Choice(get_args(RuntimeName)),
    default="cell",
    show_default=True,
    help="The plain cell, the whole engine with its actors, that on a SQLite journal.",
)
@click.option(
    "--faults",
    type=click.Choice(list(FAULTS)),
    default="some",
    show_default=True,
    help="How much goes wrong; none: the platform settles well and nothing crashes.",
)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="How many processes run seeds.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--out",
    default=".",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Where the scenario file of a breach is written.",
)
@click.option("--all-rows", is_flag=True, help="Fail as well if a table row was never reached.")
def simulate(  # noqa: PLR0913 - the options of the command
    *,
    seeds: int | None,
    minutes: float | None,
    first: int,
    runtime: RuntimeName,
    faults: FaultsName,
    jobs: int,
    out: Path,
    as_json: bool,
    all_rows: bool,
) -> None:
    """Simulate users, an agent, a platform and crashes; stop at the first breach and shrink it.

    A seed is a whole run: the same one everywhere, in however many processes. On a breach its shortest script is
    written as a scenario file, which `turnkeeper run` fails for as long as the breach is there. Exit 0: no breach;
    1: a breach.
    """
    if seeds is not None and minutes is not None:
        raise click.UsageError("--seeds and --minutes both say when to end; give one of them.")
    kind, tally = Kind(runtime, faults), Tally()
    _run(tally, kind, jobs, Ranges(first, jobs, seeds=seeds or SEEDS, minutes=minutes))
    missing = sorted(rows_of_rules() - tally.rows)
    told: dict[str, object] = {
        "seeds": tally.seeds,
        "from": first,
        "runtime": runtime,
        "faults": faults,
        "steps": tally.steps,
        "seeds_per_s": round(tally.rate, 1),
        "rows": {"reached": len(rows_of_rules() & tally.rows), "missing": missing},
        "breach": None if tally.breached is None else _written(tally.breached, kind, out),
    }
    if as_json:
        click.echo(json.dumps(told))
    else:
        _print(told)
    if tally.breached is not None or (all_rows and missing):
        sys.exit(1)


def _run(tally: Tally, kind: Kind, jobs: int, cut: Ranges) -> None:
    """Run the seeds up to the first that breaches."""
    parts = parts_of(cut, kind, jobs)
    with click.progressbar(
        range(cut.total),
        label="simulating",
        show_pos=not cut.timed,
        item_show_func=lambda _: f"{tally.rate:.0f}/s, {len(tally.rows)} rows",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        for part in parts:
            tally.add(part)
            bar.update(cut.done(tally.seeds) - bar.pos)
            if tally.breached is not None:
                break
    parts.close()


def _written(seed: int, kind: Kind, out: Path) -> dict[str, object]:
    """Shrink a breach and write its file."""
    maker = None if kind.runtime == "cell" else maker_of(kind.runtime)
    run = simulated(seed, kind)
    script = shrunk(run, maker)
    file = out / f"seed-{seed}.jsonl"
    source = f"turnkeeper simulate --seeds 1 --from {seed} --runtime {kind.runtime} --faults {kind.faults}"
    script.write(file, f"seed {seed}: {run.breaches[0]}", source, play(script, maker))
    return {
        "seed": seed,
        "breaches": run.breaches,
        "file": str(file),
        "steps": len(script.steps),
        "again": f"turnkeeper run {file}" + ("" if kind.runtime == "cell" else f" --runtime {kind.runtime}"),
    }


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
        click.echo(f"  {breach['again']}", err=True)
