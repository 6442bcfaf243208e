"""What a store holds, without its lock: the tree of entries, the index of receipts, and copies it has seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from turnkeeper.engine.transcript.content import shown
from turnkeeper.engine.transcript.entries import (
    Entry,
    Receipt,
    Utterance,
    Voice,
    entry_id,
    message_of,
    read_entry,
)
from turnkeeper.engine.transcript.faults import MergeConflict
from turnkeeper.engine.transcript.lines import Fields, canonical
from turnkeeper.engine.transcript.lookup import Filed, Index, routes_meet
from turnkeeper.engine.transcript.merging import fuse, same_said
from turnkeeper.engine.transcript.records import Record, Route, route_of
from turnkeeper.engine.transcript.tree import Tree

__all__ = ["Shelf", "session_header"]

VERSION = 3
"""Of the session files we write."""


def session_header(session: str, **more: object) -> Fields:
    """Write the first line of a session file."""
    return {"type": "session", "version": VERSION, "id": session, **more}


class Shelf:
    """One lineage's entries. Mutable and not locked: its owner is a `Store`, or a reader that fills it once."""

    def __init__(self, header: Fields) -> None:
        self.header = header
        self.tree = Tree()
        self.index = Index()
        self.receipts = 0
        """Receipts, folded ones included."""
        self.history = 0
        """Entries before this index came from another lineage: their receipts prove nothing here (R35)."""
        self._copies: dict[str, list[Fields]] = {}
        """Of an id that came in different copies, each of them: so that no order of merges matters (R31)."""

    @classmethod
    def load(cls, header: Fields, raws: Iterable[Fields]) -> Shelf:
        """Fill a shelf with entries in file order.

        Raises:
            DecodeError, MergeConflict: an entry cannot be read, or contradicts an earlier one of its id.

        """
        shelf = cls(header)
        for raw in raws:
            shelf.add(raw)
        shelf.end_history()
        return shelf

    @property
    def session(self) -> str:
        """The session's id."""
        return entry_id(self.header)

    def reread(self, through: Callable[[Fields], object]) -> Shelf:
        """Fill a new shelf with what these entries are after going through a codec."""
        shelf = Shelf(self.header)
        for entry in self.tree.entries:
            raw = through(entry.raw)
            assert isinstance(raw, dict)
            shelf.add(raw, entry.id)
        shelf.end_history()
        shelf._copies = {ident: list(copies) for ident, copies in self._copies.items()}
        return shelf

    def forked(self, session: str) -> Shelf:
        """Fill a new lineage's shelf with these entries, as history."""
        header = session_header(session, parentSession=self.session)
        if self.tree.entries:
            header["forkedAt"] = self.tree.entries[-1].id
        shelf = Shelf(header)
        for entry in self.tree.entries:
            shelf.add(entry.raw, entry.id)
        shelf.end_history()
        return shelf

    def end_history(self) -> None:
        """Take what a fork inherited out of the index: the header names the last inherited entry."""
        last = self.tree.index(str(self.header.get("forkedAt", "")))
        if last is None:
            return
        self.history, self.index = last + 1, Index()
        for entry in self.tree.entries[self.history :]:
            self._file(entry)

    def add(self, raw: Fields, known_as: str = "") -> Entry:
        """Take an entry in, as a reader of the file would; a second copy of an id is fused into the first.

        An entry that names no id (version 1 of the files has none) is called by its place.
        """
        entry = read_entry(raw, known_as or f"entry-{len(self.tree) + 1}")
        known = self.tree.get(entry.id)
        if known is not None:
            return self.fuse(known, entry) if known.id == entry.id else known
        self.tree.add(entry)
        self.receipts += _receipts_of(entry)
        self._file(entry)
        self._haunt(entry)
        return entry

    def fuse(self, known: Entry, copy: Entry) -> Entry:
        """Make one entry of two copies (R31).

        Raises:
            MergeConflict: role or text differ.

        """
        if not same_said(known, copy):
            raise MergeConflict(
                f"entry {copy.id!r} is known with another role or text; copies of one id may only differ in metadata"
            )
        if known.raw == copy.raw:
            return known
        copies = self._copies.setdefault(known.id, [known.raw])
        if any(canonical(copy.raw) == canonical(one) for one in copies):
            return known
        copies.append(copy.raw)
        entry = read_entry(fuse(copies), known.id)
        self.replace(known, entry)
        return entry

    def replace(self, known: Entry, entry: Entry) -> None:
        """Put an entry in the place of the one of its id."""
        self.tree.replace(entry)
        self.receipts += _receipts_of(entry) - _receipts_of(known)
        if (self.tree.index(entry.id) or 0) >= self.history:
            self._file(entry)
        self._haunt(entry)

    def known(self, key: str) -> Filed | None:
        """Return the receipt of a key; a receipt-unknown does not hold its key (R6)."""
        filed = self.index.by_key(key) if key else None
        return filed if filed is not None and filed.sure else None

    def free_id(self, wanted: str) -> str:
        """Return an id nobody has, the wanted one if possible."""
        ident, number = wanted, 1
        while self.tree.index(ident) is not None:
            number += 1
            ident = f"{wanted}#{number}"
        return ident

    def says(self, text: str, route: Route | None) -> bool:
        """Tell whether the newest turn has an unmarked answer without provenance of this text (R37, R39).

        Where the entry or the transcript knows its routes, they must be able to be the asked one.
        """
        wanted = shown(text).text
        if not wanted or (route is not None and not self.index.serves(route)):
            return False
        for index in range(len(self.tree) - 1, self.history - 1, -1):
            entry = self.tree.entries[index]
            if not isinstance(entry, Utterance):
                continue
            if entry.voice is Voice.USER:
                return False
            bare = entry.voice is Voice.ASSISTANT and not entry.own and not entry.calls
            if bare and shown(entry.content).text == wanted and _may_be_on(entry, route):
                return True
        return False

    def _file(self, entry: Entry) -> None:
        for record in _records_of(entry):
            self.index.file(Filed(entry.id, record, sure=not (isinstance(entry, Utterance) and entry.unsure)))

    def _haunt(self, entry: Entry) -> None:
        """Give the ids that a merge found to be this entry's aliases their place in the tree (R31)."""
        aliases = entry.raw.get("aliases") if isinstance(entry, Receipt) else None
        for alias in aliases if isinstance(aliases, list) else ():
            if isinstance(alias, dict) and entry_id(alias):
                parent = alias.get("parentId")
                self.tree.haunt(entry_id(alias), entry.id, str(parent) if parent is not None else None)


def _records_of(entry: Entry) -> tuple[Record, ...]:
    if isinstance(entry, Receipt):
        return (entry.record,)
    return entry.records if isinstance(entry, Utterance) else ()


def _receipts_of(entry: Entry) -> int:
    """Count the receipts an entry is or bears; a receipt-unknown is none."""
    if isinstance(entry, Receipt):
        return 1
    return len(entry.records) - entry.unsure if isinstance(entry, Utterance) else 0


def _may_be_on(entry: Utterance, route: Route | None) -> bool:
    own = route_of(entry.raw.get("route")) or route_of(message_of(entry.raw).get("route"))
    return route is None or own is None or routes_meet(route, own)
