"""Merging a side branch into a store (RULES-transcript R31, R32)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnkeeper.engine.transcript.entries import Entry, Receipt, read_entry
from turnkeeper.engine.transcript.faults import MergeConflict
from turnkeeper.engine.transcript.lines import Fields
from turnkeeper.engine.transcript.merging import MERGES, IncomingFacts, Merging, same_said
from turnkeeper.engine.transcript.shelf import Shelf

__all__ = ["Merged", "merge"]

NAVIGATION = ("leaf", "session")
"""Entries that only say where their own branch stands; a merge does not move the leaf (R32)."""


class Merged(msgspec.Struct, frozen=True, gc=False):
    """What a merge did, by entry id."""

    added: list[str]
    fused: list[str]
    """Copies of entries that were there."""
    aliased: list[str]
    """Receipts of a key that was recorded under another id."""
    skipped: list[str]
    """Leaf entries of the other branch."""


def merge(shelf: Shelf, raws: Sequence[Fields]) -> Merged:
    """Unite a side branch with the entries that are there; the leaf stays where it is.

    All or nothing. The same branch merged again changes nothing, and no order of merges does, but for where
    new entries stand and which of two ids of one key stays: the first to arrive.

    Raises:
        DecodeError: an entry cannot be read.
        MergeConflict: an entry's role or text is not that of the entry of its id.

    """
    entries = [read_entry(raw) for raw in raws]
    _check(shelf, entries)
    done = Merged([], [], [], [])
    before = shelf.tree.leaf_id
    for entry in entries:
        if entry.raw.get("type") in NAVIGATION:
            done.skipped.append(entry.id)
            continue
        match _decide(shelf, entry):
            case "alias":
                _alias(shelf, entry)
                done.aliased.append(entry.id)
            case "add":
                shelf.add({"parentId": before, **entry.raw, "id": entry.id, "appendMode": "side"})
                done.added.append(entry.id)
            case _:
                known = shelf.tree.get(entry.id)
                assert known is not None
                if known.id == entry.id:
                    shelf.fuse(known, entry)
                done.fused.append(entry.id)
        before = entry.id
    return done


def _check(shelf: Shelf, entries: Sequence[Entry]) -> None:
    """Refuse a merge as a whole before anything changes."""
    seen: dict[str, Entry] = {}
    for entry in entries:
        known = seen.get(entry.id) or shelf.tree.get(entry.id)
        if known is not None and not same_said(known, entry) and known.id == entry.id:
            raise MergeConflict(
                f"merge brings entry {entry.id!r} with another role or text than it has; "
                "copies of one id may only differ in metadata, so nothing was merged"
            )
        seen[entry.id] = entry


def _decide(shelf: Shelf, entry: Entry) -> Merging:
    known = shelf.tree.get(entry.id)
    filed = shelf.known(entry.record.key) if isinstance(entry, Receipt) else None
    facts = IncomingFacts(
        known_id=known is not None,
        same_said=known is not None and (known.id != entry.id or same_said(known, entry)),
        key_elsewhere=filed is not None and filed.entry_id != entry.id,
    )
    return MERGES.decide(facts).verdict


def _alias(shelf: Shelf, entry: Entry) -> None:
    """Record a second receipt of a key on the first: its id, its place, and what the platform called it."""
    assert isinstance(entry, Receipt)
    filed = shelf.known(entry.record.key)
    assert filed is not None
    kept = shelf.tree.get(filed.entry_id)
    assert kept is not None
    known = kept.raw.get("aliases")
    alias: Fields = {
        "id": entry.id,
        "parentId": entry.raw.get("parentId", shelf.tree.leaf_id),
        "platform_ids": list(entry.record.platform_ids),
    }
    aliases = [*(known if isinstance(known, list) else []), alias]
    shelf.replace(kept, read_entry({**kept.raw, "aliases": aliases}, kept.id))
