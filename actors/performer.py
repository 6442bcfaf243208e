"""Handing commands to the gateway: per chat in order, bounded, and never before the commit.

Theory of operation. All of this runs on the shard's thread; only the calls of the gateway run elsewhere, and
they come back as notices. Each chat has a line. The head of a line leaves when a slot of
`delivery.concurrency` is free: for a send, edit, preview or react first `handed` is admitted, and the gateway
is called only if its run says go, after its commit. The next of the line follows when that call has begun, so a
chat's commands are handed over in order.

A line has lanes: one for each channel, one for its reactions, one for what goes to no channel. Calls of one lane
follow each other; what goes to a channel passes what waits for another one, as channels do not wait for each
other. What goes to no channel passes nothing, and nothing passes it. A call that runs longer than `delivery.settle_timeout_ms`
is taken as hanging: it keeps its slot and holds its lane no longer. A command without settlement that raised
is tried again with back-off, out of line, until it returns; then `done` is admitted.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Protocol

from turnkeeper.actors.log import log
from turnkeeper.actors.outcomes import answer_of, settlement_of
from turnkeeper.engine.commands import Ack, Edit, Preview, React, Reconcile, Send
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.ids import ChannelRef

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.config import Policy
    from turnkeeper.engine.events import Event

__all__ = ["HANG_MS", "Job", "Performer"]

SETTLEABLE = frozenset({Send, Edit, Preview, React})
LANED = SETTLEABLE | {Reconcile}
Lane = ChannelRef | tuple[str, ChannelRef] | None
"""A channel, the reactions in one, or what goes to no channel."""
HANG_MS = 60_000
"""What counts as hanging where `delivery.settle_timeout_ms` has no bound."""


class Line:
    """The commands of one chat, in order."""

    __slots__ = ("chat", "listed", "look_ms", "running", "starting", "waiting")

    def __init__(self, chat: str) -> None:
        self.chat = chat
        self.waiting: list[Job] = []
        self.starting: Job | None = None
        """It left, and its call has not begun."""
        self.running: dict[Lane, Job] = {}
        """The last call that began, by lane."""
        self.listed = False
        """It is among those that may go on."""
        self.look_ms = -1
        """When its head is to be looked at again."""


class Job:
    """One command on its way through the gateway."""

    __slots__ = ("command", "hold_ms", "lane", "line", "settles", "since_ms", "tries")

    def __init__(self, command: Command, line: Line, hold_ms: int) -> None:
        self.command = command
        self.line = line
        self.lane: Lane = _lane_of(command)
        self.settles = command.__class__ in SETTLEABLE
        self.hold_ms = hold_ms
        """It is not handed over before."""
        self.since_ms = 0
        """When it was handed over."""
        self.tries = 0


def _lane_of(command: Any) -> Lane:  # noqa: ANN401 - a command of any kind
    """Say what a call waits for: its channel's calls; a reaction for other reactions there alone."""
    kind = command.__class__
    if kind not in LANED:
        return None
    channel: ChannelRef = command.channel
    return ("reactions", channel) if kind is React else channel


class Hands(Protocol):
    """Whoever calls the gateway."""

    def call(self, job: Job, /) -> bool:
        """Call the gateway for a job, elsewhere; True if the call begins before any that is made later."""
        ...


class Office(Protocol):
    """What the performer needs of its shard."""

    def policy(self) -> Policy:
        """Return the policy that is in force."""
        ...

    def pending(self) -> Mapping[str, Command]:
        """Return the commands that await confirmation."""
        ...

    def admit_handed(self, job: Job, /) -> None:
        """Ask the cell whether the attempt is still wanted; the verdict comes after the commit."""
        ...

    def admit_done(self, command: Command, /) -> None:
        """Note that a command without settlement was performed."""
        ...

    def admit_event(self, event: Event, /) -> None:
        """Take a settlement."""
        ...


