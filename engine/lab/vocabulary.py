"""The names that a scenario may expect: commands and signals, and their fields.

A name that does not exist can never come, so a scenario that bans it, or wants a field of it absent, would pass
whatever happens: a slip of the pen is an error, as in what is fed.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from turnkeeper.engine.commands import Command
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.signals import Signal

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["COMMANDS", "SIGNALS", "check_fields", "check_name"]

Fields = dict[str, tuple[str, ...]]
COMMANDS: Fields = {str(kind.__struct_config__.tag): kind.__struct_fields__ for kind in Command.__args__}
"""Commands by type, with their fields."""
SIGNALS: Fields = {str(kind.__struct_config__.tag): kind.__struct_fields__ for kind in Signal.__args__}
"""Signals by type, with their fields."""


def check_name(what: str, name: str, known: Fields) -> None:
    """Check that there is such a command or signal.

    Raises:
        DecodeError: there is none; the text names the nearest.

    """
    if name not in known:
        raise DecodeError(f"{name!r} is no {what}; {_nearest(name, known)}")


def check_fields(name: str, fields: dict[str, Any], known: Fields) -> None:
    """Check that what is listed are fields; null may be said of any, but of a misspelled one.

    Raises:
        DecodeError: one is none.

    """
    for field, value in fields.items():
        if field not in known[name] and (value is not None or _close(field, known[name])):
            raise DecodeError(f"{name}.{field} is no field; {_nearest(field, known[name])}")


def _close(name: str, known: Iterable[str]) -> list[str]:
    return get_close_matches(name, list(known), n=1, cutoff=0.7)


def _nearest(name: str, known: Iterable[str]) -> str:
    close = _close(name, known)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
