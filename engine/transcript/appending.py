"""What becomes of a receipt that is appended (RULES-transcript R8, R9, R11, R13, R14).

A keyed receipt always becomes an entry, even beside an equal original: that is its job. The same key again
gives the same entry. Only an unkeyed one may be folded into the original, and then the original bears the
record. A receipt hangs below the leaf as a side entry and never becomes the leaf itself.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.table import ANY, DecisionTable, Row
from turnkeeper.engine.transcript.content import shown
from turnkeeper.engine.transcript.entries import Receipt, Utterance, Voice, read_entry
from turnkeeper.engine.transcript.entries import Row as BookRow
from turnkeeper.engine.transcript.faults import RouteDiffers
from turnkeeper.engine.transcript.lines import Fields
from turnkeeper.engine.transcript.lookup import Filed
from turnkeeper.engine.transcript.records import Record, record_fields
from turnkeeper.engine.transcript.shelf import Shelf
from turnkeeper.engine.transcript.tree import ROOT

__all__ = ["APPENDS", "Append", "AppendFacts", "Appended", "Delivered", "append"]

ZERO_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}
"""What a receipt costs (R4)."""

KeyState = Literal["none", "new", "known"]


class Append(StrEnum):
    """What happened to a receipt."""

    APPENDED = "appended"
    SAME = "same"
    SAME_TOLD = "receipt_text_differs"
    """The earlier entry of this key, whose text is another: the host should tell."""
    FOLDED = "folded"
    REJECTED = "rejected"


class AppendFacts(msgspec.Struct, frozen=True, gc=False):
    """What decides about a receipt."""

    key: KeyState
    """In this lineage; what a fork inherited does not count (R35)."""
    route_differs: bool
    text_differs: bool
    beside_original: bool
    """The newest entry that is no bookkeeping is an answer of the model with the same text."""


# fmt: off
APPENDS: DecisionTable[Append] = DecisionTable("append of a receipt", AppendFacts, [
    #                 key      route differs  text differs  beside original
    Row("R8-route",   ("known", True,         ANY,          ANY),   Append.REJECTED,  "one key cannot be two places"),
    Row("R8-text",    ("known", False,        True,         ANY),   Append.SAME_TOLD, "this key is recorded with another text"),
    Row("R8-same",    ("known", False,        False,        ANY),   Append.SAME,      "this key is recorded"),
    Row("R9-keyed",   ("new",   ANY,          ANY,          ANY),   Append.APPENDED,  "a keyed receipt is always an entry"),
    Row("R9-fold",    ("none",  ANY,          ANY,          True),  Append.FOLDED,    "recorded on the answer right before it"),
    Row("R9-unkeyed", ("none",  ANY,          ANY,          False), Append.APPENDED,  "no answer right before it says the same"),
], source="RULES-transcript R8, R9, R14")
# fmt: on


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """A receipt to append: the record, and what was delivered."""

    record: Record
    text: str | None = None
    """None: unknown, so it is compared with nothing."""
    entry_id: str = ""
    """The entry's id; empty: derived from the key."""
    raw: Fields | None = None
    """The whole entry, where a host writes its own form; it must be read as a receipt."""


class Appended(msgspec.Struct, frozen=True, gc=False):
    """What an append did."""

    verdict: Append
    entry: Receipt | Utterance
    """The receipt; of a folded one, the original that bears it now."""
    row: str
    why: str


