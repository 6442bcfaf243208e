"""The simulated platform of a simulation: it also says what it holds, and forgets what it had not answered yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine.commands import Command, Rewind
from turnkeeper.engine.lab.platform import Platform

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WatchedPlatform"]


class WatchedPlatform(Platform):
    """A platform that tells of everything it is asked to perform.

    Args:
        watch: told of each command, before the platform acts on it.
        rewinds: answer `rewind` at once, as the scenario's host does; False: the simulated host answers by events.

    """

    def __init__(self, watch: Callable[[Command], None], *, rewinds: bool = True) -> None:
        super().__init__()
        self._watch = watch
        self._rewinds = rewinds

    def perform(self, command: Command) -> None:
        """Tell of the command, then act on it."""
        self._watch(command)
        if self._rewinds or not isinstance(command, Rewind):
            super().perform(command)

    def held(self) -> list[str]:
        """List what waits for a `settle` step."""
        return list(self._held)

    def lose_answers(self) -> None:
        """The host crashed before it could post what the platform answered."""
        self._out.clear()
