"""`turnkeeper transcript`: look at a session file, measure it, ask it whether an answer went out."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import click
import msgspec

from turnkeeper.engine.config import TranscriptRules
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.transcript.check import FileReport, check_session, check_trajectory, total
from turnkeeper.engine.transcript.content import shown
from turnkeeper.engine.transcript.entries import Boundary, ContextLine, Item, Receipt, Row, Summary, Utterance
from turnkeeper.engine.transcript.fallback import Dropped
from turnkeeper.engine.transcript.lines import Fields, dumps
from turnkeeper.engine.transcript.openclaw import SessionFile, is_trajectory, read_session
from turnkeeper.engine.transcript.view import PromptView, prompt_view

__all__ = ["transcript"]

UNREADABLE = 2
"""Exit code for a file that cannot be read."""

PROGRESS_BYTES_MIN = 4 << 20
"""Less is read before a bar could be seen."""

FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


class UnreadableFile(click.ClickException):
    """A file the command cannot read."""

    exit_code = UNREADABLE


@click.group()
def transcript() -> None:
    """Look at session transcripts: the prompt, what contaminates it, what was delivered."""


def _lines(path: Path, tick: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """Yield a file's lines, and tell how many bytes went by.

    Raises:
        UnreadableFile: it cannot be opened or read.

    """
    try:
        with contextlib.ExitStack() as stack:
            source = sys.stdin.buffer if str(path) == "-" else stack.enter_context(path.open("rb"))
            for line in source:
                if tick is not None:
                    tick(len(line))
                yield line
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror}; give the path of a session or trajectory file") from None


def _session(path: Path) -> SessionFile:
    session = read_session(_lines(path))
    if not len(session.store) and (session.damaged or not session.store.session):
        why = f"line {session.damaged[0].line}: {session.damaged[0].why}" if session.damaged else "it is empty"
        raise UnreadableFile(f"{path}: no session file: {why}")
    return session


def _safe(text: str) -> str:
    """Take control characters out: a transcript is other people's text, and a terminal obeys some of them."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _print_json(value: object) -> None:
    click.echo(dumps(msgspec.to_builtins(value)).decode("utf-8", "replace"))


@transcript.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option(
    "--fallback", type=click.Choice(["cover", "text", "identical"]), default="cover", help="transcript.fallback"
)
@click.option("--standalone", type=click.Choice(["hide", "context"]), default="hide", help="transcript.standalone")
def view(file: Path, as_json: bool, fallback: str, standalone: str) -> None:  # noqa: FBT001 - click passes flags by name
    """Show the prompt that FILE gives, and struck through what is not in it, with the reason."""
    session = _session(file)
    rules = msgspec.convert({"fallback": fallback, "standalone": standalone}, TranscriptRules)
    path = session.store.path()
    made = prompt_view(path, rules)
    if as_json:
        _print_json(_view_json(made, session))
        return
    gone = {one.entry.id: one for one in made.dropped}
    context = {item.id: item for item in made.messages if isinstance(item, ContextLine)}
    for item in path:
        _print_item(item, gone.get(item.id), context.get(item.id))
    report = made.report
    counts = ", ".join(f"{count} {reason}" for reason, count in report.counts.items() if count)
    click.echo(f"\n{counts or 'empty'}; {report.dropped_bytes} bytes kept out of the prompt")
    _print_damaged(session)


def _view_json(made: PromptView, session: SessionFile) -> Fields:
    return {
        "messages": [_item_json(item) for item in made.messages if not isinstance(item, Boundary)],
        "dropped": [_dropped_json(one) for one in made.dropped],
        "report": made.report.counts,
        "dropped_bytes": made.report.dropped_bytes,
        "unpaired_calls": made.unpaired_calls,
        "unpaired_results": made.unpaired_results,
        "damaged": msgspec.to_builtins(session.damaged),
    }


def _item_json(item: Item) -> Fields:
    if isinstance(item, Utterance | Receipt):
        return {"id": item.id, "message": item.raw.get("message", item.raw)}
    return {"id": item.id, "summary" if isinstance(item, Summary) else "context": getattr(item, "text", "")}


def _dropped_json(one: Dropped) -> Fields:
    return {
        "id": one.entry.id,
        "reason": one.reason,
        "row": one.row,
        "why": one.why,
        "shown_by": one.shown_by,
        "bytes": one.size_bytes,
    }


def _print_item(item: Item, gone: Dropped | None, context: ContextLine | None) -> None:
    if isinstance(item, Row | Boundary):
        return
    if isinstance(item, ContextLine | Summary):
        click.secho(f"summary  {item.id}", bold=True)
        click.echo(_indented(item.text))
        return
    voice = "receipt" if isinstance(item, Receipt) else str(item.voice)
    why = ""
    if gone is not None:
        by = f", shown by {gone.shown_by}" if gone.shown_by else ""
        why = f"  not in the prompt: {gone.reason} ({gone.row}: {gone.why}{by})"
    click.secho(f"{voice}  {_safe(item.id)}", bold=True, nl=not why)
    if why:
        click.secho(_safe(why), dim=True)
    click.echo(click.style(_indented(_text(item)), strikethrough=gone is not None, dim=gone is not None))
    if context is not None:
        click.echo(_indented(context.text))


