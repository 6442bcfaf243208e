"""Time as an argument: a clock that only moves when told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["VirtualClock"]


class VirtualClock:
    """A `Clock` for scenarios, simulations and hosts' tests; starts at 0."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._wakes: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        """Return the time now."""
        return self._now_ms

    def timeout_s(self, due_ms: int) -> float | None:
        """Return 0 for what is due, None for what is not: this clock says when it was moved."""
        return 0.0 if due_ms <= self._now_ms else None

    def on_change(self, wake: Callable[[], None], /) -> None:
        """Call `wake` after every move."""
        self._wakes.append(wake)

    def advance_to(self, now_ms: int) -> None:
        """Move to an instant; never back."""
        self.set_to(max(self._now_ms, now_ms))

    def set_to(self, now_ms: int) -> None:
        """Move to an instant, back as well: between two runs of a process, somebody may set the wall clock."""
        self._now_ms = now_ms
        for wake in tuple(self._wakes):
            wake()
