"""`turnkeeper run`: scenarios on the plain cell and on the whole engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from turnkeeper.cli.playing import RUNTIMES, Played, play_file
from turnkeeper.cli.screen import FILE, Bar, print_json, safe
from turnkeeper.engine.errors import DecodeError

__all__ = ["run"]

MISMATCH, UNREADABLE = 1, 2
"""Exit codes; a file that cannot be read weighs more."""


@click.command()
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option(
    "--runtime",
    type=click.Choice(list(RUNTIMES)),
    default="both",
    show_default=True,
    help="The plain cell, the whole engine with its actors, that on a SQLite journal; both: the first two.",
)
@click.option("--transcript", is_flag=True, help="Print what happened for files that pass, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each file and runtime.")
@click.pass_context
def run(ctx: click.Context, *, files: tuple[Path, ...], runtime: str, transcript: bool, as_json: bool) -> None:
    """Run the scenarios in FILES (JSON Lines; `-` is standard input).

    A file without any `expect` is a recording: it runs, and what happened is printed.
    Exit code 0: all passed. 1: something was not as expected. 2: a file cannot be read.
    """
    code = 0
    with Bar(len(files)) as bar:
        for file in files:
            try:
                played = play_file(file, RUNTIMES[runtime])
            except DecodeError as error:
                bar.clear()
                click.echo(f"Error: {safe(str(error))}", err=True)
                code = UNREADABLE
            else:
                bar.clear()
                if not all(one.passed for one in played):
                    code = max(code, MISMATCH)
                _print(played, transcript=transcript, as_json=as_json)
            bar.step()
    ctx.exit(code)


def _print(played: list[Played], *, transcript: bool, as_json: bool) -> None:
    if as_json:
        for one in played:
            print_json({**one.as_json(), "transcript": list(_lines(one))} if transcript else one.as_json())
        return
    _print_line(played)
    shown: list[str] = []
    for one in played:
        if one.passed and one.checked and not transcript:
            continue
        lines = list(_lines(one))
        if one.passed and lines == shown:
            click.echo(f"  on {one.runtime}: the same\n")
            continue
        shown = lines
        click.echo(f"  on {one.runtime}:")
        for line in lines:
            click.echo(safe(line))
        _print_mismatch(one)
        click.echo()


def _print_line(played: list[Played]) -> None:
    passed = all(one.passed for one in played)
    how = "FAILED" if not passed else "passed" if played[0].checked else "ran   "
    ran = ", ".join(one.runtime if one.passed else f"{one.runtime}: no" for one in played)
    click.secho(how, fg="green" if passed else "red", bold=not passed, nl=False)
    click.echo(safe(f"  {played[0].file} ({ran}): {played[0].scenario}"))


def _lines(one: Played) -> Iterator[str]:
    """Write what happened, with the file's comments between."""
    comments = list(one.comments)
    for moment in one.moments:
        while comments and comments[0][0] <= moment.line:
            yield f"             # {comments.pop(0)[1]}"
        yield from moment.lines()
    yield from (f"             # {text}" for _, text in comments)


def _print_mismatch(one: Played) -> None:
    if one.mismatch is None:
        return
    click.secho(safe(f"  first mismatch, {one.file}:{one.mismatch.line}"), fg="red")
    for label, value in (("expected", one.mismatch.expected), ("actual", one.mismatch.actual)):
        for number, line in enumerate(_written(value)):
            click.echo(safe(f"    {label if not number else '':<9} {line}"))


def _written(value: object) -> list[str]:
    """Write a value as a reader compares it: an item a line."""
    if isinstance(value, list) and value:
        return [_one(item) for item in value]
    return [_one(value)]


def _one(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