class Performer:
    """The hand-over of one shard. Used on the shard's thread only."""

    def __init__(self, office: Office, hands: Hands) -> None:
        self.closing = False
        """Nothing new is handed over."""
        self._office = office
        self._hands = hands
        self._lines: dict[str, Line] = {}
        self._ready: deque[Line] = deque()
        self._again: deque[Job] = deque()
        self._later: list[tuple[int, int, Job | Line]] = []
        self._pushed = 0
        self._asked = 0
        """Hand-overs whose verdict is not out."""
        self._flying: set[Job] = set()
        self._resent = 0
        self._resume_ms = 0

    # ------------------------------------------------------------ in

    def resume(self, now_ms: int) -> None:
        """A restart: what is released again is paced from now on."""
        self._resume_ms = now_ms

    def take(self, command: Command, *, again: bool = False) -> None:
        """Put a command at the end of its chat's line; `again`: it is one of before a restart."""
        hold_ms = 0
        if again and isinstance(command, Send):
            # An answer that nobody saw yet: `recovery.resend_per_s` of them a second.
            hold_ms = self._resume_ms + self._resent // self._office.policy().recovery.resend_per_s * 1000
            self._resent += 1
        line = self._lines.get(command.chat)
        if line is None:
            line = self._lines[command.chat] = Line(command.chat)
        line.waiting.append(Job(command, line, hold_ms))
        self._list(line)

    def forget(self, command: Command) -> None:
        """A command of before a restart that nobody wants any more: it is confirmed unperformed."""
        self._office.admit_done(command)

    def verdict(self, job: Job, at_ms: int, *, go: bool) -> None:
        """The hand-over is committed, at `at_ms`: perform, or drop what is not wanted any more."""
        self._asked -= 1
        if go:
            self._call(job, at_ms)
        else:
            self.begun(job)

    def begun(self, job: Job) -> None:
        """The gateway was called (or will not be): the next of the line may follow."""
        line = job.line
        if line.starting is job:
            line.starting = None
        if line.waiting:
            self._list(line)
        elif not line.running and line.starting is None and self._lines.get(line.chat) is line:
            del self._lines[line.chat]

    def returned(self, job: Job, result: Any, error: BaseException | None, now_ms: int) -> None:  # noqa: ANN401 - whatever a gateway returns
        """The gateway's call came back."""
        line = job.line
        self._flying.discard(job)
        if line.running.get(job.lane) is job:
            del line.running[job.lane]
        self.begun(job)
        command = job.command
        if error is not None:
            extra = {"chat": command.chat, "command": command.id, "error": type(error).__name__}
            log.warning("perform raised %s", type(error).__name__, extra=extra)
        if isinstance(command, Send | Edit | Preview | React):
            self._settle(settlement_of(command, result, error))
        elif isinstance(command, Ack):
            return  # its caller asks again, and is answered from the call id
        elif error is None:
            if isinstance(command, Reconcile):
                self._settle(answer_of(command, result))
            self._office.admit_done(command)
        else:
            self._try_again(job, now_ms)

    def _settle(self, event: Event | None) -> None:
        if event is None:
            return
        try:
            self._office.admit_event(event)
        except DecodeError as error:
            log.error("a settlement that perform returned cannot be read: %s", error, extra={"chat": event.chat})

    def _try_again(self, job: Job, now_ms: int) -> None:
        waits = self._office.policy().delivery.backoff_ms
        due_ms = now_ms + waits[min(job.tries, len(waits) - 1)]
        job.tries += 1
        self._push(due_ms, job)

    # ------------------------------------------------------------ out

    def pump(self, now_ms: int) -> None:
        """Let go whatever may go now."""
        if self._later:
            self._ripen(now_ms)
        while (self._ready or self._again) and not self.closing and self._slots() > 0:
            job = self._next(now_ms)
            if job is None:
                return
            if job.settles:
                self._asked += 1
                self._office.admit_handed(job)
            else:
                self._call(job, now_ms)

    def _slots(self) -> int:
        return self._office.policy().delivery.concurrency - len(self._flying) - self._asked

    def _next(self, now_ms: int) -> Job | None:
        while self._again:
            job = self._again.popleft()
            if job.command.id in self._office.pending():
                return job
        while self._ready:
            line = self._ready.popleft()
            line.listed = False
            head = self._head(line, now_ms)
            if head is not None:
                line.starting = head
                return head
        return None

    def _head(self, line: Line, now_ms: int) -> Job | None:
        """Take the first of a line that nothing holds; what holds the others says when to look again."""
        if line.starting is not None:
            return None
        held: dict[Lane, int] = {}
        for place, job in enumerate(line.waiting):
            if job.lane not in held:
                until_ms = self._held_until_ms(line, job, now_ms)
                if until_ms <= now_ms and (job.lane is not None or not held):
                    del line.waiting[place]
                    return job
                held[job.lane] = until_ms
            if job.lane is None:
                break
        due_ms = min((until_ms for until_ms in held.values() if until_ms > now_ms), default=None)
        if due_ms is not None:
            self._look_again(due_ms, line)
        return None

    def _held_until_ms(self, line: Line, job: Job, now_ms: int) -> int:
        """Say until when a job waits at most: for its own time, or for the call before it in its lane."""
        before = line.running.get(job.lane)
        if before is None or self._hangs(before, now_ms):
            return job.hold_ms
        return max(job.hold_ms, before.since_ms + self._hang_ms())

    def _call(self, job: Job, now_ms: int) -> None:
        job.since_ms = now_ms
        self._flying.add(job)
        if job.line.starting is job:
            job.line.running[job.lane] = job
        if self._hands.call(job):
            self.begun(job)

    def _hang_ms(self) -> int:
        return self._office.policy().delivery.settle_timeout_ms or HANG_MS

    def _hangs(self, job: Job, now_ms: int) -> bool:
        return job.since_ms + self._hang_ms() <= now_ms

    # ------------------------------------------------------------ time and rest

    def _push(self, due_ms: int, what: Job | Line) -> None:
        self._pushed += 1
        heappush(self._later, (due_ms, self._pushed, what))

    def _look_again(self, due_ms: int, line: Line) -> None:
        if line.look_ms != due_ms:
            line.look_ms = due_ms
            self._push(due_ms, line)

    def _ripen(self, now_ms: int) -> None:
        while self._later and self._later[0][0] <= now_ms:
            what = heappop(self._later)[2]
            if isinstance(what, Line):
                self._list(what)
            else:
                self._again.append(what)

    def _list(self, line: Line) -> None:
        if line.waiting and not line.listed and line.starting is None:
            line.listed = True
            self._ready.append(line)

    def next_due_ms(self) -> int | None:
        """Return when to look again, if nothing else happens."""
        return self._later[0][0] if self._later and not self.closing else None

    def in_flight(self, now_ms: int) -> list[str]:
        """List the commands that the gateway has, but for those that hang, by id; any thread may look."""
        return sorted(job.command.id for job in tuple(self._flying) if not self._hangs(job, now_ms))

    def busy(self, now_ms: int) -> bool:
        """Say whether something is on its way at this instant; what hangs is not."""
        if self._asked or self.in_flight(now_ms):
            return True
        return not self.closing and self._slots() > 0 and bool(self._ready or self._again)
