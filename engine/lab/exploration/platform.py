"""The simulated platform of an exploration: it can be copied, and says what it would tell next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine.lab.platform import Directive, Platform

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.events import Event
    from turnkeeper.engine.lab.platform import Settling

__all__ = ["ForkedPlatform"]


class ForkedPlatform(Platform):
    """A platform that branches with its run.

    Args:
        next_message: the first message id it gives.
        watch: told of each command that is performed.

    """

    def __init__(self, next_message: int, watch: Callable[[Command], None]) -> None:
        super().__init__(next_message)
        self._watch = watch

    def fork(self, watch: Callable[[Command], None]) -> ForkedPlatform:
        """Return a copy that goes its own way."""
        copy = ForkedPlatform(self._next, watch)
        copy.performed = self.performed.copy()
        copy.reconciliation = self.reconciliation
        copy._ids = self._ids.copy()
        copy._directives = self._directives.copy()
        copy._attempts = self._attempts.copy()
        copy._bubbles = self._bubbles.copy()
        copy._held = self._held.copy()
        return copy

    def perform(self, command: Command) -> None:
        """Tell of the command, then act on it."""
        self._watch(command)
        super().perform(command)

    def answers(self) -> list[Event]:
        """Take everything that the platform wants posted, in the order of the commands it answers."""
        found: list[Event] = []
        while (event := self.take()) is not None:
            found.append(event)
        return found

    def named(self, told: Settling) -> str | None:
        """Return the delivery that a `settle` step means, once it was handed over."""
        for key in told.names() or self._meant(told):
            if key in self._held or self._latest(key) is not None:
                return key
        return None

    def held(self) -> list[str]:
        """List what waits for a `settle` step."""
        return list(self._held)

    def mark(self) -> tuple[object, ...]:
        """Return what its answers depend on, for comparing branches."""
        plans = ((key, one) for key, one in self._directives.items() if one != OK)
        return (
            self._next,
            tuple(sorted(self._held)),
            tuple(sorted(self._attempts.items())),
            tuple(sorted(self._bubbles.items())),
            tuple(sorted(plans, key=_first)),
        )


def _first(pair: tuple[str, Directive]) -> str:
    return pair[0]


OK = Directive()
