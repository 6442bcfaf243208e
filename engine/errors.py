"""The errors a host can meet: one tree, each naming what, where, what was found, what is allowed.

A late, duplicate or hostile event is never an error: it gets a verdict (ARCHITECTURE, principle 9).
These are raised for misuse by the host, for an unreadable input, or for a bug of ours.
"""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "DecodeError",
    "EngineError",
    "InvariantViolated",
    "JournalError",
    "Locked",
    "NotRunning",
    "Overloaded",
    "SchemaTooNew",
    "SetAside",
    "TableError",
]


class EngineError(Exception):
    """Base of everything turnkeeper raises."""


class ConfigError(EngineError):
    """A setting that cannot be used: an unknown key, a wrong type, a value out of bounds."""


class DecodeError(EngineError):
    """Bytes or text that are no record, event or scenario of ours; names place, found and allowed."""


class Overloaded(EngineError):
    """`post` refused an event because the ingress is above `limits.ingress_high`; post it again later."""


class NotRunning(EngineError):
    """The engine was not started, is stopping, or has stopped."""


class SetAside(EngineError):
    """An event was journaled but not applied, because a step raised; see `Engine.dead_letters()`."""


class JournalError(EngineError):
    """The journal could not record; the engine stopped and released nothing it could not record."""


class SchemaTooNew(JournalError):
    """The journal was written by a newer schema than this version reads."""


class Locked(JournalError):
    """Another process has this journal open."""


class TableError(EngineError):
    """A decision table is incomplete or has a row that can never decide; raised at import."""


class InvariantViolated(EngineError):
    """A named invariant does not hold; a bug of ours, with the name and the owner."""
