"""What a store refuses: the host's mistakes, told loudly (RULES-transcript R8, R12, R31, R33)."""

from __future__ import annotations

from turnkeeper.engine.errors import EngineError

__all__ = ["MergeConflict", "RouteDiffers", "TranscriptError", "UnknownEntry", "UnknownSession"]


class TranscriptError(EngineError):
    """Base of what a transcript refuses; nothing was changed."""


class RouteDiffers(TranscriptError):
    """A receipt came under a known key with another route: two deliveries share one identity (R8)."""


class MergeConflict(TranscriptError):
    """A merge brought an entry whose role or text is not that of the entry of the same id (R31)."""


class UnknownEntry(TranscriptError):
    """An operation names an entry that is not in the conversation."""


class UnknownSession(TranscriptError):
    """A receipt names a session that nobody opened here (R12)."""
