"""The one thread that runs the cell: sequence, run, frame, commit, release (ARCHITECTURE, principle 7).

Theory of operation. The shard takes a drain of entries, stamps each with `seq` and `at_ms`, runs it to
quiescence, and appends the records as one frame. It does not wait for the commit: it goes on with the next
drain, up to `FRAMES_MAX` frames, and a frame is released when its commit is reported, strictly in order. Between
two events it acts on notices: a commit, a `perform` that returned, somebody who wants to look. Due deadlines enter
their chat's ingress at the tail and are checked again by their owner, so queued activity wins.

What ends it: closing, which takes in everything that was admitted; a failed commit, which releases nothing; a
`BaseException` of a run, which is undone and goes to the host; and `kill`, which drops everything.
"""

from __future__ import annotations

import threading
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

from turnkeeper.actors.clock import ticks_ns
from turnkeeper.actors.commits import FRAMES_MAX, Commits
from turnkeeper.actors.log import log
from turnkeeper.actors.release import Release, Sequenced
from turnkeeper.actors.sequencer import Door, Entry, Sequencer
from turnkeeper.actors.waiting import Admission, Waiter
from turnkeeper.engine.errors import EngineError, InvariantViolated, JournalError, NotRunning
from turnkeeper.engine.recovery import record_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykka._envelope import Envelope

    from turnkeeper.actors.performer import Performer
    from turnkeeper.actors.snapshots import Snapshots
    from turnkeeper.engine.cell import Cell, Run
    from turnkeeper.engine.config import Policy
    from turnkeeper.engine.ids import Address
    from turnkeeper.engine.journal import Body, DueBody, Journal
    from turnkeeper.engine.ports import Clock

__all__ = ["DRAIN", "Shard"]

T = TypeVar("T")
DRAIN = 64
"""Entries of one frame at most; it decides nothing but when they are committed."""


