"""What must hold after every event, as named predicates (ARCHITECTURE; checked live, in tests always)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from turnkeeper.engine.commands import Command, TurnSettled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["violations"]


def violations(touched: Mapping[Any, Any], commands: Sequence[Command]) -> list[str]:
    """Return the names of the invariants that a run broke; `touched` maps owners to their states before."""
    broken: list[str] = []
    ended = Counter((c.chat, c.turn_id) for c in commands if isinstance(c, TurnSettled))
    if any(count > 1 for count in ended.values()):
        broken.append("one_terminal")
    return broken
