"""The one thread that runs the cell: sequence, run, frame, commit, release (ARCHITECTURE, principle 7).

Theory of operation. The shard takes a drain of entries, stamps each with `seq` and `at_ms`, runs it to
quiescence, and appends the records as one frame. It does not wait for the commit: it goes on with the next
drain, up to `FRAMES_MAX` frames, and releases a frame when its commit is reported, strictly in order. Between two
events it acts on notices: a commit, a `perform` that returned, somebody who wants to look. Due deadlines enter their
chat's ingress at the tail and are checked again by their owner, so queued activity wins.

What ends it: closing, which takes in everything that was admitted; a failed commit, which releases nothing; a
`BaseException` of a run, which is undone and goes to the host; and `kill`, which drops everything.
"""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from turnkeeper.actors.log import log
from turnkeeper.actors.release import Release, Sequenced
from turnkeeper.actors.sequencer import Door, Entry, Sequencer
from turnkeeper.actors.waiting import Admission, Waiter
from turnkeeper.engine.errors import EngineError, InvariantViolated, JournalError, NotRunning
from turnkeeper.engine.journal import Body, DueBody, Journal, encode_frame
from turnkeeper.engine.recovery import record_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykka._envelope import Envelope

    from turnkeeper.actors.performer import Performer
    from turnkeeper.engine.cell import Cell, Run
    from turnkeeper.engine.config import Policy
    from turnkeeper.engine.ids import Address
    from turnkeeper.engine.ports import Clock

__all__ = ["DRAIN", "FRAMES_MAX", "Shard"]

T = TypeVar("T")
DRAIN = 64
"""Entries of one frame at most; it decides nothing but when they are committed."""
FRAMES_MAX = 64
"""Frames that wait for their commit; then the ingress waits too."""


class Batch:
    """A frame that waits for its commit."""

    __slots__ = ("committed", "done", "then")

    def __init__(self, done: list[Sequenced]) -> None:
        self.done = deque(done)
        self.committed = False
        self.then: list[Callable[[], None]] = []
        """What waits for everything up to here to be released."""


