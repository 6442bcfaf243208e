"""The engine's face: what a host constructs, starts, posts to and stops (PROTOCOL "The Python face").

Everything here may be called from any thread. `post` never waits; awaiting waits on the loop, `wait` and `call`
block the thread they are called on. `async with` calls async gateways on the loop that entered it; `start` and
`with` use a loop thread of the engine's own, if the gateway needs one.
"""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from turnkeeper.actors.aio import GatewayHands
from turnkeeper.actors.assembly import Assembly
from turnkeeper.actors.clock import ticks_ns
from turnkeeper.actors.log import log
from turnkeeper.actors.measures import Measures
from turnkeeper.actors.misuse import Misuse
from turnkeeper.actors.owners import ChatActor
from turnkeeper.actors.release import DeadLetter
from turnkeeper.actors.sequencer import Door, Entry
from turnkeeper.actors.waiting import Admission, in_thread
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.config import Config, load_config
from turnkeeper.engine.errors import ConfigError, NotRunning
from turnkeeper.engine.ids import chat_at
from turnkeeper.engine.inspection import inspect_chat
from turnkeeper.engine.journal import Body, Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from prometheus_client import CollectorRegistry
    from pykka import ActorRef

    from turnkeeper.actors.release import Observer
    from turnkeeper.engine.commands import Ack, TurnSettled
    from turnkeeper.engine.events import Edit, Event, Reply
    from turnkeeper.engine.ports import Clock, Gateway

__all__ = ["Engine"]

T = TypeVar("T")
LAST_COMMIT_S = 1.0
"""The least that `stop` waits for the last commit."""


