"""What waits to be sequenced: one deque for each waiting chat, and a ring of the chats.

Theory of operation. Any thread puts entries in; the shard's thread takes them out, one entry of the next waiting
chat at a time, so an entry waits for at most one entry of each other waiting chat per own entry ahead of it.
Inside a chat the order is kept. Above `limits.ingress_high` events are refused, until `limits.ingress_low` is
reached; what frees what is in flight is let through always. Beside the entries there are notices for the
shard, which are no events: a commit returned, a `perform` returned, somebody wants to look.

Closing is atomic: what was put before is still taken, nothing gets in after. The shard is woken only when it
sleeps, once for however many came.
"""

from __future__ import annotations

import threading
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine.errors import NotRunning, Overloaded
from turnkeeper.engine.events import Accepted, Rewound, Settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.actors.performer import Job
    from turnkeeper.actors.waiting import Admission, Waiter
    from turnkeeper.engine.commands import Ack, Command
    from turnkeeper.engine.journal import Body
    from turnkeeper.engine.signals import Signal

__all__ = ["BYPASS", "Door", "Entry", "Sequencer"]

BYPASS = (Settled, Rewound, Accepted)
"""Bounded by what is in flight: refusing these would hold what they would free."""


class Door(Enum):
    """Who may come in."""

    SHUT = "the engine was not started; call start(), or enter it with `with` or `async with`"
    OPEN = "open"
    SETTLING = "the engine is stopping; only settled and rewound are taken; keep the event for the next start"
    CLOSED = "the engine has stopped; make a new Engine on the same journal"


class Entry(msgspec.Struct, eq=False, gc=False):
    """One body on its way to the cell."""

    chat: str
    body: Body
    admission: Admission | None = None
    answer: Waiter[Ack] | None = None
    """Who asked for the ack of this call."""
    job: Job | None = None
    """The hand-over that waits for its verdict."""
    again: tuple[Command, ...] = ()
    """Commands of before a restart, released ahead of this entry's own."""
    signals: tuple[Signal, ...] = ()
    """What a restart found, told with this entry's run."""


class Sequencer:
    """The ingress of one shard."""

    def __init__(self, high: int, low: int) -> None:
        self.door = Door.SHUT
        self.depth = 0
        self.refused: Callable[[], None] = _nothing
        """Called for each event that the watermark refuses."""
        self._high, self._low = high, low
        self._over = False
        self._queues: dict[str, deque[Entry]] = {}
        self._ring: deque[deque[Entry]] = deque()
        self._notices: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._asleep = False
        self._stirred = False
        self._final = False
        self._why: BaseException | None = None

    # ------------------------------------------------------------ any thread

    def put(self, entry: Entry, *, bypass: bool = False) -> None:
        """Take an entry from the host.

        Raises:
            Overloaded: above the watermark, and not let through.
            NotRunning: not started, stopping, or stopped.

        """
        with self._lock:
            if self.door is not Door.OPEN:
                self._check_door(entry)
            depth, over = self.depth, self._over and not bypass
            if not over:
                self._append(entry)
        if over:
            self.refused()
            raise Overloaded(
                f"{_named(entry)} was not taken: {depth} events wait, limits.ingress_high is {self._high}; "
                f"events are taken again at limits.ingress_low, {self._low}: post this one again later"
            )

    def check(self) -> None:
        """Find out whether a configuration would be taken.

        Raises:
            NotRunning: not started, stopping, or stopped.

        """
        with self._lock:
            if self.door is not Door.OPEN:
                raise NotRunning(f"a configuration was not taken: {self.door.value}") from self._why

    def put_own(self, entry: Entry) -> bool:
        """Take an entry of the engine itself, whatever waits; False once it is closed."""
        with self._lock:
            if self.door is Door.CLOSED:
                return False
            self._append(entry)
            return True

    def notice(self, act: Callable[[], None]) -> bool:
        """Have the shard's thread do something between two events; False once that thread ends."""
        with self._lock:
            if self._final:
                return False
            self._notices.append(act)
            self._wake()
            return True

    def stir(self) -> None:
        """Let the shard look at its deadlines again: the clock was moved."""
        with self._lock:
            self._stirred = True
            self._wake()

    def set_door(self, door: Door, why: BaseException | None = None) -> None:
        """Open, or let only settlements in, or close; the shard is woken."""
        with self._lock:
            if self.door is not Door.CLOSED:
                self.door, self._why = door, why
            self._stirred = True
            self._wake()

    def set_watermarks(self, high: int, low: int) -> None:
        """Apply other limits at once."""
        with self._lock:
            self._high, self._low = high, low
            self._over = self.depth >= high

    def _check_door(self, entry: Entry) -> None:
        settles = isinstance(entry.body.event, Settled | Rewound)
        if self.door is Door.SETTLING and settles:
            return
        raise NotRunning(f"{_named(entry)} was not taken: {self.door.value}") from self._why

    def _append(self, entry: Entry) -> None:
        queue = self._queues.get(entry.chat)
        if queue is None:
            queue = self._queues[entry.chat] = deque()
            self._ring.append(queue)
        queue.append(entry)
        self.depth += 1
        if self.depth >= self._high:
            self._over = True
        self._wake()

    def _wake(self) -> None:
        if self._asleep:
            self._asleep = False
            self._changed.notify()

    # ------------------------------------------------------------ the shard's thread

    def take(self, limit: int, timeout_s: float | None) -> tuple[list[Entry], list[Callable[[], None]]]:
        """Wait for something to do, and take up to `limit` entries, fairly, and every notice."""
        with self._lock:
            if not (self._notices or self._stirred or (limit and self._ring)):
                self._asleep = True
                self._changed.wait(timeout_s)
                self._asleep = False
            self._stirred = False
            notices = list(self._notices)
            self._notices.clear()
            return self._pick(limit), notices

    def _pick(self, limit: int) -> list[Entry]:
        taken: list[Entry] = []
        while self._ring and len(taken) < limit:
            queue = self._ring.popleft()
            entry = queue.popleft()
            taken.append(entry)
            if queue:
                self._ring.append(queue)
            else:
                del self._queues[entry.chat]
        self.depth -= len(taken)
        if self._over and self.depth <= self._low:
            self._over = False
        return taken

    def longest(self) -> int:
        """Return how many wait in the longest queue of one chat; any thread."""
        with self._lock:
            return max(map(len, self._queues.values()), default=0)

    def quiet(self) -> bool:
        """Say whether nothing waits: no entry, no notice."""
        with self._lock:
            return not (self._ring or self._notices)

    def close(self) -> tuple[list[Entry], list[Callable[[], None]]]:
        """Take no notice any more, and give back what was not taken."""
        with self._lock:
            self.door, self._final = Door.CLOSED, True
            left, notices = self._pick(self.depth), list(self._notices)
            self._notices.clear()
            return left, notices


def _nothing() -> None:
    """Nobody counts."""


def _named(entry: Entry) -> str:
    event = entry.body.event
    return "a configuration" if event is None else f"{type(event).__struct_config__.tag} of chat {entry.chat}"
