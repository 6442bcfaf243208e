"""`turnkeeper journal`: look into a journal's file, replay it, and take it out of the machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from turnkeeper.cli.screen import Bar, print_json, safe
from turnkeeper.engine.codec import SCHEMA
from turnkeeper.engine.errors import JournalError

if TYPE_CHECKING:
    from turnkeeper.actors.history import History, Verified
    from turnkeeper.engine.recovery import Replayed

__all__ = ["journal"]

DIFFERS = 1
"""Exit code of `verify`."""
SHOWN = 10
FILE = click.argument("file", type=click.Path(path_type=Path))
AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group()
def journal() -> None:
    """Look into the journal of a stopped engine; nothing is changed in it."""


@contextmanager
def _opened(file: Path) -> Generator[History, None, None]:
    from turnkeeper.actors.history import History

    with History(file) as history:
        yield history


@contextmanager
def _bar(total: int) -> Generator[Callable[[Replayed], None], None, None]:
    """Show how far a replay of so many frames is, on a terminal: in hundredths, for there may be millions."""
    steps, done = min(total, 100), 0
    with Bar(steps) as bar:

        def forward(_: Replayed) -> None:
            nonlocal done
            before, done = done * steps // total, done + 1
            if done * steps // total > before:
                bar.step()

        yield forward


@journal.command()
@FILE
@AS_JSON
def info(file: Path, *, as_json: bool) -> None:
    """Say what stands in FILE: how much, from when to when, and where a restart begins."""
    with _opened(file) as history:
        found = history.info()
    if as_json:
        print_json(msgspec.structs.asdict(found))
        return
    start = "the first record" if found.snapshot_seq is None else f"the snapshot at {found.snapshot_seq}"
    click.echo(safe(f"{found.path}: {found.bytes:_} bytes, schema {found.schema}, rules {found.rules}"))
    click.echo(f"  history   {found.frames:_} frames, records {found.first_seq} to {found.last_seq}")
    click.echo(f"  time      {found.first_ms} to {found.last_ms} ms")
    click.echo(f"  a restart begins at {start}, and replays {found.frames_to_replay:_} frames")
    if found.snapshot_seq is not None:
        click.echo(f"  snapshot  {found.chats:_} chats")
    if not found.whole:
        click.echo("  the history does not reach back to the first record (journal.retain_days)")


@journal.command()
@FILE
def dump(file: Path) -> None:
    """Print FILE as a recording: JSON Lines that `turnkeeper run` reads."""
    from turnkeeper.engine.lab.recording import recording_of

    with _opened(file) as history:
        for line in recording_of(history.records, file.name):
            click.echo(json.dumps(line))


@journal.command()
@FILE
@AS_JSON
@click.pass_context
def verify(ctx: click.Context, file: Path, *, as_json: bool) -> None:
    """Replay FILE and compare: what each record commanded and, with a snapshot, every chat's state.

    Exit code 1: something is decided otherwise than was recorded.
    """
    with _opened(file) as history, _bar(history.count()) as progress:
        found = history.verify(progress)
    if as_json:
        print_json({"file": str(file), "ok": found.ok, **msgspec.structs.asdict(found)})
    else:
        for line in _verified(file, found):
            click.echo(safe(line))
    if not found.ok:
        ctx.exit(DIFFERS)


def _verified(file: Path, found: Verified) -> Iterator[str]:
    """Write what was found."""
    verdict = "replays as it was recorded" if found.ok else "DIFFERS"
    yield f"{file}: {verdict}; {found.records:_} records from {found.from_seq} on, {found.chats:_} chats of the snapshot"
    for seq in found.differs[:SHOWN]:
        yield f"  record {seq} commands something else now"
    for chat in found.states_differ[:SHOWN]:
        yield f"  the state of chat {chat} is another"
    more = max(0, len(found.differs) - SHOWN) + max(0, len(found.states_differ) - SHOWN)
    if more:
        yield f"  and {more} more"
    if found.other_rules:
        yield f"  {found.other_rules:_} records were decided by other rules"
    if found.from_seq > 1:
        yield "  records before that are not kept any more (journal.retain_days), so states could not be compared"
    if found.cut:
        yield f"  the last {found.cut} frames are damaged; a restart cuts them off"


@journal.command()
@FILE
@click.option("--redact", is_flag=True, help="Keep ids, lengths and hashes only, so that it can go into a report.")
@click.option("--schema", type=click.IntRange(1, SCHEMA), help="Write a journal that this older version reads.")
@click.option("--out", type=click.Path(path_type=Path), help="A new file; with --schema it must be given.")
def export(file: Path, *, redact: bool, schema: int | None, out: Path | None) -> None:
    """Print the records of FILE as JSON Lines, or write them as a journal of an older schema."""
    if schema is not None and (redact or out is None):
        raise click.UsageError("--schema writes a journal: it needs --out, and cannot be redacted")
    if out is not None and out.exists():
        raise click.UsageError(f"{out} exists; give the path of a new file")
    with _opened(file) as history:
        if schema is not None and out is not None:
            from turnkeeper.actors.exporting import export_as

            frames = export_as(history, schema, out)
            click.echo(safe(f"{out}: {frames:_} frames, schema {schema}"))
            return
        lines = (json.dumps(plain) for plain in _plain(history, redact=redact))
        if out is None:
            for line in lines:
                click.echo(line)
            return
        _write(out, lines)


def _plain(history: History, *, redact: bool) -> Iterator[dict[str, Any]]:
    from turnkeeper.engine.lab.redacting import Redactor

    redactor = Redactor(os.urandom(16))
    for record in history.records():
        yield redactor.record(record) if redact else msgspec.to_builtins(record)


def _write(out: Path, lines: Iterator[str]) -> None:
    """Write a private file."""
    try:
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise JournalError(f"{out}: cannot be written ({error.strerror})") from error
