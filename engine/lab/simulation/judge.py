"""What the checks of the oracle need of it: the settings of the run, and where a complaint goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from turnkeeper.engine.config import Config

__all__ = ["Judge"]


class Judge(Protocol):
    """The oracle, as the checks of sends and ends see it."""

    config: Config
    roomy: bool
    """The limits are wide enough that nothing a complaint rests on was forgotten."""
    roomy_inbound: bool
    """The same of what came in, and waits for a turn."""
    now_ms: int
    window_ms: int
    """The shortest `dedup.window_ms` that ever counted."""
    resends: bool
    """What may have arrived could be sent again, at some time."""
    torn: bool
    """The process died in the middle of something."""

    def remembers(self, *limits: str) -> bool:
        """Say whether these limits were wide enough all the time."""
        ...

    def complain(self, complaint: str, /) -> None:
        """Note a breach."""
        ...
