"""A bounded map that is never changed: what an owner remembers for a while, oldest first out.

States are immutable, so remembering one thing more must not copy thousands. The entries lie in chunks in
order of insertion; a change copies one chunk and the list of chunks. Nothing here hashes by itself or
depends on time: an entry leaves because newer ones came, or because its owner forgot it.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Horizon"]

T = TypeVar("T")
CHUNK_MIN = 64
"""Entries of a chunk; a large map has chunks of the root of its limit, so that both copies stay short."""


class Horizon(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An immutable map from a string to what is remembered of it."""

    chunks: tuple[dict[str, T], ...] = ()
    """Oldest first; a chunk is never changed once it is in here."""
    size: int = 0

    def __len__(self) -> int:
        """Count the entries."""
        return self.size

    def __contains__(self, key: str) -> bool:
        """Tell whether it is remembered."""
        return any(key in chunk for chunk in self.chunks)

    def get(self, key: str) -> T | None:
        """Return what is remembered of `key`, or None."""
        for chunk in reversed(self.chunks):
            if key in chunk:
                return chunk[key]
        return None

    def items(self) -> Iterator[tuple[str, T]]:
        """Yield the entries, oldest first."""
        for chunk in self.chunks:
            yield from chunk.items()

    def put(self, key: str, value: T, limit: int) -> Horizon[T]:
        """Remember `key`; above `limit` entries the oldest leaves. A known key keeps its place."""
        for index in range(len(self.chunks) - 1, -1, -1):
            if key in self.chunks[index]:
                return self._with_chunk(index, {**self.chunks[index], key: value})
        last = self.chunks[-1] if self.chunks else None
        if last is None or len(last) >= max(CHUNK_MIN, isqrt(limit)):
            grown = Horizon((*self.chunks, {key: value}), self.size + 1)
        else:
            grown = self._with_chunk(len(self.chunks) - 1, {**last, key: value})
        while grown.size > limit:
            grown = grown.drop(next(iter(grown.chunks[0])))
        return grown

    def drop(self, key: str) -> Horizon[T]:
        """Forget `key`; unknown keys are no error."""
        for index, chunk in enumerate(self.chunks):
            if key in chunk:
                return self._with_chunk(index, {k: v for k, v in chunk.items() if k != key})
        return self

    def oldest(self) -> tuple[str, T] | None:
        """Return the entry that would leave first."""
        return next(self.items(), None)

    def _with_chunk(self, index: int, chunk: dict[str, T]) -> Horizon[T]:
        middle = (chunk,) if chunk else ()
        size = self.size + len(chunk) - len(self.chunks[index])
        return Horizon(self.chunks[:index] + middle + self.chunks[index + 1 :], size)
