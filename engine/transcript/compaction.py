"""Compaction and rotation (RULES-transcript R13, R33, R34): the prompt forgets, the receipts stay findable.

A compaction replaces the head of the conversation by a summary. Its cut never falls on a receipt and never
parts a tool call from its result; where the asked cut would, it moves: off a receipt forward, out of a tool
pair backward, so that everything visible that was asked to stay stays. A rotation begins a new file for the
same lineage: what the summary replaced leaves memory, but for its receipts, the newest of them first.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnkeeper.engine.transcript.entries import Entry, Item, Receipt, Summary, Utterance, Voice
from turnkeeper.engine.transcript.faults import UnknownEntry
from turnkeeper.engine.transcript.lines import Fields
from turnkeeper.engine.transcript.records import record_fields
from turnkeeper.engine.transcript.shelf import Shelf, session_header

__all__ = ["Compacted", "Rotated", "compact", "path_before", "rotate"]


class Compacted(msgspec.Struct, frozen=True, gc=False):
    """What a compaction did."""

    entry: Summary
    first_kept: str | None
    """The first entry that is still shown, which may not be the asked one; None: nothing is."""


class Rotated(msgspec.Struct, frozen=True, gc=False):
    """What a rotation did."""

    dropped: int
    """Entries that left memory."""
    forgotten: int
    """Receipts among them: beyond the horizon, so a look-up no longer finds them."""


def compact(shelf: Shelf, first_kept: str, summary: str, ident: str = "", tokens_before: int = 0) -> Compacted:
    """Put a summary in the place of what lies before `first_kept`.

    Raises:
        UnknownEntry: `first_kept` is not in the conversation.

    """
    lineage = _lineage(shelf)
    cut = _cut(lineage, first_kept)
    number = sum(isinstance(entry, Summary) for entry in shelf.tree.entries)
    ident = ident or shelf.free_id(f"compaction:{number + 1}:{first_kept}")
    kept = lineage[cut].id if cut < len(lineage) else None
    raw: Fields = {
        "id": ident,
        "parentId": shelf.tree.leaf_id,
        "type": "compaction",
        "summary": summary,
        "firstKeptEntryId": kept or ident,
        "tokensBefore": tokens_before,
    }
    entry = shelf.add(raw)
    assert isinstance(entry, Summary)
    return Compacted(entry, kept)


def path_before(shelf: Shelf, first_kept: str) -> list[Item]:
    """Return the part of the conversation that a compaction at `first_kept` would replace.

    Raises:
        UnknownEntry: `first_kept` is not in the conversation.

    """
    lineage = _lineage(shelf)
    cut = _cut(lineage, first_kept)
    path = shelf.tree.path()
    if cut == len(lineage):
        return path
    first = lineage[cut].id
    return path[: next((index for index, item in enumerate(path) if index and item.id == first), 0)]


def _lineage(shelf: Shelf) -> list[Entry]:
    return [shelf.tree.entries[index] for index in shelf.tree.lineage()]


def _cut(lineage: Sequence[Entry], first_kept: str) -> int:
    """Return where the kept part begins: the asked entry, moved off receipts and out of tool pairs."""
    cut = next((index for index, entry in enumerate(lineage) if entry.id == first_kept), None)
    if cut is None:
        raise UnknownEntry(
            f"a compaction cannot keep from {first_kept!r} on: no such entry in the conversation; "
            "name one that the view shows"
        )
    while cut < len(lineage) and isinstance(lineage[cut], Receipt):
        cut += 1
    earliest = _earliest_calls(lineage)
    while cut < len(lineage) and earliest[cut] < cut:
        cut = earliest[cut]
    return cut


def _earliest_calls(lineage: Sequence[Entry]) -> list[int]:
    """Give for each position the earliest tool call whose result stands there or later."""
    called: dict[str, int] = {}
    earliest = list(range(len(lineage)))
    for index, entry in enumerate(lineage):
        if isinstance(entry, Utterance):
            for call in filter(None, entry.calls):
                if entry.voice is Voice.ASSISTANT:
                    called[call] = index
                else:
                    earliest[index] = min(earliest[index], called.get(call, index))
    for index in range(len(lineage) - 2, -1, -1):
        earliest[index] = min(earliest[index], earliest[index + 1])
    return earliest


def rotate(shelf: Shelf, session: str, receipts_max: int) -> tuple[Shelf, Rotated]:
    """Begin a new file of the same lineage (R13).

    Entries before the newest compaction's first kept one leave, except the newest `receipts_max` receipts.
    """
    cut = _first_live(shelf)
    entries = shelf.tree.entries
    old = [raw for entry in entries[:cut] for raw in _receipts_in(entry)]
    forgotten = max(0, len(old) - receipts_max)
    old_history = sum(len(_receipts_in(entry)) for entry in entries[: min(cut, shelf.history)])
    header = session_header(session, parentSession=shelf.session)
    rotated = Shelf(header)
    for raw in old[forgotten:]:
        rotated.add(raw)
    for entry in entries[cut:]:
        rotated.add(entry.raw, entry.id)
    inherited = max(0, old_history - forgotten) + max(0, shelf.history - cut)
    if inherited:
        header["forkedAt"] = rotated.tree.entries[inherited - 1].id
        rotated.end_history()
    dropped = len(entries) - len(rotated.tree)
    return rotated, Rotated(dropped, forgotten)


def _first_live(shelf: Shelf) -> int:
    """Return the index of the first entry that the conversation still shows, whole if nothing was compacted."""
    lineage = shelf.tree.lineage()
    compacted = any(isinstance(entry, Summary) and entry.compaction for entry in _lineage(shelf))
    return min(lineage) if compacted else 0


def _receipts_in(entry: Entry) -> list[Fields]:
    """Return the receipts an entry is or bears, as entries of their own."""
    if isinstance(entry, Receipt):
        return [entry.raw]
    if not isinstance(entry, Utterance):
        return []
    if entry.unsure:
        return [{**entry.raw, "id": entry.id, "parentId": None, "appendMode": "side"}]
    return [
        {
            "id": f"receipt:{entry.id}:{number}",
            "parentId": None,
            "type": "message",
            "message": {"role": "assistant", "content": []},
            "receipt": record_fields(record),
        }
        for number, record in enumerate(entry.records, start=1)
    ]
