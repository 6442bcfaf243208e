"""Runs transcript scenarios: files whose header has "transcript" (PROTOCOL "The scenario file").

Each line is one step on a store: an entry as a file would hold it, an operation, or an expectation. The first
expectation that does not hold ends the run, and the outcome says which line, what it expected and what was
found. A file that is not in this form is an error of the file, never a failed scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from turnkeeper.engine.config import TranscriptRules
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.transcript.appending import Append, Delivered
from turnkeeper.engine.transcript.content import shown
from turnkeeper.engine.transcript.entries import Receipt, message_of, read_entry
from turnkeeper.engine.transcript.faults import TranscriptError
from turnkeeper.engine.transcript.lines import Fields, loads
from turnkeeper.engine.transcript.records import Route, record_of, route_of
from turnkeeper.engine.transcript.store import Store
from turnkeeper.engine.transcript.view import REASONS

__all__ = ["Mismatch", "TranscriptOutcome", "is_transcript", "read_lines", "run_transcript", "run_transcript_file"]

Step = Callable[["_Run", Fields], "tuple[object, object] | None"]

APPEND_WORDS = {Append.SAME_TOLD: "same", Append.FOLDED: "same"}
"""The scenario's three words: what appended nothing gives the same entry again."""


class Mismatch(msgspec.Struct, frozen=True, gc=False):
    """The first expectation that did not hold."""

    line: int
    expected: object
    actual: object


class TranscriptOutcome(msgspec.Struct, frozen=True, gc=False):
    """How a scenario ended."""

    scenario: str
    passed: bool
    mismatch: Mismatch | None = None


def is_transcript(header: Fields) -> bool:
    """Tell whether a scenario file is about a transcript."""
    return "transcript" in header


def read_lines(lines: Iterable[bytes]) -> list[tuple[int, Fields]]:
    """Number and decode the lines of a scenario file, blank ones left out.

    Raises:
        DecodeError: a line is no JSON object; the text gives its number.

    """
    read: list[tuple[int, Fields]] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                step = loads(line)
            except DecodeError as error:
                raise DecodeError(f"line {number}: {error}") from None
            if not isinstance(step, dict) or not step:
                raise DecodeError(f"line {number}: a step is a JSON object; found {line.decode(errors='replace')[:60]}")
            read.append((number, step))
    return read


