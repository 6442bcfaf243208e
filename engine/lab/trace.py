"""What happened, for a reader: each event, the rows that decided it with their why, what was commanded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine.commands import Ack, Command, Preview, Send, TurnSettled
from turnkeeper.engine.ids import ChannelRef

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.journal import Body
    from turnkeeper.engine.journal import Record as JournalRecord

__all__ = ["Moment", "brief", "describe", "moment_of"]


class Moment(msgspec.Struct, frozen=True):
    """One record as a reader sees it."""

    at_ms: int
    title: str
    rows: tuple[tuple[str, str, str], ...] = ()
    """(table, row, why), in order."""
    signals: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    error: str = ""
    line: int = 0
    """The line of the scenario file that led to it."""

    def lines(self) -> list[str]:
        """Write it as text: the event, then what decided, then what was done."""
        out = [f"{self.at_ms:>8} ms  {self.title}"]
        out += [f"             | {table}: {row} ({why})" for table, row, why in self.rows]
        out += [f"             ~ {signal}" for signal in self.signals]
        out += [f"             > {command}" for command in self.commands]
        if self.error:
            out.append(f"             ! set aside: {self.error}")
        return out


def moment_of(record: JournalRecord, run: Run, line: int = 0) -> Moment | None:
    """Describe a run that a line of a scenario led to; None for bookkeeping that no reader misses."""
    body = record.body
    if body.done is not None or (body.handed is not None and not run.rows and not run.signals and run.go):
        return None
    rows = tuple((row.table, row.row, row.why) for row in run.rows)
    signals = tuple(brief(signal) for signal in run.signals)
    error = "" if run.error is None else f"{type(run.error).__name__}: {run.error}"
    return Moment(record.at_ms, _title(body), rows, signals, tuple(map(describe, run.commands)), error, line)


def _title(body: Body) -> str:
    if body.event is not None:
        return brief(body.event)
    if body.due is not None:
        return f"due: {body.due.owner} of {body.due.chat}"
    if body.handed is not None:
        return f"handed over: {body.handed.delivery}, attempt {body.handed.attempt}"
    if body.recovered is not None:
        return f"recovered after {body.recovered.down_ms} ms"
    return "configured"


def brief(value: msgspec.Struct) -> str:
    """Write an event or signal in one line: its type and the fields that say something."""
    skipped = {"chat", "table", "row", "why"}
    fields = {f.name: f.default for f in msgspec.structs.fields(type(value))}
    shown = [
        f"{name}={_word(getattr(value, name))}"
        for name, default in fields.items()
        if name not in skipped and getattr(value, name) != default and getattr(value, name) is not None
    ]
    return " ".join([str(type(value).__struct_config__.tag), *shown])


def _word(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_word, value)) + "]"
    text = str(value)
    if isinstance(value, str | ChannelRef) and (not text or " " in text or not text.isprintable()):
        return repr(text)
    return text


def describe(command: Command) -> str:
    """Write a command in one line, as a person on call would say it."""
    match command:
        case Send():
            return _send(command)
        case Ack():
            end = f"ok, message {_word(command.message)}" if command.ok else f"error: {command.error}"
            how = f", {command.delivery}" if command.delivery else ""
            return f"ack {_word(command.call_id)}: {end}{how}"
        case TurnSettled():
            return (
                f"turn_settled {_word(command.turn_id)}: {command.outcome} "
                f"(replies {command.replies}, delivered {command.delivered})"
            )
        case Preview():
            quote = "" if command.quote is None else f", quoting {_word(command.quote)}"
            return f"preview in {_word(command.channel)}: {command.text!r} for turn {_word(command.turn_id)}{quote}"
        case _:
            return brief(msgspec.structs.replace(command, id=""))


def _send(command: Send) -> str:
    of = "no turn" if command.turn_id is None else f"turn {_word(command.turn_id)}"
    quote = "no quote" if command.quote is None else f"quoting {_word(command.quote)}"
    notes = [
        note
        for note, given in (
            ("interim", command.interim),
            ("as plain text", command.format == "plain"),
            ("replacing the preview", command.replaces_preview),
            (f"attempt {command.attempt}", command.attempt > 1),
            (f"from part {command.resume_part}", command.resume_part is not None),
        )
        if given
    ]
    said = command.text or ", ".join(command.files)
    tail = "".join(f", {note}" for note in notes)
    return f"send ({command.purpose}) to {_word(command.channel)}: {said!r} for {of}, {quote}{tail}"
