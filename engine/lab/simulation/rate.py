"""How fast an agent may call: a bucket of calls that fills with time, as the settings promise it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnkeeper.engine.config import Limits
    from turnkeeper.engine.lab.simulation.seen import CallSeen

__all__ = ["Rate"]

CALL = 1000
"""A call in thousandths, so that nothing is rounded."""


class Rate:
    """The calls of one chat.

    Args:
        limits: the settings of the run; the widest that ever counted count.

    """

    def __init__(self, limits: Limits) -> None:
        self._burst = limits.calls_burst
        self._per_s = limits.calls_per_s
        self._left = self._burst * CALL
        self._at_ms = 0

    def reloaded(self, limits: Limits) -> None:
        """Count by other settings; never by narrower ones."""
        self._left += max(0, limits.calls_burst - self._burst) * CALL
        self._burst, self._per_s = max(self._burst, limits.calls_burst), max(self._per_s, limits.calls_per_s)

    def taken(self, call: CallSeen, now_ms: int) -> bool:
        """Count a new call; False: it was one too many, and was taken all the same."""
        self._left = min(self._burst * CALL, self._left + (now_ms - self._at_ms) * self._per_s)
        self._at_ms = now_ms
        if call.rejected == "rate limit":
            return True
        self._left -= CALL
        return self._left >= 0
