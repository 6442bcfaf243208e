"""What the engine needs from outside: a gateway that performs, and a clock. Both are arguments, never looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.events import Settled

__all__ = ["Clock", "Gateway", "Reconciliation", "Reconciling"]

Reconciliation = Literal["sent", "not_sent", "unresolved"]
"""What a platform can say of a delivery whose outcome is unknown."""


class Gateway(Protocol):
    """The host's side: performs commands.

    For `send`, `edit`, `preview` and `react` it returns the settlement, or None and posts `settled` later.
    Raising is a failed delivery with the error told; for the other commands it is tried again.
    """

    def perform(self, command: Command, /) -> Settled | Awaitable[Settled | None] | None:
        """Do what the command says; plain or async."""
        ...


@runtime_checkable
class Reconciling(Protocol):
    """A gateway that can say whether a delivery arrived."""

    def reconcile(self, delivery: str, /) -> Reconciliation | Awaitable[Reconciliation]:
        """Look the delivery up on the platform."""
        ...


class Clock(Protocol):
    """Time in integer milliseconds; it never goes back."""

    def now_ms(self) -> int:
        """Return the time now."""
        ...

    def timeout_s(self, due_ms: int) -> float | None:
        """Return how long to wait for that instant; None: until the clock says that it changed."""
        ...

    def on_change(self, wake: Callable[[], None], /) -> None:
        """Call `wake` whenever the clock was moved by hand."""
        ...