class Engine:
    """One answer per turn, for the chats of one journal.

    Args:
        config: a `Config`, a mapping in the file's shape, or the path of a TOML file.
        gateway: the host's side; its `perform` may be plain or async.
        journal: where records are kept; without one, what `[journal]` says.
        registry: where metrics are registered; without one, nothing is counted.
        clock: the time; without one, the wall's.
        observer: called on the shard's thread with each committed record and its run, in order; it must be quick.

    Raises:
        ConfigError: a setting cannot be used.

    """

    _hands = GatewayHands
    """What calls the gateway."""

    def __init__(  # noqa: PLR0913 - the parts that a host may replace, by name
        self,
        config: Config | Mapping[str, object] | str | Path,
        gateway: Gateway,
        *,
        journal: Journal | None = None,
        registry: CollectorRegistry | None = None,
        clock: Clock | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.config = load_config(config)
        """What is in force."""
        self._parts = Assembly(
            *(self.config, gateway, journal, clock),
            measures=Measures(registry, self.config.metrics.addr),
            hands=self._hands,
        )
        self._parts.observe(observer)
        self._sequencer = self._parts.sequencer
        self._shard = self._parts.shard
        self._life = threading.Lock()
        self._started = False

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Recover from the journal and run; returns when the engine takes events and hands over commands.

        Raises:
            Misuse: it was started before.
            DecodeError: the journal is damaged.
            SchemaTooNew: a newer version wrote the journal.

        """
        with self._life:
            if self._started:
                found = "has stopped" if self._parts.stopped.is_set() else "runs already"
                raise Misuse(f"start(): this engine {found}; an engine is started once: make a new one on its journal")
            self._started = True
        started = Admission()
        try:
            self._parts.measures.start()
            self._sequencer.set_door(Door.OPEN)
            self._parts.begin(self.config, started)
            started.wait()
        except BaseException:
            self._finish(None, tell=False)
            raise

    def stop(self, timeout_s: float = 30) -> None:
        """Stop in phases; what was admitted is processed, whoever waits is answered.

        Refuses all but settlements and `rewound`; runs the ingress; commits; hands over nothing new; waits for
        what the gateway has; answers every waiter; closes the journal. Stopping again does nothing.

        Args:
            timeout_s: how long to wait for the gateway and for the last commit.

        Raises:
            Misuse: called on the loop that performs, which it would wait for.
            BaseException: what ended the engine before, a `JournalError` or what a run raised, if nobody who
                waited has heard of it.

        """
        if self._on_host_loop():
            raise Misuse("stop() waits for calls of the loop that it blocks; leave `async with`, or run it in a thread")
        with self._life:
            runs, self._started = self._started and not self._parts.stopped.is_set(), True
        began_ns = ticks_ns()
        if runs:
            self._sequencer.set_door(Door.SETTLING)
            try:
                self._shard.idle(closing=True).wait(timeout_s)
            except TimeoutError:
                left = self._shard.performer.in_flight(self._shard.now_ms())
                log.warning("stopped without waiting for %d calls", len(left), extra={"commands": left})
        self._finish(max(LAST_COMMIT_S, timeout_s - (ticks_ns() - began_ns) / 1e9), tell=runs)

    def kill(self) -> None:
        """Drop everything at once, for crash tests: nothing more is committed, released or performed.

        The journal is left as it is, not closed. Whoever waits gets `NotRunning`.
        """
        self._shard.kill()
        self._finish(None, tell=False)

    def _finish(self, timeout_s: float | None, *, tell: bool) -> None:
        """Close the ingress, let the shard end, and end the threads; `tell`: raise what ended it before."""
        self._sequencer.set_door(Door.CLOSED)
        if not self._shard.join(timeout_s):
            log.error("the shard did not end in time; it is left behind", extra={"timeout_s": timeout_s})
        if not self._shard.began:
            self._parts.journal.close()  # else the shard does, at its end
        self._parts.hands.close()
        self._parts.measures.stop()
        with self._life:
            first, self._started = not self._parts.stopped.is_set(), True
            self._parts.stopped.set()
        failure = self._shard.untold() if first and tell else None
        if failure is not None:
            raise failure

    def _on_host_loop(self) -> bool:
        loop = self._parts.hands.host_loop
        return loop is not None and _running_loop() is loop

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop; an error of the block is not hidden by one of the engine's."""
        try:
            self.stop()
        except BaseException:
            if error is None:
                raise

    async def __aenter__(self) -> Self:
        """Start, without blocking the loop; async gateways are called on it."""
        self._parts.hands.on_loop(asyncio.get_running_loop())
        try:
            await in_thread(self.start)
        except asyncio.CancelledError:
            await in_thread(partial(self.__exit__, asyncio.CancelledError, asyncio.CancelledError(), None))
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop, without blocking the loop."""
        await in_thread(partial(self.__exit__, kind, error, traceback))

    # ------------------------------------------------------------ events

    def post(self, event: Event) -> Admission:
        """Take an event; it is admitted when the admission, awaited or after `wait`, returns.

        Raises:
            Overloaded: above `limits.ingress_high`; post it again later.
            NotRunning: not started, stopping, or stopped.
            DecodeError: it is no event, or a field is of another type.

        """
        return self._parts.reception.post(event)

    async def ask(self, event: Reply | Edit) -> Ack:
        """Post a call of the agent's, and return its ack; cancelling this cancels no event.

        Raises:
            SetAside: a step raised.
            JournalError: the journal could not commit.
            NotRunning: the engine stopped before the answer.
            Overloaded: above a watermark, or `limits.waiters` callers wait.

        """
        return await self._parts.reception.ask(event)

    def call(self, event: Reply | Edit, timeout_s: float | None = None) -> Ack:
        """Do what `ask` does, blocking this thread.

        Raises:
            Misuse: called on the thread of a running loop.
            TimeoutError: no ack in that time; the event goes on.

        """
        if _running_loop() is not None:
            raise Misuse("call() would block the running loop of this thread; await ask(event) instead")
        return self._parts.reception.ask(event).wait(timeout_s)

    async def turn_settled(self, chat: str, turn_id: str) -> TurnSettled:
        """Return the turn's one terminal; one that is not known yet is waited for.

        Raises:
            Misuse: it settled before this engine started.
            NotRunning: the engine stopped before.

        """
        return await self._parts.reception.await_turn(chat, turn_id)

    def broadcast(self, event: Event) -> list[Admission]:
        """Post an event once for each known chat, whatever waits; the event's own chat does not matter."""
        names = self.look(_chats)
        return [self._parts.reception.post(msgspec.structs.replace(event, chat=name), bypass=True) for name in names]

    def chat(self, name: str) -> ActorRef[ChatActor]:
        """Return a pykka reference to a chat: it takes events of that chat, and answers an `ask` at the commit."""
        return self._parts.roster.reference(chat_at(name))

    # ------------------------------------------------------------ looking, and settings

    def inspect(self, chat: str) -> dict[str, Any]:
        """Return what is known of a chat as plain values, without texts; an empty map if it does not exist."""
        return self.look(lambda cell: inspect_chat(cell, chat))

    def look(self, what: Callable[[Cell], T]) -> T:
        """Return what `what` sees in the cell between two events; for tools and tests. It must not change anything."""
        return self._shard.look(partial(what, self._shard.cell))

    def dead_letters(self) -> list[DeadLetter]:
        """Return the newest events that were set aside, oldest first."""
        return self._shard.look(lambda: list(self._parts.desk.dead_letters))

    def reload(self, config: Config | Mapping[str, object] | str | Path) -> Admission:
        """Apply another configuration between two events; open turns keep the policy they opened with.

        Raises:
            ConfigError: it cannot be used; the old one stays.
            NotRunning: the engine does not run.

        """
        admission = Admission()
        try:
            read = load_config(config)
            self._sequencer.check()
            self._parts.measures.move(read.metrics.addr)
        except ConfigError as error:
            self._parts.measures.reloaded(error)
            raise
        self._sequencer.put(Entry("", Body(configured=self._parts.policy(read)), admission), bypass=True)
        self._shard.snapshots.every = read.journal.snapshot_every_events
        self._parts.judge(read)
        self.config = read
        self._parts.measures.reloaded(None)
        return admission

    @property
    def metrics_port(self) -> int | None:
        """The port that GET /metrics is served on, if `metrics.addr` says so."""
        return self._parts.measures.port

    def idle(self, timeout_s: float | None = None) -> None:
        """Wait until nothing is left to do at this instant; what waits for time to pass, or hangs, is not waited for.

        For tests, and for hosts' tests.

        Raises:
            Misuse: called on the loop that performs.
            TimeoutError: there is still something to do.

        """
        if self._on_host_loop():
            raise Misuse("idle() waits for calls of the loop that it blocks; run it in a thread")
        if not self._started:
            raise NotRunning(
                "idle(): the engine was not started; call start(), or enter it with `with` or `async with`"
            )
        try:
            self._shard.idle().wait(timeout_s)
        except TimeoutError as error:
            raise TimeoutError(f"not idle after {timeout_s} s: {self._sequencer.depth} entries wait") from error

    def next_due_ms(self) -> int | None:
        """Return the next instant at which something is due: a deadline, or a hand-over that waits for its time."""
        return self._shard.look(self._shard.next_due_ms)


def _chats(cell: Cell) -> list[str]:
    return [*(address.chat for address in cell.owners if address.kind == "chat"), *cell.asleep]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