def _text(item: Utterance | Receipt) -> str:
    """Write what a message shows on a terminal: its text, and a word for everything else."""
    sight = shown(item.content)
    calls = [f"[tool call {call}]" for call in item.calls] if isinstance(item, Utterance) else []
    media = [f"[{len(block)} bytes that are no text]" for block in sight.display]
    return "\n".join(filter(None, [sight.text, *media, *calls])) or "(empty)"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in _safe(text).split("\n"))


def _print_damaged(session: SessionFile) -> None:
    for line in session.damaged:
        click.echo(f"line {line.line}: {_safe(line.why)}" if line.line else _safe(line.why), err=True)


@transcript.command()
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a file, and one for the sum.")
@click.pass_context
def check(ctx: click.Context, files: tuple[Path, ...], as_json: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """Measure session and trajectory FILES: what a naive prompt shows twice, and what the view drops.

    Exit code 1: a prompt built by a filter on provider and model is (or was) contaminated. 2: a file cannot be read.
    """
    with _progress(files) as tick:
        reports = [_checked(file, tick) for file in files]
    shown_reports = reports if len(reports) == 1 else [*reports, total(reports)]
    for report in shown_reports:
        if as_json:
            _print_json(report)
        else:
            _print_report(report)
    if any(report.contaminated for report in reports):
        ctx.exit(1)


def _checked(file: Path, tick: Callable[[int], None] | None) -> FileReport:
    lines = _lines(file, tick)
    first = next(lines, None)
    if first is None:
        raise UnreadableFile(f"{file}: it is empty; give the path of a session or trajectory file")
    measure = check_trajectory if is_trajectory(first) else check_session
    report = measure(str(file), _with_first(first, lines))
    if report.kind == "session" and not report.messages and report.damaged:
        line = report.damaged[0]
        raise UnreadableFile(f"{file}: no session or trajectory file: line {line.line}: {line.why}")
    return report


def _with_first(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


@contextlib.contextmanager
def _progress(files: tuple[Path, ...]) -> Generator[Callable[[int], None] | None]:
    """Show a bar over all bytes on standard error, if that is a terminal and there is much to read."""
    sizes = [file.stat().st_size for file in files if str(file) != "-" and file.is_file()]
    if sum(sizes) < PROGRESS_BYTES_MIN or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=sum(sizes), label="reading", file=sys.stderr) as bar:
        yield bar.update


def _print_report(report: FileReport) -> None:
    naive, view_ = report.naive, report.view
    click.secho(_safe(report.file), bold=True)
    click.echo(f"  {report.messages} messages, {report.receipts} receipts, {view_['standalone']} of them standalone")
    if report.kind != "session":
        click.echo(f"  {report.contaminated} of {report.prompts} prompts contaminated")
    if report.unrecorded:
        click.echo(f"  {report.unrecorded} prompts whose messages the recording left out or cut")
    click.echo(
        f"  a filter on provider and model shows doubled pairs: {naive.pairs}, repeated chunks: {naive.chunks}, "
        f"receipts: {naive.receipts}; {naive.twice_bytes} bytes twice"
    )
    dropped = ", ".join(f"{count} {reason}" for reason, count in view_.items() if reason != "kept" and count)
    click.echo(f"  the view keeps {view_['kept']} and drops {dropped or 'nothing'}; {report.view_pairs} pairs left")
    for label, found in (
        ("answers that repeat themselves (never dropped)", report.self_repeats),
        ("perhaps receipts of media, nobody can know", report.undecidable),
        ("tool calls or results without the other", report.unpaired),
    ):
        if found:
            click.echo(f"  {label}: {len(found)} ({_safe(_some(found))})")
    for line in report.damaged:
        where = f"line {line.line}: " if line.line else ""
        click.echo(f"  damaged: {where}{_safe(line.why)}")


def _some(ids: list[str], most: int = 5) -> str:
    return ", ".join(ids[:most]) + (", …" if len(ids) > most else "")


@transcript.command()
@click.argument("file", type=FILE)
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def lookup(ctx: click.Context, file: Path, key: str, as_json: bool) -> None:  # noqa: FBT001 - click passes flags by name
    """Ask FILE whether the delivery KEY went out: sent, suppressed, unknown or none.

    Exit code 1: none, so it may be sent. 2: the file cannot be read.
    """
    answer = _session(file).store.lookup(key)
    if as_json:
        entry = None if answer.entry is None else answer.entry.raw
        _print_json({"standing": answer.standing, "row": answer.row, "why": answer.why, "entry": entry})
    else:
        where = "" if answer.entry is None else f", entry {_safe(answer.entry.id)}"
        click.echo(f"{answer.standing}: {answer.why} ({answer.row}{where})")
    if answer.standing is Standing.NONE:
        ctx.exit(1)