def append(shelf: Shelf, delivered: Delivered) -> Appended:
    """Record a delivery, once a key.

    Raises:
        RouteDiffers: the key is known with another route; nothing was changed.

    """
    record = delivered.record
    filed = shelf.known(record.key)
    known = None if filed is None else shelf.tree.get(filed.entry_id)
    original = None if record.key else _original_beside(shelf, delivered)
    made = APPENDS.decide(
        AppendFacts(
            key="known" if filed else "new" if record.key else "none",
            route_differs=filed is not None and _differs(record.route, filed.record.route),
            text_differs=isinstance(known, Receipt | Utterance) and _text_differs(delivered.text, known),
            beside_original=original is not None,
        )
    )
    entry: Receipt | Utterance
    if made.verdict is Append.REJECTED:
        assert filed is not None
        raise RouteDiffers(
            f"receipt {record.key!r} is recorded for {filed.record.route} and came for {record.route}; "
            "a key stands for one route: put the route into it"
        )
    if made.verdict is Append.FOLDED:
        assert original is not None
        entry = _folded(shelf, original, record)
    elif made.verdict is Append.APPENDED:
        entry = _new(shelf, delivered)
    else:
        assert filed is not None
        assert isinstance(known, Receipt | Utterance)
        entry = _confirmed(shelf, filed, known, record)
    return Appended(made.verdict, entry, made.row, made.why)


def _differs(asked: object, known: object) -> bool:
    return asked is not None and known is not None and asked != known


def _text_differs(text: str | None, known: Receipt | Utterance) -> bool:
    return text is not None and shown(text).text != shown(known.content).text


def _original_beside(shelf: Shelf, delivered: Delivered) -> Utterance | None:
    """Return the answer that the newest entry but bookkeeping is, if it says what was delivered (R9)."""
    tree, index = shelf.tree, shelf.tree.leaf
    while index != ROOT and isinstance(tree.entries[index], BookRow | Receipt):
        index = tree.parent(index)
    entry = None if index == ROOT else tree.entries[index]
    if not isinstance(entry, Utterance) or entry.voice is not Voice.ASSISTANT or delivered.text is None:
        return None
    named = delivered.record.source_entry_id in {None, entry.id}
    return entry if named and not _text_differs(delivered.text, entry) else None


def _folded(shelf: Shelf, original: Utterance, record: Record) -> Utterance:
    known = original.raw.get("receipts")
    records = [*(known if isinstance(known, list) else []), record_fields(record)]
    entry = read_entry({**original.raw, "receipts": records}, original.id)
    assert isinstance(entry, Utterance)
    shelf.replace(original, entry)
    return entry


def _new(shelf: Shelf, delivered: Delivered) -> Receipt:
    record = delivered.record
    wanted = delivered.entry_id or f"receipt:{record.key or len(shelf.tree)}"
    ident = shelf.free_id(wanted)
    if delivered.raw is not None:
        raw: Fields = {**delivered.raw, "id": ident}
    else:
        raw = _receipt_fields(ident, delivered, shelf.tree.leaf_id)
    entry = shelf.add(raw)
    assert isinstance(entry, Receipt)
    return entry


def _receipt_fields(ident: str, delivered: Delivered, parent: str | None) -> Fields:
    """Write a receipt as an entry of a session file (RULES-transcript 1)."""
    content = [] if delivered.text is None else [{"type": "text", "text": delivered.text}]
    return {
        "id": ident,
        "parentId": parent,
        "type": "message",
        "appendMode": "side",
        "message": {"role": "assistant", "content": content, "usage": dict(ZERO_USAGE)},
        "receipt": record_fields(delivered.record),
    }


def _confirmed(shelf: Shelf, filed: Filed, known: Receipt | Utterance, record: Record) -> Receipt | Utterance:
    """Return the entry of a known key; what was unknown takes the state that is known now."""
    own = known.raw.get("receipt")
    if filed.record.state is not Standing.UNKNOWN or record.state is Standing.UNKNOWN or not isinstance(own, dict):
        return known
    news: Fields = {"state": str(record.state), "reason": record.reason, "at": record.at}
    if record.platform_ids:
        news["platform_ids"] = list(record.platform_ids)
    entry = read_entry({**known.raw, "receipt": {**own, **news}}, known.id)
    assert isinstance(entry, Receipt)
    shelf.replace(known, entry)
    return entry
