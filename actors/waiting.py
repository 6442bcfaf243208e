"""Waiting for what the shard will say, in a thread or on a loop: set once, and nobody is forgotten.

A `Waiter` takes callbacks; each is called exactly once, by whoever sets the value or, if it is set already, by
whoever adds the callback. Lists pop atomically, so no lock is needed. Giving up on a waiter gives up on
nothing else: what was posted goes on.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import pykka

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType
    from typing import Literal

__all__ = ["Admission", "EngineFuture", "Waiter", "in_thread"]

T = TypeVar("T")


class Waiter(Generic[T]):
    """A value or an error that comes later."""

    __slots__ = ("_callbacks", "_error", "_value", "done", "gave_up", "seen")

    def __init__(self) -> None:
        self.done = False
        self.seen = False
        """Somebody took the value or the error."""
        self.gave_up: Callable[[], None] | None = None
        """Called when whoever waits stops waiting before the end."""
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []

    def resolve(self, value: T) -> None:
        """Set the value; a second one is ignored."""
        if not self.done:
            self._value = value
            self._finish()

    def fail(self, error: BaseException) -> None:
        """Set an error; ignored if there is a value."""
        if not self.done:
            self._error = error
            self._finish()

    def _finish(self) -> None:
        self.done = True
        if self._callbacks:
            self._fire()

    def _fire(self) -> None:
        while self._callbacks:
            try:
                callback = self._callbacks.pop()
            except IndexError:
                return
            callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back once it is set; at once if it is."""
        self._callbacks.append(callback)
        if self.done:
            self._fire()

    def _forget(self, callback: Callable[[], None]) -> None:
        try:
            self._callbacks.remove(callback)
        except ValueError:
            return
        if self.gave_up is not None:
            self.gave_up()

    def result(self) -> T:
        """Return the value, or raise the error; only once it is done."""
        self.seen = True
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def wait(self, timeout_s: float | None = None) -> T:
        """Block this thread until it is set.

        Raises:
            TimeoutError: not in that time; what was posted goes on, and one may wait again.

        """
        if not self.done:
            gate = threading.Lock()
            gate.acquire()
            opens = gate.release
            self.when_done(opens)
            timeout = -1 if timeout_s is None else min(max(timeout_s, 0.0), threading.TIMEOUT_MAX)
            if not gate.acquire(timeout=timeout):
                self._forget(opens)
                if not self.done:
                    raise TimeoutError(
                        f"nothing after {timeout_s} s; what was posted goes on: wait again, or look at it later"
                    )
        return self.result()

    def __await__(self) -> Generator[Any, None, T]:
        """Wait on the running loop; cancelling this cancels nothing else."""
        if not self.done:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            wake = partial(_wake, loop, future)
            self.when_done(wake)
            try:
                yield from future
            except BaseException:
                self._forget(wake)
                raise
        return self.result()


def _wake(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    try:
        loop.call_soon_threadsafe(_set, future)
    except RuntimeError:
        return  # that loop is closed: nobody waits there any more


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def in_thread(what: Callable[[], object]) -> None:
    """Run something that blocks on a thread of its own, while the loop goes on; a pool of the host's may be full."""
    waiter: Waiter[object] = Waiter()

    def run() -> None:
        try:
            waiter.resolve(what())
        except BaseException as error:  # noqa: BLE001 - goes to whoever awaits
            waiter.fail(error)

    threading.Thread(target=run, name="turnkeeper-life", daemon=True).start()
    await waiter


class Admission(Waiter["Admission"]):
    """An event that was posted. Awaited, or after `wait`, it is committed: admitted is what that returned for."""

    __slots__ = ("at_ms", "outcome", "seq")

    def __init__(self) -> None:
        super().__init__()
        self.seq: int | None = None
        """The event's place in the journal; None until it is committed."""
        self.at_ms: int | None = None
        self.outcome: Literal["ok", "set_aside"] | None = None
        """`set_aside`: a step raised, the event was undone and is never applied."""

    def admit(self, seq: int, at_ms: int, outcome: Literal["ok", "set_aside"]) -> None:
        """The event is committed."""
        if not self.done:
            self.seq, self.at_ms, self.outcome = seq, at_ms, outcome
            self._finish()

    def result(self) -> Admission:
        """Return itself, or raise the error; only once it is done. It keeps no reference to itself: no cycle."""
        super().result()
        return self

    def __repr__(self) -> str:
        return f"Admission(seq={self.seq}, at_ms={self.at_ms}, outcome={self.outcome!r})"


ExcInfo = tuple["type[BaseException] | None", "BaseException | None", "TracebackType | None"]


class EngineFuture(pykka.Future[Any]):
    """What `ask` of a pykka reference returns; awaiting it does not block the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.waiter: Waiter[Any] = Waiter()

    def get(self, *, timeout: float | None = None) -> Any:  # noqa: ANN401 - pykka's signature
        """Return the value; blocks this thread, raises `pykka.Timeout`."""
        try:
            return super().get(timeout=timeout)
        except NotImplementedError:
            pass  # no hook is set: the value is our own
        try:
            return self.waiter.wait(timeout)
        except TimeoutError as error:
            raise pykka.Timeout(f"{timeout} seconds") from error

    def set(self, value: Any | None = None) -> None:  # noqa: ANN401 - pykka's signature
        """Set the value."""
        self.waiter.resolve(value)

    def set_exception(self, exc_info: ExcInfo | None = None) -> None:
        """Set the error; without one, the error that is being handled."""
        error = (sys.exc_info() if exc_info is None else exc_info)[1]
        self.waiter.fail(error if error is not None else RuntimeError("no error was given"))

    def __await__(self) -> Generator[None, None, Any]:
        """Wait on the running loop."""
        if self._get_hook is not None:
            return self.get()
        return (yield from self.waiter.__await__())

    __iter__ = __await__
