"""The entries of a transcript; what was said and what records a delivery are different types.

A prompt view is a list of `Prompted`, and `Receipt` is not among them: no path by which metadata is lost can
put a receipt into a prompt, because the type says no (docs/adr/0008). Each entry keeps the JSON object it
was read from; that object is what is written back, so fields nobody here knows survive (R3). The object is
never changed: whoever needs another one makes a new entry.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.transcript.content import calls_of, results_of, shown
from turnkeeper.engine.transcript.lines import Fields
from turnkeeper.engine.transcript.marks import MARKS, Reading, mark_facts, names_a_model
from turnkeeper.engine.transcript.records import Record, folded_records, record_of

__all__ = [
    "Boundary",
    "ContextLine",
    "Entry",
    "Item",
    "Prompted",
    "Receipt",
    "Row",
    "Summary",
    "Utterance",
    "Voice",
    "entry_id",
    "message_of",
    "read_entry",
    "unmarked",
]

SUMMARIES = ("compaction", "branch_summary")
TOOL_ROLES = ("toolResult", "tool", "function", "tool_result")


class Voice(StrEnum):
    """Who speaks in an utterance."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool result"
    OTHER = "other"
    """System, developer, custom: rendered, and said by nobody of the others."""


class Utterance(msgspec.Struct, frozen=True, gc=False):
    """Something said: a user, the model, a tool, or a rendered note of the host."""

    id: str
    voice: Voice
    raw: Fields
    """The entry as it was read."""
    calls: tuple[str, ...] = ()
    """Ids of the tool calls it makes, or whose results it brings; `""` for a call without id."""
    own: bool = False
    """It names the model that wrote it: provider, model or response id (R21)."""
    records: tuple[Record, ...] = ()
    """Deliveries recorded on it: folded ones (R9), or what a receipt-unknown may be (R6)."""
    unsure: bool = False
    """It is a receipt-unknown: perhaps a receipt, but its mark cannot be read (R6)."""

    @property
    def content(self) -> object:
        """The message's content: a string or a list of blocks."""
        return message_of(self.raw).get("content")


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """A delivery, recorded. It costs nothing (R4), is nobody's turn, and never part of a prompt."""

    id: str
    record: Record
    raw: Fields

    @property
    def content(self) -> object:
        """What was delivered, as far as the entry repeats it."""
        return message_of(self.raw).get("content")


class Summary(msgspec.Struct, frozen=True, gc=False):
    """What stands for a part of the history that is no longer shown: a compaction or a branch summary."""

    id: str
    text: str
    raw: Fields
    first_kept: str | None = None
    """Of a compaction: the first entry that is still shown."""
    compaction: bool = False


class Row(msgspec.Struct, frozen=True, gc=False):
    """Bookkeeping that no prompt shows: custom state, labels, leaf and model changes, kinds unknown to us."""

    id: str
    raw: Fields


class Boundary(msgspec.Struct, frozen=True, gc=False):
    """A place in a prompt where a compaction ends adjacency (R19); renders nothing."""

    id: str


class ContextLine(msgspec.Struct, frozen=True, gc=False):
    """A receipt without an original, shown as a labelled line that is no assistant's turn (R17)."""

    id: str
    text: str


Entry = Utterance | Receipt | Summary | Row
"""What a store holds."""

Prompted = Utterance | Summary | Boundary | ContextLine
"""What a prompt view holds."""

Item = Utterance | Receipt | Summary | Row | Boundary | ContextLine
"""What a prompt view is made from: entries, or an earlier view."""


def message_of(raw: Fields) -> Fields:
    """Return an entry's message; a flat entry of old files is its own."""
    message = raw.get("message")
    return message if isinstance(message, dict) else raw


def entry_id(raw: Fields) -> str:
    """Return the id an entry names, or an empty string."""
    value = raw.get("id")
    return str(value).strip() if isinstance(value, str | int) else ""


def read_entry(raw: object, fallback_id: str = "") -> Entry:
    """Read one entry of a session file or a scenario.

    Args:
        raw: the JSON object; kept, never changed.
        fallback_id: the id of an entry that names none.

    Raises:
        DecodeError: it is no JSON object, has no id, or is a message without a message.

    """
    if not isinstance(raw, dict):
        raise DecodeError(f"an entry is a JSON object; found {type(raw).__name__}")
    ident = entry_id(raw) or fallback_id
    if not ident:
        raise DecodeError('an entry needs an "id"')
    kind = raw.get("type", "message" if "role" in raw or "message" in raw else None)
    if not isinstance(kind, str):
        raise DecodeError(f'entry {ident!r} has no "type"; a message, a custom row, a compaction …')
    if kind == "message":
        return _read_message(ident, raw)
    if kind == "custom_message":
        return Utterance(ident, Voice.OTHER, raw)
    if kind in SUMMARIES:
        return _read_summary(ident, raw)
    return Row(ident, raw)


def _read_message(ident: str, raw: Fields) -> Entry:
    message = message_of(raw)
    role = message.get("role")
    if not isinstance(role, str):
        raise DecodeError(f'entry {ident!r} is a message without "message": {{"role": …}}')
    if role == "assistant":
        return _read_assistant(ident, raw, message)
    if role == "user":
        return Utterance(ident, Voice.USER, raw, results_of(message))
    if role in TOOL_ROLES:
        return Utterance(ident, Voice.TOOL_RESULT, raw, results_of(message))
    return Utterance(ident, Voice.OTHER, raw)


def _read_assistant(ident: str, raw: Fields, message: Fields) -> Entry:
    facts = mark_facts(raw, message)
    reading = MARKS.decide(facts).verdict
    if reading is Reading.RECEIPT:
        return Receipt(ident, record_of(raw, message), raw)
    unsure = reading is Reading.UNSURE
    records = folded_records(raw)
    if unsure:
        records += (msgspec.structs.replace(record_of(raw, message), state=Standing.UNKNOWN),)
    return Utterance(ident, Voice.ASSISTANT, raw, calls_of(message), facts.own, records, unsure)


def _read_summary(ident: str, raw: Fields) -> Summary:
    text, first = raw.get("summary"), raw.get("firstKeptEntryId")
    return Summary(
        ident,
        text if isinstance(text, str) else shown(text).text,
        raw,
        str(first) if isinstance(first, str | int) else None,
        compaction=raw.get("type") == "compaction",
    )


def unmarked(receipt: Receipt) -> Utterance:
    """Read a receipt as a program would that does not know its mark.

    For measuring only: what a naive filter lets through. `own` is what the bare fields say.
    """
    message = message_of(receipt.raw)
    return Utterance(receipt.id, Voice.ASSISTANT, receipt.raw, calls_of(message), names_a_model(message))
