"""An engine under the load of `load.py`: a clock that follows it, a gateway that settles at once, and a feeder.

What users and agents do is posted from another thread, as a host does. Hand-overs, settlements, confirmations and
deadlines come out of the engine itself; there are as many of each as in the load, give or take the
deadlines that come a little earlier or later. The gateway answers on the shard's own thread: it is not what is
measured, and a thread of its own would be.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from load import START_MS

from turnkeeper.actors.aio import GatewayHands
from turnkeeper.actors.system import Engine
from turnkeeper.engine import events
from turnkeeper.engine.commands import Send

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from load import Load, Timed
    from prometheus_client import CollectorRegistry

    from turnkeeper.actors.performer import Job
    from turnkeeper.actors.release import Observer
    from turnkeeper.actors.waiting import Waiter
    from turnkeeper.engine.journal import Journal

__all__ = ["AHEAD", "AHEAD_ON_DISK", "Fed", "LoadClock", "make_engine"]

AHEAD = 32
"""Twice as many are posted and not yet committed, at most: posting further ahead would move the clock past them."""
AHEAD_ON_DISK = 256
"""A disk's commits take their time."""


class LoadClock:
    """The load's time, set by who posts."""

    def __init__(self) -> None:
        self.ms = START_MS
        self._wake: Callable[[], None] = lambda: None

    def now_ms(self) -> int:
        return self.ms

    def timeout_s(self, due_ms: int) -> float | None:
        return None if due_ms > self.ms else 0.0

    def on_change(self, wake: Callable[[], None], /) -> None:
        self._wake = wake

    def advance(self, ms: int) -> None:
        self.ms = ms
        self._wake()


class Hands:
    """Calls the gateway between two events of the shard; the first attempt of some sends fails."""

    def __init__(self, real: GatewayHands, engine: Engine) -> None:
        self._real = real
        self._sequencer = engine._sequencer
        self._shard = engine._shard
        self.message = 0
        self.host_loop = None

    def call(self, job: Job) -> bool:
        result, error = self.answer(job)
        self._sequencer.notice(lambda: self._shard.performer.returned(job, result, error, self._shard.now_ms()))
        return True

    def answer(self, job: Job) -> tuple[Any, BaseException | None]:
        """Return what the gateway's call came to."""
        sent = job.command
        if not isinstance(sent, Send):
            return None, None
        self.message += 1
        if self.message % 33 == 0 and sent.attempt == 1:
            return events.Settled(sent.chat, sent.delivery, "failed", reason="503"), None
        return events.Settled(sent.chat, sent.delivery, "sent", messages=(self.message,)), None

    def close(self) -> None:
        self._real.close()


class Gateway:
    """Never called: `Hands` answers."""

    def perform(self, command: object) -> None:
        raise AssertionError(command)


def make_engine(
    clock: LoadClock,
    *,
    journal: Journal | None = None,
    registry: CollectorRegistry | None = None,
    config: Mapping[str, object] | None = None,
    observer: Observer | None = None,
    hands: type[Hands] = Hands,
) -> Engine:
    """Make an engine whose gateway answers at once."""
    engine = Engine(
        {} if config is None else config, Gateway(), journal=journal, registry=registry, clock=clock, observer=observer
    )
    made: Any = hands(engine._parts.hands, engine)
    engine._parts.hands = engine._shard.performer._hands = made
    return engine


class Fed:
    """A load, ready to be fed."""

    def __init__(self, load: Load) -> None:
        self.posts: list[Timed] = [
            timed
            for timed in load.bodies
            if timed.body.event is not None and not isinstance(timed.body.event, events.Settled)
        ]
        self.end_ms = load.bodies[-1].at_ms

    def feed(self, engine: Engine, clock: LoadClock, ahead: int = AHEAD) -> int:
        """Post everything from a thread, wait until all of it is done, and return how many records that made."""
        before = engine._shard.seq
        errors: list[BaseException] = []

        def post() -> None:
            try:
                self._post(engine, clock, ahead)
            except BaseException as error:  # noqa: BLE001 - told by whoever waits
                errors.append(error)

        thread = threading.Thread(target=post)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        engine._shard.idle().wait(60)
        # The last turns end in quiet, the last checks come.
        for _ in range(50):
            due_ms = engine.look(lambda cell: cell.next_due_ms())
            if due_ms is None:
                break
            clock.advance(max(due_ms, self.end_ms))
            engine._shard.idle().wait(60)
        return engine._shard.seq - before

    def _post(self, engine: Engine, clock: LoadClock, ahead: int) -> None:
        posted: deque[Waiter[Any]] = deque()
        for at_ms, body in self.posts:
            if len(posted) == 2 * ahead:
                posted[ahead - 1].wait()
                for _ in range(ahead):
                    posted.popleft()
            clock.ms = at_ms
            assert body.event is not None
            waiter = self.post_one(engine, body.event)
            if waiter is not None:
                posted.append(waiter)

    def post_one(self, engine: Engine, event: Any) -> Waiter[Any] | None:
        """Post one event; None: its end may need the clock to go on."""
        return engine.post(event)
