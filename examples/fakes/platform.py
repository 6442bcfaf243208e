"""What the fakes share: a server on a free port, a log of calls, failures by script, and what users see."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Any, Self

from aiohttp import web

PATIENCE_S = 15


@dataclass(frozen=True)
class Call:
    """A request, and the status it was answered with."""

    method: str
    args: dict[str, Any]
    status: int


@dataclass(frozen=True)
class Failure:
    """An answer instead of what was asked for."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Bubble:
    """A message as users see it."""

    id: int | str
    by: str
    text: str
    quote: int | str | None = None
    reactions: list[str] = field(default_factory=list)
    edits: int = 0


def said(body: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """JSON, under the content type that platforms give: discord.py reads no other."""
    return web.Response(body=json.dumps(body).encode(), status=status, headers=headers, content_type="application/json")


class Refusal(Exception):
    """The platform does not do what was asked."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.body)
        self.failure = failure


class Platform:
    """A platform: rooms of bubbles, behind routes that a subclass adds."""

    bot = "bot"

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.rooms: dict[str, dict[int | str, Bubble]] = defaultdict(dict)
        self.url = ""
        self._scripts: dict[str, deque[Failure]] = defaultdict(deque)
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._numbers = count(1)

    # ------------------------------------------------------------ for tests

    def fail(self, method: str, *failures: Failure) -> None:
        """Let the next calls of a method fail, one each."""
        self._scripts[method].extend(failures)

    def of(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def answers(self, room: str) -> list[Bubble]:
        """What users see of the bot in a room, in order."""
        return [bubble for bubble in self.rooms[room].values() if bubble.by == self.bot]

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for something to hold; looked at after each change."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: bool(holds())), PATIENCE_S)

    async def changed(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # ------------------------------------------------------------ for subclasses

    def routes(self) -> Iterator[web.RouteDef]:
        raise NotImplementedError

    def check(self, method: str) -> None:
        """Fail, if that is the script."""
        if self._scripts[method]:
            raise Refusal(self._scripts[method].popleft())

    async def answer(self, method: str, args: dict[str, Any], act: Callable[[], dict[str, Any]]) -> web.Response:
        """Do what was asked, unless the script or the platform says no; log it either way."""
        headers: dict[str, str] = {}
        try:
            self.check(method)
            status, body = 200, act()
        except Refusal as refusal:
            status, body, headers = refusal.failure.status, refusal.failure.body, refusal.failure.headers
        self.calls.append(Call(method, args, status))
        await self.changed()
        return said(body, status, headers)

    def number(self) -> int:
        return next(self._numbers)

    # ------------------------------------------------------------ life

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.add_routes(list(self.routes()))
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
