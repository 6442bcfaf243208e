"""The tree of entries, and the one path through it that is the conversation (RULES-transcript 1, R15 step 1).

Entries come in file order. An entry without `parentId` continues the leaf; `null` starts anew; a parent that
is nowhere (a damaged line, an earlier file) is taken to be the leaf that stood before, so that a loss cuts no
history off. The leaf is the newest entry, but for side entries (`appendMode: "side"`), receipts (R11) and
what a `leaf` entry names. An entry that was written physically below a side entry or a receipt, directly
after it, continues the leaf logically. The path runs from the leaf to a root; the newest compaction on it
replaces what lies before its first kept entry.
"""

from __future__ import annotations

import msgspec

from turnkeeper.engine.transcript.entries import (
    Boundary,
    Entry,
    Item,
    Receipt,
    Row,
    Summary,
)
from turnkeeper.engine.transcript.lines import Fields

__all__ = ["ROOT", "Tree"]

ROOT = -1
"""The place above every entry."""
LEAF = "leaf"
SIDE = "side"


class Ghost(msgspec.Struct, frozen=True, gc=False):
    """An entry that became an alias of another (R31): only its place in the tree is left."""

    alias_of: str
    parent: str | None


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Where a walk to the root ends early: at an entry, or before one."""

    at: int | None = None
    before: int | None = None


class Tree:
    """Entries in order of arrival, their parents, and the leaf.

    Mutable and not locked: its owner is a `Store`, or a reader that fills it once.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.leaf = ROOT
        """Index of the newest entry of the conversation, or `ROOT`."""
        self.ghosts: dict[str, Ghost] = {}
        self.leaf_errors: list[str] = []
        """Ids of leaf entries that name nothing we know; they move nothing."""
        self._at: dict[str, int] = {}
        self._links: list[str | None] = []
        """A parent's id; None: `_before` is the parent."""
        self._before: list[int] = []
        """The leaf before this entry came: the parent of an entry that names none, or one that is nowhere."""
        self._hung: dict[int, list[int]] = {}
        """Receipts by what they hang below."""
        self._cursor: str | msgspec.UnsetType | None = msgspec.UNSET
        """Where a program appends physically while the leaf is elsewhere: a child of it continues the leaf."""

    def __len__(self) -> int:
        """Count the entries."""
        return len(self.entries)

    def get(self, ident: str) -> Entry | None:
        """Return the entry of this id, or the one it became an alias of."""
        index = self.index(ident)
        return None if index is None else self.entries[index]

    def index(self, ident: str) -> int | None:
        """Return where the entry of this id stands."""
        ghost = self.ghosts.get(ident)
        return self._at.get(ident if ghost is None else ghost.alias_of)

    @property
    def leaf_id(self) -> str | None:
        """The leaf's id."""
        return None if self.leaf == ROOT else self.entries[self.leaf].id

    def add(self, entry: Entry) -> None:
        """Append an entry whose id is new, as a reader of the file would understand it."""
        index, raw = len(self.entries), entry.raw
        link, before = self._link(raw)
        if isinstance(entry, Row) and raw.get("type") == LEAF:
            link, before = self._move_leaf(entry.id, raw, link, before)
        elif isinstance(entry, Receipt) or raw.get("appendMode") == SIDE:
            self._cursor = entry.id
        else:
            self.leaf, self._cursor = index, msgspec.UNSET
        self.entries.append(entry)
        self._links.append(link)
        self._before.append(before)
        self._at[entry.id] = index
        if isinstance(entry, Receipt):
            self._hung.setdefault(self.parent(index), []).append(index)

    def replace(self, entry: Entry) -> None:
        """Put a fuller copy in the place of the entry of the same id."""
        index = self._at[entry.id]
        if isinstance(entry, Receipt) and not isinstance(self.entries[index], Receipt):
            self._hung.setdefault(self.parent(index), []).append(index)
        self.entries[index] = entry
        self._walk_through()

    def haunt(self, ident: str, alias_of: str, parent: str | None) -> None:
        """Make an id an alias; what hangs below it continues at its parent. An entry that is there is none."""
        if ident not in self._at:
            self.ghosts[ident] = Ghost(alias_of, parent)

    def _link(self, raw: Fields) -> tuple[str | None, int]:
        """Return the id an entry hangs below, if it names one, and the index where it hangs otherwise."""
        if "parentId" not in raw:
            return None, self.leaf
        parent = raw["parentId"]
        name = str(parent) if isinstance(parent, str | int) else None
        if name == self._cursor and raw.get("appendMode") != SIDE:
            return None, self.leaf
        return name, ROOT if parent is None else self.leaf

    def _move_leaf(self, ident: str, raw: Fields, link: str | None, before: int) -> tuple[str | None, int]:
        """Follow a leaf entry, and return where it hangs: what hangs below it continues at its target."""
        target = raw.get("targetId")
        self._cursor = ident
        if target is None and "targetId" in raw:
            self.leaf = ROOT
            return None, ROOT
        index = self.index(str(target))
        if index is None:
            self.leaf_errors.append(ident)
            return link, before
        self.leaf = index
        self._walk_through()
        append_parent = raw.get("appendParentId", ident)
        self._cursor = append_parent if isinstance(append_parent, str) else None
        return str(target), before

    def _walk_through(self) -> None:
        """Move the leaf off receipts: they are nobody's turn (R11)."""
        self.leaf = self._said_at(self.leaf)

    def _said_at(self, index: int) -> int:
        """Return the nearest entry upward that is no receipt."""
        for _ in range(len(self.entries)):
            if index == ROOT or not isinstance(self.entries[index], Receipt):
                return index
            index = self.parent(index)
        return ROOT

    def parent(self, index: int) -> int:
        """Return the index of an entry's parent, or `ROOT`."""
        link = self._links[index]
        if link is None:
            return self._before[index]
        if self.ghosts:
            link = self._through_ghosts(link)
            if link is None:
                return ROOT
        found = self._at.get(link)
        return self._before[index] if found is None else found

    def _through_ghosts(self, link: str) -> str | None:
        """Walk past entries that became aliases; in a ring of them, stop at the root."""
        name: str | None = link
        for _ in range(len(self.ghosts) + 1):
            ghost = None if name is None else self.ghosts.get(name)
            if ghost is None:
                return name
            name = ghost.parent
        return None

    def lineage(self) -> list[int]:
        """Return the indices of the conversation, in order, receipts where they hang.

        What the newest compaction replaced is not walked.
        """
        walked, compacted = self._walk()
        found = [] if compacted else self._receipts_below(ROOT)
        for index in walked:
            if not isinstance(self.entries[index], Receipt):
                found.append(index)
                if index in self._hung:
                    found += self._receipts_below(index)
        return found

    def _walk(self) -> tuple[list[int], bool]:
        """Walk from the leaf to a root or to the first kept entry; tell whether a compaction was met."""
        found: list[int] = []
        seen = bytearray(len(self.entries))
        index, stop = self.leaf, Stop()
        compacted = False
        while index not in (ROOT, stop.before) and not seen[index]:
            seen[index] = 1
            found.append(index)
            if index == stop.at:
                break
            entry = self.entries[index]
            if not compacted and isinstance(entry, Summary) and entry.compaction:
                compacted, stop = True, self._stop(entry, index)
                if index == stop.at:
                    break
            index = self.parent(index)
        found.reverse()
        return found, compacted

    def _stop(self, compaction: Summary, own_index: int) -> Stop:
        """Say where a compaction's kept part begins; at the compaction itself if it names nothing we have."""
        first = None if compaction.first_kept is None else self.index(compaction.first_kept)
        if first is None:
            return Stop(at=own_index)
        # A file may name a receipt (ours never do): then what was said before it is not kept.
        said_at = self._said_at(first)
        return Stop(at=first) if said_at == first else Stop(before=said_at)

    def _receipts_below(self, index: int) -> list[int]:
        """Return the receipts that hang below an entry, those below receipts included, in order of arrival.

        Ends, because a receipt hangs in one place: what can be reached from an entry is a tree. (Receipts that
        hang below each other in a ring cannot be reached.)
        """
        found: list[int] = []
        waiting = [index]
        while waiting:
            below = self._hung.get(waiting.pop(), [])
            found += below
            waiting += below
        return sorted(found)

    def path(self) -> list[Item]:
        """Return the conversation as the prompt shows it, before anything is dropped.

        The newest compaction comes first as its summary, then what it kept, then a `Boundary` in its own
        place (R19), then the rest. Older compactions inside are boundaries only: the newer summary holds theirs.
        """
        items: list[Item] = [self.entries[index] for index in self.lineage()]
        last = next((i for i in range(len(items) - 1, -1, -1) if _is_compaction(items[i])), None)
        if last is None:
            return items
        compaction = items[last]
        assert isinstance(compaction, Summary)
        kept = items[:last] if self._keeps(compaction, items[:last]) else []
        inside: list[Item] = [Boundary(item.id) if _is_compaction(item) else item for item in kept]
        if inside:
            inside.append(Boundary(compaction.id))
        return [compaction, *inside, *items[last + 1 :]]

    def _keeps(self, compaction: Summary, before: list[Item]) -> bool:
        """Tell whether the walk ended where the compaction says, so that what it walked was kept."""
        if not before:
            return False
        stop = self._stop(compaction, self._at[compaction.id])
        first = self._at[before[0].id]
        return first == stop.at or (stop.before is not None and self.parent(first) == stop.before)


def _is_compaction(item: Item) -> bool:
    return isinstance(item, Summary) and item.compaction
