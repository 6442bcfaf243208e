"""`turnkeeper explore`: every order of a scenario's events, answers and deadlines."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from turnkeeper.cli.playing import read_bytes
from turnkeeper.cli.screen import FILE, print_json, safe
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.lab.exploration.view import written
from turnkeeper.engine.lab.explorer import STATES_MAX, Explored
from turnkeeper.engine.lab.explorer import explore as explore_scenario
from turnkeeper.engine.lab.lines import parsed
from turnkeeper.engine.lab.scenario import is_transcript, read_scenario

__all__ = ["explore"]


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--depth",
    default=6,
    show_default=True,
    type=click.IntRange(0, 50),
    help="How many events something may come earlier or later than in the file.",
)
@click.option(
    "--states",
    default=STATES_MAX,
    show_default=True,
    type=click.IntRange(1),
    help="How many states to follow at most; what is beyond is left out, and told.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.pass_context
def explore(ctx: click.Context, *, file: Path, depth: int, states: int, as_json: bool) -> None:
    """Explore every order of the scenario in FILE (JSON Lines; `-` is standard input).

    What the platform tells of a send, and a deadline that came, may come before or after each event around it;
    the events of one chat keep their order. Prints what users saw in the end, each with one order that leads to
    it. What the file expects is not compared. Exit 0: no breach; 1: a breach; 2: the file cannot be read.
    """
    lines = parsed(read_bytes(file), str(file))
    if is_transcript(lines):
        raise DecodeError(f"{file}: is a transcript scenario; nothing in it has another order")
    scenario = read_scenario(file, lines)
    try:
        found = explore_scenario(scenario, depth=depth, states_max=states, progress=_progress())
    finally:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        _print(found)
    if found.breaches:
        ctx.exit(1)


class _Line:
    """One line on a terminal that says how far it is."""

    def __call__(self, made: int, moves: int, states: int) -> None:
        """Show it."""
        click.echo(f"\r\x1b[Kexploring: {made} of {moves} moves, {states} states", nl=False, err=True)


def _progress() -> _Line | None:
    return _Line() if sys.stderr.isatty() else None


def _print(found: Explored) -> None:
    click.echo(safe(f"{found.file}: {found.scenario}"))
    what = "order" if found.orders == 1 else "orders"
    click.echo(f"{found.orders} {what} to depth {found.depth}, {found.states} states, {_count(found)}")
    if found.left_out:
        click.echo(f"{found.left_out} states were left out: there are more than --states; some orders were not seen")
    for number, outcome in enumerate(found.outcomes, start=1):
        own = ", the file's own among them" if outcome.own else ""
        click.secho(f"\noutcome {number}: {outcome.orders} of {found.orders} orders{own}", bold=True)
        for line in written(outcome.seen):
            click.echo(safe(f"  {line}"))
        _print_order(outcome.example)
    for breach in found.breaches:
        click.secho(safe(f"\nbreach: {breach.what}"), fg="red")
        _print_order(breach.example)
        for line in breach.transcript:
            click.echo(safe(f"  {line}"))


def _count(found: Explored) -> str:
    outcomes = f"{len(found.outcomes)} distinct outcome" + ("" if len(found.outcomes) == 1 else "s")
    return f"{outcomes}, {len(found.breaches) or 'no'} breach" + ("es" if len(found.breaches) > 1 else "")


def _print_order(order: list[str]) -> None:
    click.echo("  one such order:")
    for step in order:
        click.echo(safe(f"    - {step}"))