class Shard:
    """Owns the cell's thread. Everything that is not said to be for any thread is for that one."""

    cell: Cell
    performer: Performer
    desk: Release
    snapshots: Snapshots

    def __init__(self, sequencer: Sequencer, journal: Journal, clock: Clock) -> None:
        self.after_run: Callable[[Run], None] = _nothing
        """Called after each run."""
        self.configured: Callable[[Policy], None] = _nothing
        """Called when another policy is in force."""
        self.admit: Callable[[Address, Envelope[Any]], None] = _nothing
        """Takes what is told through a pykka reference, from outside of a run; any thread."""
        self.failure: BaseException | None = None
        """What ended the shard, if it was not closed."""
        self.seq = 0
        self.at_ms = 0
        """The last that was stamped: the engine's clock never goes back behind it."""
        self.commits = Commits(journal, self._here, self._release)
        self._sequencer = sequencer
        self._clock = clock
        self._ahead_ms = 0
        """How far the journal's time was ahead of the clock at the start: it goes on from there."""
        self._queued_dues: set[DueBody] = set()
        self._idlers: list[Waiter[None]] = []
        self._ident = 0
        self._running = 0
        self._thread: threading.Thread | None = None
        self._started = Admission()
        self._refused: list[Waiter[Any]] = []

    # ------------------------------------------------------------ any thread

    def start(self, begin: Callable[[], None], started: Admission) -> None:
        """Run `begin`, then live, on a thread of its own; `started` fails if that ends before it is resolved."""
        self._started = started
        self._thread = threading.Thread(target=self._main, args=(begin,), name="turnkeeper-shard", daemon=True)
        self._clock.on_change(self._sequencer.stir)
        self._thread.start()

    def in_run(self) -> bool:
        """Say whether this is the shard's thread, inside a run."""
        return get_ident() == self._running

    def on_thread(self) -> bool:
        """Say whether this is the shard's thread."""
        return get_ident() == self._ident

    def look(self, what: Callable[[], T]) -> T:
        """Return what `what` sees between two events."""
        if self._thread is None or self.on_thread():
            return what()
        waiter: Waiter[T] = Waiter()
        if not self._sequencer.notice(partial(_look, waiter, what)):
            self.join(None)
            return what()  # nobody runs the cell any more
        return waiter.wait()

    def idle(self, *, closing: bool = False) -> Waiter[None]:
        """Return what is resolved when nothing is left to do at this instant; `closing`: nothing new is handed over."""
        waiter: Waiter[None] = Waiter()
        if not self._sequencer.notice(partial(self._await_idle, waiter, closing)):
            waiter.resolve(None)
        return waiter

    def kill(self) -> None:
        """Drop everything."""
        self.commits.dropped = True

    @property
    def began(self) -> bool:
        """It was started, once."""
        return self._thread is not None

    def join(self, timeout_s: float | None) -> bool:
        """Wait for the thread's end; False: it runs on."""
        if self._thread is None or self.on_thread():
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def now_ms(self) -> int:
        """Return the engine's time: it begins where the journal ended, if the clock was set back since."""
        return max(self.at_ms, self._clock.now_ms() + self._ahead_ms)

    # ------------------------------------------------------------ life

    def _main(self, begin: Callable[[], None]) -> None:
        self._ident = get_ident()
        try:
            begin()
            self._ahead_ms = max(0, self.at_ms - self._clock.now_ms())
            self._live()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the host gets it
            self._fail(error)
        self._end()

    def _live(self) -> None:
        while not self._ends():
            room = DRAIN if len(self.commits) < FRAMES_MAX else 0
            entries, notices = self._sequencer.take(room, self._wait_s())
            self._act_on(notices)
            self.run(entries)
            if self._ends():
                return
            now_ms = self.now_ms()
            self._take_dues(now_ms)
            self.performer.pump(now_ms)
            self._answer_idle(now_ms)
            if self._sequencer.door is Door.CLOSED and not len(self.commits) and self._sequencer.quiet():
                return

    def _act_on(self, notices: list[Callable[[], None]]) -> None:
        for act in notices:
            try:
                act()
            except BaseException as error:  # noqa: BLE001 - a bug of ours; what was taken must still be answered
                self._fail(error)

    def _ends(self) -> bool:
        return self.failure is not None or self.commits.failure is not None or self.commits.dropped

    def next_due_ms(self) -> int | None:
        """Return the next instant at which something is to be done."""
        if self.performer.closing:
            return None
        dues = (self.performer.next_due_ms(), self.cell.next_due_ms())
        return min((due for due in dues if due is not None), default=None)

    def _wait_s(self) -> float | None:
        due_ms = self.next_due_ms()
        return None if due_ms is None else self._clock.timeout_s(due_ms - self._ahead_ms)

    def _take_dues(self, now_ms: int) -> None:
        """Put what is due at the tail of its chat, once."""
        while not self.performer.closing and (body := self.cell.take_due(now_ms)) is not None:
            due = body.due
            if due is not None and due not in self._queued_dues:
                self._queued_dues.add(due)
                self._sequencer.put_own(Entry(due.chat, body))

    def _here(self, act: Callable[[], None]) -> None:
        """Do something on the shard's thread, now or between two events; any thread."""
        if self.on_thread():
            act()
        else:
            self._sequencer.notice(act)

    # ------------------------------------------------------------ sequence, run, frame

    def run(self, entries: list[Entry]) -> None:
        """Run entries one by one, and append their records as one frame."""
        done: list[Sequenced] = []
        for entry in entries:
            if self._ends():
                self._refuse(entry)
                continue
            try:
                done.append(self._run_one(entry))
            except BaseException as error:  # noqa: BLE001 - undone by the cell; the host gets it
                self._fail(error)
                if entry.admission is not None:
                    entry.admission.fail(error)
                    self._refused.append(entry.admission)
                self._refuse(entry)
        if done:
            self.commits.append(done)
            if not self._ends():
                self.snapshots.ran((sequenced.entry for sequenced in done), self.cell, self.seq)

    def _run_one(self, entry: Entry) -> Sequenced:
        if entry.body.due is not None:
            self._queued_dues.discard(entry.body.due)
        self.seq, self.at_ms = self.seq + 1, self.now_ms()
        began_ns = ticks_ns()
        run = self._apply(entry.body)
        spent_ns = ticks_ns() - began_ns
        if entry.signals:
            run.signals += entry.signals
        if entry.body.configured is not None:
            self.configured(entry.body.configured)
        record = record_of(self.seq, self.at_ms, entry.body, run, kept=self.commits.kept)
        return Sequenced(entry, record, run, spent_ns)

    def _apply(self, body: Body) -> Run:
        if get_ident() != self._ident:
            raise InvariantViolated("the cell was run outside of the shard's thread; a bug of turnkeeper")
        self._running = self._ident
        try:
            run = self.cell.apply(body, self.at_ms, self.seq)
        finally:
            self._running = 0
        self.after_run(run)
        return run

    def _release(self, done: Sequenced) -> None:
        self.desk.release(done)

    # ------------------------------------------------------------ rest and end

    def _await_idle(self, waiter: Waiter[None], closing: bool) -> None:  # noqa: FBT001 - bound by name's order
        if closing:
            self.performer.closing = True
        self._idlers.append(waiter)

    def _answer_idle(self, now_ms: int) -> None:
        if not self._idlers or len(self.commits) or not self._sequencer.quiet() or self.performer.busy(now_ms):
            return
        due_ms = self.next_due_ms()
        if due_ms is None or due_ms > now_ms:
            idlers, self._idlers = self._idlers, []
            for waiter in idlers:
                waiter.resolve(None)

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        log.critical("the engine stopped: %s", type(error).__name__, extra={"error": type(error).__name__})

    def _end(self) -> None:
        """Let nobody wait for ever."""
        self.performer.closing = True
        self._sequencer.set_door(Door.CLOSED, self.failure or self.commits.failure)
        if not self._ends():
            self.snapshots.ended(self.cell, self.seq)
        if not self.commits.dropped:
            self.commits.close()
        entries, notices = self._sequencer.close()
        self._act_on(notices)
        self.failure = self.failure or self.commits.failure
        for entry in (*self.commits.unreleased(), *entries):
            self._refuse(entry)
        for waiter in self._idlers:
            waiter.resolve(None)
        self._refused += self.desk.answer_all(self.why_not)
        self._started.fail(self.failure or self.why_not())

    def _refuse(self, entry: Entry) -> None:
        for waiter in (entry.admission, entry.answer):
            if waiter is not None and not waiter.done:
                waiter.fail(self.why_not())
                self._refused.append(waiter)

    def untold(self) -> BaseException | None:
        """Return what ended the shard, if nobody who waited has heard of it; once the thread has ended."""
        return None if any(waiter.seen for waiter in self._refused) else self.failure

    def why_not(self) -> EngineError:
        """Return why there is no answer any more; any thread."""
        failure = self.commits.failure
        if failure is not None:
            return JournalError(str(failure))
        if self.failure is not None:
            error = NotRunning(
                f"the engine stopped before this was answered: a run raised {type(self.failure).__name__}, "
                "the cause of this error; look at it before the next start"
            )
            error.__cause__ = self.failure
            return error
        return NotRunning("the engine stopped before this was answered; ask again after the next start")


def _nothing(*_: object) -> None:
    """Stand in for a hook that is not set yet."""


def _look(waiter: Waiter[Any], what: Callable[[], Any]) -> None:
    try:
        waiter.resolve(what())
    except Exception as error:  # noqa: BLE001 - goes to whoever looks
        waiter.fail(error)
