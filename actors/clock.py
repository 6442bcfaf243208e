"""The engine's clock, the only place that reads time: the wall at its start, then the monotonic clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WallClock", "ticks_ns"]


class WallClock:
    """Milliseconds since the epoch that never go back: a step of the wall clock changes nothing."""

    def __init__(self) -> None:
        """Read the wall once."""
        self._wall_ms = time.time_ns() // 1_000_000
        self._started_ns = time.monotonic_ns()

    def now_ms(self) -> int:
        """Return the time now."""
        return self._wall_ms + (time.monotonic_ns() - self._started_ns) // 1_000_000

    def timeout_s(self, due_ms: int) -> float | None:
        """Return how long to wait for that instant."""
        return max(0, due_ms - self.now_ms()) / 1000

    def on_change(self, wake: Callable[[], None], /) -> None:
        """Nobody moves this clock by hand."""


ticks_ns = time.perf_counter_ns
"""A monotonic count of nanoseconds, for measuring how long something took; it decides nothing."""
