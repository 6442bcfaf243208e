"""Comparing what was expected with what came: by listed fields, in any order or in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine.ids import ChannelRef

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["at_path", "differences", "matches", "pair_up", "plain"]


def plain(value: msgspec.Struct) -> dict[str, Any]:
    """Return a command or signal as a map of every field, channels in their written form."""
    return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}


def _plain(value: object) -> object:
    if isinstance(value, ChannelRef):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def matches(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    """Say whether every listed field is as expected; null means absent, unlisted fields are free."""
    return all(_equal(want, actual.get(name)) for name, want in expected.items())


def _equal(want: object, have: object) -> bool:
    if want is None:
        return have is None
    if isinstance(want, bool) or isinstance(have, bool):
        return want is have
    return want == have


def pair_up(expected: Sequence[tuple[str, dict[str, Any]]], actual: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Say whether each expected item has an actual one of its own (others may be left over)."""
    taken: dict[int, int] = {}
    fits = [
        [a for a, (name, have) in enumerate(actual) if name == wanted and matches(want, have)]
        for wanted, want in expected
    ]

    def assign(item: int, seen: set[int]) -> bool:
        for candidate in fits[item]:
            if candidate in seen:
                continue
            seen.add(candidate)
            if candidate not in taken or assign(taken[candidate], seen):
                taken[candidate] = item
                return True
        return False

    return all(assign(item, set()) for item in range(len(expected)))


def differences(expected: dict[str, Any], actual: dict[str, Any]) -> dict[str, Any]:
    """Return what the listed fields really are, where they differ."""
    return {name: actual.get(name) for name, want in expected.items() if not _equal(want, actual.get(name))}


def at_path(value: object, path: str) -> object:
    """Follow a dotted path through maps; the longest matching key wins, so keys may contain dots."""
    if not path:
        return value
    if not isinstance(value, dict):
        return None
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        key = ".".join(parts[:size])
        if key in value:
            return at_path(value[key], ".".join(parts[size:]))
    return None