def run_transcript_file(path: str | Path) -> TranscriptOutcome:
    """Run one file.

    Raises:
        DecodeError: it cannot be read, or is no transcript scenario.

    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise DecodeError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return run_transcript(read_lines(lines))
    except DecodeError as error:
        raise DecodeError(f"{path}: {error}") from None


def run_transcript(lines: list[tuple[int, Fields]], rules: TranscriptRules | None = None) -> TranscriptOutcome:
    """Run a scenario: its numbered lines, the header first.

    Args:
        lines: line number and step.
        rules: the settings where the header's `config` has no `transcript`.

    Raises:
        DecodeError: there is no header, or a step is none; the text gives the line and what is allowed.

    """
    if not lines or not is_transcript(lines[0][1]):
        raise DecodeError('line 1: a transcript scenario begins with {"transcript": …, "source": …}')
    header = lines[0][1]
    run = _Run(_rules(header, rules or TranscriptRules()))
    for number, step in lines[1:]:
        name = next(iter(step))
        act = STEPS.get(name)
        if act is None:
            raise DecodeError(f"line {number}: no step {name!r}; expected one of {', '.join(STEPS)}")
        try:
            missed = act(run, step)
        except (DecodeError, msgspec.ValidationError) as error:
            raise DecodeError(f"line {number}: {error}") from None
        if missed is not None:
            return TranscriptOutcome(str(header["transcript"]), passed=False, mismatch=Mismatch(number, *missed))
    return TranscriptOutcome(str(header["transcript"]), passed=True)


def _rules(header: Fields, given: TranscriptRules) -> TranscriptRules:
    config = header.get("config")
    section = config.get("transcript") if isinstance(config, dict) else None
    if section is None:
        return given
    try:
        return msgspec.convert(section, TranscriptRules)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise DecodeError(f"line 1: config.transcript: {error}") from None


class _Run:
    """A store and the rules it is looked at with."""

    def __init__(self, rules: TranscriptRules) -> None:
        self.rules = rules
        self.store = Store("s1")

    def entry(self, step: Fields) -> tuple[object, object] | None:
        """Take an entry in; a `session` header begins the file of a rotated session."""
        raw = _object(step, "entry")
        if raw.get("type") == "session":
            self.store.rotate(str(raw.get("id", "")))
            return None
        try:
            self.store.add(raw)
        except TranscriptError as error:
            raise DecodeError(str(error)) from None
        return None

    def op(self, step: Fields) -> tuple[object, object] | None:
        """Do what `op` says."""
        name = step["op"]
        act = OPS.get(name) if isinstance(name, str) else None
        if act is None:
            raise DecodeError(f"no op {name!r}; expected one of {', '.join(OPS)}")
        try:
            done = act(self, step)
        except TranscriptError as error:
            done = "rejected"
            if "is" not in step:
                return name, f"rejected: {error}"
        wanted = step.get("is", done)
        return None if wanted == done else (wanted, done)

    def rebuild(self, step: Fields) -> str:
        """Rebuild the store."""
        self.store.rebuild()
        return "rebuilt"

    def compact(self, step: Fields) -> str:
        """Compact the store."""
        self.store.compact(str(step.get("first_kept")), str(step.get("summary", "")), entry_id=str(step.get("id", "")))
        return "compacted"

    def merge(self, step: Fields) -> str:
        """Merge a side branch."""
        entries = step.get("entries")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise DecodeError('merge needs "entries": a list of JSON objects')
        self.store.merge(entries)
        return "merged"

    def fork(self, step: Fields) -> str:
        """Go on in a fork."""
        self.store = self.store.fork(str(step.get("session", "")))
        return "forked"

    def append(self, step: Fields) -> str:
        """Append a receipt, given as its record (with a text) or as a whole entry."""
        verdict = self.store.append(_delivered(_object(step, "receipt"))).verdict
        return APPEND_WORDS.get(verdict, str(verdict))

    def view(self, step: Fields) -> tuple[object, object] | None:
        """Compare the prompt's messages and the report's counts."""
        view = self.store.view(self.rules)
        if view.ids != step["view"]:
            return step["view"], view.ids
        report = step.get("report", {})
        if not isinstance(report, dict) or any(reason not in REASONS for reason in report):
            raise DecodeError(f'"report" maps {", ".join(REASONS)} to numbers; found {report!r}')
        counts = {reason: view.report.counts[reason] for reason in report}
        return None if counts == report else ({"report": report}, {"report": counts})

    def lookup(self, step: Fields) -> tuple[object, object] | None:
        """Compare what a look-up says."""
        asked = _object(step, "lookup")
        unknown = [name for name in asked if name not in LOOKUP_FIELDS]
        if unknown:
            raise DecodeError(f"no lookup by {unknown[0]!r}; expected {', '.join(LOOKUP_FIELDS)}")
        part = msgspec.convert(asked.get("part", (1, 1)), tuple[int, int])
        standing = self.store.lookup(
            str(asked.get("key", "")),
            route=route_of(asked.get("route")) or (Route() if "route" in asked else None),
            answer=str(asked.get("answer", "")),
            part=part,
            text=str(asked.get("text", "")),
        ).standing
        return None if standing == step.get("is") else (step.get("is"), str(standing))

    def count(self, step: Fields) -> tuple[object, object] | None:
        """Compare how much the store holds."""
        asked = _object(step, "store")
        held: Fields = {"entries": len(self.store), "receipts": self.store.receipts}
        if any(name not in held for name in asked):
            raise DecodeError(f'"store" counts {", ".join(held)}; found {", ".join(asked)}')
        found = {name: held[name] for name in asked}
        return None if found == asked else (asked, found)


LOOKUP_FIELDS = ("key", "route", "answer", "part", "text")

OPS: dict[str, Callable[[_Run, Fields], str]] = {
    "rebuild": _Run.rebuild,
    "compact": _Run.compact,
    "merge": _Run.merge,
    "fork": _Run.fork,
    "append": _Run.append,
}

STEPS: dict[str, Step] = {
    "entry": _Run.entry,
    "op": _Run.op,
    "view": _Run.view,
    "lookup": _Run.lookup,
    "store": _Run.count,
    "#": lambda _run, _step: None,
}


def _object(step: Fields, name: str) -> Fields:
    value = step.get(name)
    if not isinstance(value, dict):
        raise DecodeError(f'"{name}" is a JSON object; found {value!r}')
    return value


def _delivered(receipt: Fields) -> Delivered:
    """Read what an append brings: a record as PROTOCOL writes it, or an entry of a session file."""
    if "message" in receipt:
        entry = read_entry(receipt, "receipt")
        if not isinstance(entry, Receipt):
            raise DecodeError("the entry to append bears no mark of a receipt")
        return Delivered(entry.record, shown(message_of(receipt).get("content")).text, entry.id, receipt)
    text = receipt.get("text", receipt.get("content"))
    record = record_of({"receipt": {"key": "", **receipt}}, {})
    return Delivered(record, None if text is None else shown(text).text, str(receipt.get("id", "")))
