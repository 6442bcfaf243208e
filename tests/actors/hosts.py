"""Gateways, journals and events for these tests: small and whole, as a host would write them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from turnkeeper.engine import events
from turnkeeper.engine.commands import Command, Settleable
from turnkeeper.engine.journal import MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.journal import Snapshot

PATIENCE_S = 20
"""So long a test waits for what must come; nothing sleeps."""
QUICK = {"timers": {"stop_grace_ms": 0}, "limits": {"calls_per_s": 1_000_000, "calls_burst": 1_000_000}}
"""A Stop ends its turn at once, and no call is too many."""


def sent(command: Settleable, *messages: int) -> events.Settled:
    """The platform took it."""
    return events.Settled(command.chat, command.delivery, "sent", messages=messages or (9001,))


class Plain:
    """A gateway with a plain `perform`, which settles everything as sent unless told otherwise."""

    def __init__(self, act: Callable[[Command], Any] | None = None) -> None:
        self.performed: list[Command] = []
        self.threads: set[str] = set()
        self._act = act

    def perform(self, command: Command, /) -> Any:
        self.performed.append(command)
        self.threads.add(threading.current_thread().name)
        if self._act is not None:
            return self._act(command)
        return sent(command) if isinstance(command, Settleable) else None

    def of(self, kind: type) -> list[Any]:
        return [command for command in self.performed if isinstance(command, kind)]


class Async(Plain):
    """The same with an async `perform`."""

    def __init__(self, act: Callable[[Command], Any] | None = None) -> None:
        super().__init__(act)
        self.loops: set[asyncio.AbstractEventLoop] = set()

    async def perform(self, command: Command, /) -> Any:
        self.loops.add(asyncio.get_running_loop())
        result = super().perform(command)
        return await result if asyncio.iscoroutine(result) else result


class HandJournal(MemoryJournal):
    """Commits when the test says so, on the test's thread: what is appended waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: deque[tuple[bytes, Callable[[BaseException | None], None]]] = deque()
        self.appended = threading.Semaphore(0)

    def append(self, frame: bytes, committed: Callable[[BaseException | None], None]) -> None:
        self.waiting.append((frame, committed))
        self.appended.release()

    def commit(self, error: BaseException | None = None) -> None:
        """Commit the oldest frame that waits, once there is one."""
        assert self.appended.acquire(timeout=PATIENCE_S)
        frame, committed = self.waiting.popleft()
        if error is None:
            self.frames.append(frame)
        committed(error)

    def close(self) -> None:
        while self.waiting:
            self.commit()


class ThreadJournal(MemoryJournal):
    """Commits on a thread of its own, in order, as a journal on a disk does."""

    def __init__(self, frames: tuple[bytes, ...] = (), snapshot: Snapshot | None = None) -> None:
        super().__init__(frames, snapshot)
        self._work: deque[tuple[bytes, Callable[[BaseException | None], None]]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def append(self, frame: bytes, committed: Callable[[BaseException | None], None]) -> None:
        with self._changed:
            self._work.append((frame, committed))
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._work or self._closing):
                    self._changed.wait()
                if not self._work:
                    return
                frame, committed = self._work.popleft()
            self.frames.append(frame)
            committed(None)


def opened(chat: str, turn: str = "P", message: int = 6406, channel: str = "tg/100") -> events.TurnOpened:
    return events.TurnOpened(chat, turn, channel=channel, message=message)  # type: ignore[arg-type]


def reply(chat: str, call: str, turn: str = "P", text: str = "") -> events.Reply:
    return events.Reply(chat, call, turn_id=turn, text=text or f"answer of {call}")


def activity(chat: str, cause: str = "hook") -> events.Activity:
    return events.Activity(chat, cause)
