"""What whoever plays steps does alike: events, what the platform answers, time, and a process that dies.

The scenario runner compares what came with what a file expects; the simulator lets an oracle judge. Both are
stages, so that a script that a simulation found plays the same as a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine import codec
from turnkeeper.engine.lab.clock import VirtualClock
from turnkeeper.engine.lab.runtime import Died

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.config import Config
    from turnkeeper.engine.events import Event
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.lab.runtime import Runtime
    from turnkeeper.engine.lab.simulation.platform import WatchedPlatform
    from turnkeeper.engine.lab.steps import Crash

__all__ = ["Stage"]


class Stage:
    """A runtime, its platform and its clock.

    Whoever makes one sets `runtime`, and has it tell `committed` of each record.

    Args:
        config: what the first start reads.
        platform: performs, and settles by events.

    """

    runtime: Runtime

    def __init__(self, config: Config, platform: WatchedPlatform) -> None:
        self.config = config
        """What the next restart reads."""
        self.clock = VirtualClock()
        self.platform = platform
        self.at_ms = 0
        """When the newest record was made."""
        self._chats: dict[str, None] = {}
        self._armed: Crash | None = None
        self._posting: Event | None = None
        """What was posted and is not committed yet."""

    def start(self) -> None:
        """Let the process run for the first time."""
        self.runtime.start(self.config, reconciles=False)

    def committed(self, record: Record) -> None:
        """Take in a record that was committed; a runtime may call this from a thread of its own."""
        self.at_ms = record.at_ms
        event, posting = record.body.event, self._posting
        # What runs is read as its record will be, and so it may be another object.
        if posting is not None and type(event) is type(posting) and codec.encode(event) == codec.encode(posting):
            self._posting = None

    # ------------------------------------------------------------ steps

    def post(self, event: Event) -> None:
        """Post an event, and then what the platform answers."""
        self._chats[event.chat] = None
        self._posting = event
        self.runtime.post(event)
        self.settle_all()

    def settle_all(self) -> None:
        """Post what the platform has to say, until it has nothing more to say."""
        self._plan()
        while (event := self.platform.take()) is not None:
            self.runtime.post(event)
            self._plan()

    def _plan(self) -> None:
        for chat in self._chats:
            self.platform.plan(self.runtime.queued(chat))

    def advance(self, span_ms: int) -> None:
        """Move the clock, stopping at every deadline on the way."""
        until_ms = self.clock.now_ms() + span_ms
        while (due_ms := self.runtime.next_due_ms()) is not None and due_ms <= until_ms:
            self._move_to(due_ms)
        self._move_to(until_ms)

    def _move_to(self, now_ms: int) -> None:
        self.clock.advance_to(now_ms)
        self.runtime.quiesce()
        self.settle_all()

    def reload(self, config: Config) -> None:
        """Apply another configuration; a restart reads it too."""
        self.config = config
        self.reconfigured(config, self.runtime.now_ms())
        self.runtime.reload(config)
        self.runtime.quiesce()
        self.settle_all()

    # ------------------------------------------------------------ the process dies

    def crash(self, crash: Crash) -> None:
        """Let the process die now; or in the middle of the next step."""
        if crash.during is None:
            self._restart(crash, died=False)
        else:
            self._armed = crash

    def step(self, play: Callable[[], None]) -> None:
        """Play a step; if the process is to die in it and the step is too short for that, it dies afterwards."""
        crash, self._armed = self._armed, None
        if crash is None:
            play()
            return
        died = False
        self.runtime.arm(crash.during)
        try:
            play()
        except Died:
            died = True
        self.runtime.arm(None)
        self._restart(crash, died=died)
        unread, self._posting = self._posting, None
        if unread is not None:
            # It was never admitted, so its sender posts it again.
            self.post(unread)

    def _restart(self, crash: Crash, *, died: bool) -> None:
        now_ms = self.runtime.now_ms()
        self.runtime.crash()
        self.platform.lose_answers()
        self.crashed(now_ms, answers_lost=died)
        self.clock.set_to(self.clock.now_ms() + crash.down_ms - crash.back_ms)
        self.platform.reconciliation = crash.reconcile or {}
        self.config = self.config if crash.config is None else crash.config
        # A clock that was set back counts for nothing: time goes on from the newest record.
        self.reconfigured(self.config, max(self.at_ms, self.clock.now_ms()))
        self.runtime.start(self.config, reconciles=crash.reconcile is not None)
        self.settle_all()

    # ------------------------------------------------------------ for whoever watches

    def crashed(self, now_ms: int, *, answers_lost: bool) -> None:
        """The process died at that time; `answers_lost`: in the middle of something."""

    def reconfigured(self, config: Config, now_ms: int) -> None:
        """These settings are about to act."""
