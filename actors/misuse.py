"""What the running system raises when the host calls it at the wrong moment or on the wrong thread."""

from __future__ import annotations

from turnkeeper.engine.errors import EngineError

__all__ = ["Misuse"]


class Misuse(EngineError, RuntimeError):
    """A call that can never work where it was made: a second start, a blocking call on a loop's thread."""