class Shard:
    """Owns the cell's thread. Everything that is not said to be for any thread is for that one."""

    def __init__(self, sequencer: Sequencer, journal: Journal, clock: Clock) -> None:
        self.cell: Cell
        self.performer: Performer
        self.desk: Release
        self.after_run: Callable[[Run], None] = _nothing
        """Called after each run."""
        self.configured: Callable[[Policy], None] = _nothing
        """Called when another policy is in force."""
        self.admit: Callable[[Address, Envelope[Any]], None]
        """Takes what is told through a pykka reference, from outside of a run."""
        self.failure: BaseException | None = None
        """What ended the shard, if it was not closed."""
        self.seq = 0
        self.at_ms = 0
        """The last that was stamped: the engine's clock never goes back behind it."""
        self.dead = False
        """Killed: nothing is committed or released any more."""
        self._sequencer = sequencer
        self._journal = journal
        self._clock = clock
        self._batches: deque[Batch] = deque()
        self._queued_dues: set[DueBody] = set()
        self._idlers: list[Waiter[None]] = []
        self._drained: list[Waiter[None]] = []
        self._ident = 0
        self._running = 0
        self._thread: threading.Thread | None = None
        self._started = Admission()

    # ------------------------------------------------------------ any thread

    def start(self, begin: Callable[[], None], started: Admission) -> None:
        """Run `begin`, then live, on a thread of its own; `started` fails if that ends before it is resolved."""
        self._started = started
        self._thread = threading.Thread(target=self._main, args=(begin,), name="turnkeeper-shard", daemon=True)
        self._clock.on_change(self._sequencer.stir)
        self._thread.start()

    def in_run(self) -> bool:
        """Say whether this is the shard's thread, inside a run."""
        return threading.get_ident() == self._running

    def on_thread(self) -> bool:
        """Say whether this is the shard's thread."""
        return threading.get_ident() == self._ident

    def look(self, what: Callable[[], T]) -> T:
        """Return what `what` sees between two events."""
        if self.on_thread():
            return what()
        waiter: Waiter[T] = Waiter()
        if not self._sequencer.notice(partial(_look, waiter, what)):
            self.join(None)
            return what()  # nobody runs the cell any more
        return waiter.wait()

    def idle(self) -> Waiter[None]:
        """Return what is resolved when nothing is left to do at this instant."""
        waiter: Waiter[None] = Waiter()
        if not self._sequencer.notice(partial(self._idlers.append, waiter)):
            waiter.resolve(None)
        return waiter

    def drain(self) -> Waiter[None]:
        """Hand over nothing new; return what is resolved when the ingress is run and what was handed over is back."""
        waiter: Waiter[None] = Waiter()
        if not self._sequencer.notice(partial(self._begin_drain, waiter)):
            waiter.resolve(None)
        return waiter

    def join(self, timeout_s: float | None) -> bool:
        """Wait for the thread's end; False: it runs on."""
        if self._thread is None or self.on_thread():
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def now_ms(self) -> int:
        """Return the engine's time."""
        return max(self.at_ms, self._clock.now_ms())

    # ------------------------------------------------------------ life

    def _main(self, begin: Callable[[], None]) -> None:
        self._ident = threading.get_ident()
        try:
            begin()
            self._live()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the host gets it
            self.failure = error
            log.critical("the engine stopped: %s", type(error).__name__, extra={"error": type(error).__name__})
        self._end()

    def _live(self) -> None:
        while not self._ends():
            room = DRAIN if len(self._batches) < FRAMES_MAX else 0
            entries, notices = self._sequencer.take(room, self._wait_s())
            for act in notices:
                act()
            self.run(entries)
            if self._ends():
                return
            now_ms = self.now_ms()
            self._take_dues(now_ms)
            self.performer.pump(now_ms)
            self._answer_idle(now_ms)
            if self._sequencer.door is Door.CLOSED and not self._batches and self._sequencer.quiet():
                return

    def _ends(self) -> bool:
        return self.dead or self.failure is not None

    def next_due_ms(self) -> int | None:
        """Return the next instant at which something is to be done."""
        if self.performer.closing:
            return None
        dues = (self.performer.next_due_ms(), self.cell.next_due_ms())
        return min((due for due in dues if due is not None), default=None)

    def _wait_s(self) -> float | None:
        due_ms = self.next_due_ms()
        return None if due_ms is None else self._clock.timeout_s(due_ms)

    def _take_dues(self, now_ms: int) -> None:
        """Put what is due at the tail of its chat, once."""
        while not self.performer.closing and (body := self.cell.take_due(now_ms)) is not None:
            due = body.due
            if due is not None and due not in self._queued_dues:
                self._queued_dues.add(due)
                self._sequencer.put_own(Entry(due.chat, body))

    # ------------------------------------------------------------ sequence, run, frame

    def run(self, entries: list[Entry]) -> None:
        """Run entries one by one, and append their records as one frame."""
        done: list[Sequenced] = []
        for entry in entries:
            try:
                done.append(self._run_one(entry))
            except BaseException as error:  # noqa: BLE001 - undone by the cell; the host gets it
                self.failure = error
                log.critical("a run raised %s", type(error).__name__, extra={"error": type(error).__name__})
                if entry.admission is not None:
                    entry.admission.fail(error)
                for left in entries[len(done) + 1 :]:
                    self._refuse(left)
                break
        if done and not self.dead:
            self._append(done)

    def _run_one(self, entry: Entry) -> Sequenced:
        if entry.body.due is not None:
            self._queued_dues.discard(entry.body.due)
        self.seq, self.at_ms = self.seq + 1, self.now_ms()
        run = self._apply(entry.body)
        run.signals.extend(entry.signals)
        if entry.body.configured is not None:
            self.configured(entry.body.configured)
        return Sequenced(entry, record_of(self.seq, self.at_ms, entry.body, run), run)

    def _apply(self, body: Body) -> Run:
        if not self.on_thread():
            raise InvariantViolated("the cell was run outside of the shard's thread; a bug of turnkeeper")
        self._running = self._ident
        try:
            run = self.cell.apply(body, self.at_ms, self.seq)
        finally:
            self._running = 0
        self.after_run(run)
        return run

    def _append(self, done: list[Sequenced]) -> None:
        batch = Batch(done)
        self._batches.append(batch)
        frame = encode_frame([sequenced.record for sequenced in done])
        try:
            self._journal.append(frame, partial(self._committed, batch))
        except Exception as error:  # noqa: BLE001 - a journal that raises did not commit
            self._fail_commit(error)

    def _committed(self, batch: Batch, error: BaseException | None) -> None:
        """A commit returned, on any thread; what `append` reports at once is released at once."""
        if self.on_thread():
            self._settle(batch, error)
        else:
            self._sequencer.notice(partial(self._settle, batch, error))

    def _settle(self, batch: Batch, error: BaseException | None) -> None:
        if error is not None:
            self._fail_commit(error)
            return
        batch.committed = True
        while self._batches and self._batches[0].committed and not self._lost():
            first = self._batches[0]
            while first.done and not self.dead:
                self.desk.release(first.done[0])
                first.done.popleft()
            if self.dead:
                return
            self._batches.popleft()
            for act in first.then:
                act()

    def after_commits(self, act: Callable[[], None]) -> None:
        """Do something once everything that was run so far is released."""
        if self._batches:
            self._batches[-1].then.append(act)
        else:
            act()

    def _lost(self) -> bool:
        return isinstance(self.failure, JournalError)

    def _fail_commit(self, error: BaseException) -> None:
        if not self._lost():
            failure = JournalError(f"the journal could not commit ({error}); the engine stopped, restart it to recover")
            failure.__cause__ = error
            self.failure = failure
            log.critical("a commit failed: %s", type(error).__name__, extra={"error": type(error).__name__})

    # ------------------------------------------------------------ rest and end

    def _answer_idle(self, now_ms: int) -> None:
        if not (self._idlers or self._drained):
            return
        if self._batches or not self._sequencer.quiet() or self.performer.busy(now_ms):
            return
        due_ms = self.cell.next_due_ms()
        if due_ms is None or due_ms > now_ms or self.performer.closing:
            waiting = [*self._idlers, *self._drained]
            self._idlers.clear()
            self._drained.clear()
            for waiter in waiting:
                waiter.resolve(None)

    def _begin_drain(self, waiter: Waiter[None]) -> None:
        self.performer.closing = True
        self._drained.append(waiter)

    def _end(self) -> None:
        """Let nobody wait for ever."""
        self.performer.closing = True
        self._sequencer.set_door(Door.CLOSED, self.failure)
        if not self.dead:
            self._close_journal()
        entries, notices = self._sequencer.close()
        for act in notices:
            act()
        unreleased = [sequenced.entry for batch in self._batches for sequenced in batch.done]
        for entry in (*unreleased, *entries):
            self._refuse(entry)
        for waiter in (*self._idlers, *self._drained):
            waiter.resolve(None)
        self.desk.answer_all(self.why_not)
        self._started.fail(self.failure or self.why_not())

    def _close_journal(self) -> None:
        try:
            self._journal.close()
        except Exception as error:  # noqa: BLE001 - whatever a journal raises is a failed commit
            self._fail_commit(error)

    def _refuse(self, entry: Entry) -> None:
        for waiter in (entry.admission, entry.answer):
            if waiter is not None:
                waiter.fail(self.why_not())

    def why_not(self) -> EngineError:
        """Return why there is no answer any more."""
        failure = self.failure
        if isinstance(failure, JournalError):
            return JournalError(str(failure))
        if failure is not None:
            error = NotRunning(f"the engine stopped before this was answered ({type(failure).__name__} in a run)")
            error.__cause__ = failure
            return error
        return NotRunning("the engine stopped before this was answered; ask again after the next start")


def _nothing(_: object) -> None:
    """Stand in for a hook that nobody set."""


def _look(waiter: Waiter[Any], what: Callable[[], Any]) -> None:
    try:
        waiter.resolve(what())
    except Exception as error:  # noqa: BLE001 - goes to whoever looks
        waiter.fail(error)
