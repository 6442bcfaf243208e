"""Calling the gateway: async ones on a loop, plain ones on a pool of threads; the shard never waits for either.

The loop is the one that entered `async with`; with a plain `with`, or a plain `perform` that returns an
awaitable, a loop on a thread of its own. The threads are daemons and no executor's: a call that hangs holds up
neither `stop` nor the end of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from turnkeeper.engine.commands import Reconcile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from turnkeeper.actors.performer import Job
    from turnkeeper.engine.ports import Gateway

__all__ = ["GatewayHands", "OwnLoop", "Pool", "Report"]


class Report(Protocol):
    """Where calls that begin and return are told; any thread."""

    def begun(self, job: Job, /) -> None:
        """The gateway is about to be called."""
        ...

    def returned(self, job: Job, result: Any, error: BaseException | None, /) -> None:  # noqa: ANN401 - whatever a gateway returns
        """The call returned, or raised."""
        ...


class OwnLoop:
    """A loop on a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="turnkeeper-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            if left:
                self.loop.run_until_complete(asyncio.wait(left, timeout=1))
        finally:
            self.loop.close()

    def close(self) -> None:
        """Cancel what runs and end the thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=2)


class Pool:
    """Threads that are made when all are busy; as many as calls are made at once."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._made = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Have a thread do it."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._made += 1
                threading.Thread(target=self._run, name=f"turnkeeper-perform-{self._made}", daemon=True).start()
        self._work.put(work)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            with self._lock:
                self._idle += 1

    def close(self) -> None:
        """Let every thread end that is not in a call."""
        with self._lock:
            for _ in range(self._made):
                self._work.put(None)


class GatewayHands:
    """Calls a gateway for the performer, and reports."""

    def __init__(self, gateway: Gateway, report: Report) -> None:
        self._gateway = gateway
        self._report = report
        self._host_loop: asyncio.AbstractEventLoop | None = None
        self._own: OwnLoop | None = None
        self._pool = Pool()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self.closed = False
        """Nothing is called any more."""

    @property
    def host_loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop that entered `async with`."""
        return self._host_loop

    def on_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call async gateways on the host's loop."""
        self._host_loop = loop

    def call(self, job: Job) -> bool:
        """Call the gateway for a job; True if the call begins before any that is made later."""
        if self.closed:
            return True  # killed by an observer of the very record that lets it go
        call = self._callable(job)
        if _is_async(call):
            self._start(job, call)
            return True
        self._pool.submit(functools.partial(self._call_plain, job, call))
        return False

    def _callable(self, job: Job) -> Callable[[], Any]:
        command = job.command
        reconcile = getattr(self._gateway, "reconcile", None)
        if isinstance(command, Reconcile) and reconcile is not None:
            return functools.partial(reconcile, command.delivery)
        return functools.partial(self._gateway.perform, command)

    def _call_plain(self, job: Job, call: Callable[[], Any]) -> None:
        self._report.begun(job)
        if self.closed:
            return
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - whatever a gateway raises is told
            self._report.returned(job, None, error)
            return
        if inspect.isawaitable(result):
            self._start(job, lambda: result)
        else:
            self._report.returned(job, result, None)

    def _start(self, job: Job, begin: Callable[[], Awaitable[Any]]) -> None:
        try:
            self._loop().call_soon_threadsafe(self._make_task, job, begin)
        except RuntimeError as error:  # the host closed its loop before the engine
            self._report.returned(job, None, error)

    def _loop(self) -> asyncio.AbstractEventLoop:
        if self._host_loop is not None:
            return self._host_loop
        with self._lock:
            if self._own is None:
                self._own = OwnLoop()
            return self._own.loop

    def _make_task(self, job: Job, begin: Callable[[], Awaitable[Any]]) -> None:
        task = asyncio.get_running_loop().create_task(self._await(job, begin))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await(self, job: Job, begin: Callable[[], Awaitable[Any]]) -> None:
        try:
            result = await begin()
        except BaseException as error:
            self._report.returned(job, None, error)
            if not isinstance(error, Exception):
                raise
        else:
            self._report.returned(job, result, None)

    def close(self) -> None:
        """Cancel what still runs, and let the threads end."""
        self.closed = True
        self._pool.close()
        loop = self._host_loop
        if loop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it was closed meanwhile, and its tasks with it
                loop.call_soon_threadsafe(self._cancel)
        with self._lock:
            own, self._own = self._own, None
        if own is not None:
            own.close()

    def _cancel(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()


def _is_async(call: Any) -> bool:  # noqa: ANN401 - anything callable
    while isinstance(call, functools.partial):
        call = call.func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004 - an object may be async callable
