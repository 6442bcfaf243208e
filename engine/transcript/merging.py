"""Merging copies of entries: a side branch, or a rebuild that lost metadata (RULES-transcript R3, R5, R31).

A merge may bring an entry back without its marks. Copies of one id are one entry, and the fullest marks win:
every field that any copy has survives. Where two copies hold different values, a receipt keeps a zero usage
(R4), any other entry the usage that says most, a content the fuller body, a mark the readable one, and every
other field what came first. All but the last are decided by the copies alone, whatever their order. A
differing role or text is no copy but an error. Only what is missing is filled in; no mark is made from text.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import msgspec

from turnkeeper.engine.table import ANY, DecisionTable, Row
from turnkeeper.engine.transcript.content import bears_thought, is_spent, shown
from turnkeeper.engine.transcript.entries import Entry, Receipt, Summary, Utterance, message_of, read_entry
from turnkeeper.engine.transcript.lines import Fields, canonical
from turnkeeper.engine.transcript.marks import KINDS, names_a_model

__all__ = ["MERGES", "IncomingFacts", "Merging", "fuse", "same_said"]

Merging = Literal["fuse", "conflict", "alias", "add"]
"""What becomes of an entry that two sides have: one, a conflict, another name for it, or one more."""

RECORDS = ("receipt", "openclawDeliveryMirror")
LISTS = ("receipts", "aliases")


class IncomingFacts(msgspec.Struct, frozen=True, gc=False):
    """What is known of an entry that a merge brings."""

    known_id: bool
    same_said: bool
    """Role and visible text are those of the entry of that id."""
    key_elsewhere: bool
    """It is a receipt, and another entry of this lineage has its key."""


# fmt: off
MERGES: DecisionTable[Merging] = DecisionTable("merge of a side branch", IncomingFacts, [
    #                   known id  same said  key elsewhere
    Row("R31-copy",     (True,    True,      ANY),   "fuse",     "a copy of an entry: the fullest marks win"),
    Row("R31-conflict", (True,    False,     ANY),   "conflict", "one id, two messages"),
    Row("R31-alias",    (False,   ANY,       True),  "alias",    "one delivery recorded twice: the earlier record stays"),
    Row("R31-new",      (False,   ANY,       False), "add",      "a new entry beside the conversation"),
], source="RULES-transcript R31")
# fmt: on


def same_said(one: Entry, other: Entry) -> bool:
    """Tell whether two copies of an id say the same: kind of entry, role and visible text (R31)."""
    if _kind(one) != _kind(other):
        return False
    if isinstance(one, Summary) and isinstance(other, Summary):
        return one.text == other.text
    first, second = message_of(one.raw), message_of(other.raw)
    return first.get("role") == second.get("role") and shown(first.get("content")).text == (
        shown(second.get("content")).text
    )


def _kind(entry: Entry) -> object:
    if isinstance(entry, Utterance | Receipt):
        return entry.raw.get("type", "message")
    return entry.raw.get("type")


def fuse(copies: Sequence[Fields]) -> Fields:
    """Make one entry of its copies, given in order of arrival."""
    fused = _filled(copies)
    for name in LISTS:
        lists = [value for copy in copies if isinstance(value := copy.get(name), list)]
        if lists:
            fused[name] = _united(lists)
    messages = [message_of(copy) for copy in copies]
    message = fused if all("message" not in copy for copy in copies) else _filled(messages)
    _choose_marks(fused, copies)
    _choose_marks(message, messages)
    if message is not fused:
        fused["message"] = message
    contents = [one["content"] for one in messages if one.get("content") is not None]
    if contents:
        message["content"] = max(contents, key=_body_rank)
    usages = [one for one in messages if isinstance(one.get("usage"), dict)]
    if usages:
        is_receipt = isinstance(read_entry(fused), Receipt)
        message["usage"] = max(usages, key=_receipt_usage_rank if is_receipt else _usage_rank)["usage"]
    return fused


def _filled(copies: Sequence[Fields]) -> Fields:
    """Take every field that any copy has; of different values the first."""
    filled: Fields = {}
    for copy in copies:
        for name, value in copy.items():
            if filled.get(name) is None:
                filled[name] = value
    return filled


def _choose_marks(fused: Fields, copies: Sequence[Fields]) -> None:
    """Fill the records of a mark from one another; a readable one before a malformed one."""
    for name in RECORDS:
        found = [copy[name] for copy in copies if copy.get(name) is not None]
        records = [one for one in found if isinstance(one, dict)]
        if records:
            readable = [one for one in records if name == "receipt" or one.get("kind") in KINDS]
            fused[name] = _filled([*readable, *records])


def _united(lists: Sequence[list[object]]) -> list[object]:
    united: dict[bytes, object] = {}
    for value in itertools.chain.from_iterable(lists):
        united.setdefault(canonical(value), value)
    return list(united.values())


def _body_rank(content: object) -> tuple[bool, int, bytes]:
    written = canonical(content)
    return bears_thought(content), len(written), written


def _usage_rank(message: Fields) -> tuple[bool, bool, int, bytes]:
    usage = message["usage"]
    fields = len(usage) if isinstance(usage, dict) else 0
    return names_a_model(message), is_spent(usage), fields, canonical(usage)


def _receipt_usage_rank(message: Fields) -> tuple[bool, int, bytes]:
    usage = message["usage"]
    fields = len(usage) if isinstance(usage, dict) else 0
    return not is_spent(usage), fields, canonical(usage)
