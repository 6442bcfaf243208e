"""The simulated platform that somebody watches: it also says what it holds, and may have habits of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine.commands import Command, Rewind, Settleable
from turnkeeper.engine.events import Settled
from turnkeeper.engine.lab.platform import FIRST_MESSAGE, Platform, Settling

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Quirks", "WatchedPlatform"]


class Quirks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a simulated host may do otherwise; `platform` in the header of a scenario file."""

    rewinds_at_once: bool = True
    """It answers `rewind` at once, with one exchange removed; else by `rewound` steps of its own."""
    holds_again: bool = False
    """What is held is held at every attempt, not at the first alone."""


class WatchedPlatform(Platform):
    """A platform that tells of everything it is asked to perform.

    Args:
        watch: told of each command, before the platform acts on it.
        quirks: in what it differs from a scenario's platform.
        next_message: the first message id it gives.

    """

    def __init__(self, watch: Callable[[Command], None], quirks: Quirks, next_message: int = FIRST_MESSAGE) -> None:
        super().__init__(next_message)
        self._watch = watch
        self._quirks = quirks

    def perform(self, command: Command) -> None:
        """Tell of the command, then act on it."""
        self._watch(command)
        if self._quirks.rewinds_at_once or not isinstance(command, Rewind):
            super().perform(command)
            return
        with self._lock:
            if command.id not in self._ids:
                self._ids.add(command.id)
                self.performed.append(command)

    def _operate(self, command: Settleable) -> None:
        directive = self._directives.setdefault(command.delivery, self.step)
        if directive.way == "hold" and self._quirks.holds_again:
            self._attempts[command.delivery] = self._attempts.get(command.delivery, 0) + 1
            self._held[command.delivery] = command
        else:
            super()._operate(command)

    def settle(self, told: Settling) -> Settled:
        """Settle as told; what is told of another attempt than the one that is held leaves that one held."""
        before = dict(self._held)
        event = super().settle(told)
        kept = before.get(event.delivery)
        if kept is not None and event.attempt != kept.attempt:
            self._held[event.delivery] = kept
        return event

    def held(self) -> list[str]:
        """List what waits for a `settle` step."""
        return list(self._held)
