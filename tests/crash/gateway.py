"""A gateway with the engine in it, to be killed: one process a life, forked from one that imported everything.

`python -m tests.crash.gateway SOCKET JOURNAL asked|deaf`: a line on standard input begins a life, its process
id is printed, and its end as well.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from typing import Any

from turnkeeper import Engine
from turnkeeper.engine import codec
from turnkeeper.engine.commands import Command, Settleable, TurnSettled
from turnkeeper.engine.events import Settled


def config(journal: str) -> dict[str, Any]:
    """Short timers, real commits, snapshots every few events; room for whatever piles up behind a slow platform."""
    return {
        "timers": {"stop_grace_ms": 10, "quiet_ms": 2000, "retry_grace_ms": 10, "turn_idle_ms": 2000},
        "limits": {"calls_per_s": 1_000_000, "calls_burst": 1_000_000, "open_turns": 100_000, "outbox": 100_000},
        "delivery": {"backoff_ms": [5], "retries": 50, "jitter_percent": 0, "on_unknown": "assume-sent"},
        "recovery": {"resend_per_s": 1_000_000},
        "journal": {"path": journal, "sync": "full", "snapshot_every_events": 60},
    }


class Remote:
    """The platform, over a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next = 0

    def say(self, value: dict[str, Any]) -> None:
        self._writer.write(json.dumps(value).encode() + b"\n")

    async def ask(self, value: dict[str, Any]) -> dict[str, Any]:
        self._next += 1
        answer = self._asked[self._next] = asyncio.get_running_loop().create_future()
        self.say({**value, "id": self._next})
        said: dict[str, Any] = await answer
        return said

    async def serve(self, engine: Engine) -> None:
        """Post what users and agents do, until the platform says that it is over."""
        posted: set[asyncio.Task[None]] = set()
        while line := await self._reader.readline():
            said = json.loads(line)
            if "stop" in said:
                return
            if "event" in said:
                task = asyncio.create_task(self._post(engine, said["event"]))
                posted.add(task)
                task.add_done_callback(posted.discard)
            else:
                self._asked.pop(said["id"]).set_result(said)

    async def _post(self, engine: Engine, raw: dict[str, Any]) -> None:
        """Confirm an event to the platform once it is admitted."""
        await engine.post(codec.event_from(raw))
        self.say({"op": "confirm", "event": raw})


class Deaf:
    """A gateway to a platform that cannot say what arrived."""

    def __init__(self) -> None:
        self.remote: Remote | None = None
        self.connected = asyncio.Event()

    async def _ask(self, value: dict[str, Any]) -> dict[str, Any]:
        await self.connected.wait()
        assert self.remote is not None
        return await self.remote.ask(value)

    async def perform(self, command: Command, /) -> Settled | None:
        if isinstance(command, TurnSettled):
            told = {"turn": command.turn_id, "outcome": command.outcome, "delivered": command.delivered}
            await self._ask({"op": "told", **told})
        if not isinstance(command, Settleable):
            return None
        quote = getattr(command, "quote", None)
        shown = {"chat": command.chat, "channel": str(command.channel), "delivery": command.delivery, "quote": quote}
        answer = await self._ask({"op": "deliver", **shown})
        messages = tuple(answer.get("messages", ()))
        return Settled(
            command.chat, command.delivery, answer["outcome"], messages=messages, reason=answer.get("reason")
        )


class Asked(Deaf):
    """One that can."""

    async def reconcile(self, delivery: str, /) -> Any:
        return (await self._ask({"op": "reconcile", "delivery": delivery}))["answer"]


async def live(path: str, journal: str, *, asked: bool) -> None:
    """One life, from recovery to the end."""
    gateway = Asked() if asked else Deaf()
    remote = gateway.remote = Remote(*await asyncio.open_unix_connection(path))
    engine = Engine(config(journal), gateway)
    gateway.connected.set()
    answers = asyncio.create_task(remote.serve(engine))
    async with engine:
        remote.say({"op": "feed"})
        await answers


def main() -> None:
    path, journal, kind = sys.argv[1:]
    for _ in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                asyncio.run(live(path, journal, asked=kind == "asked"))
            except BaseException:  # noqa: BLE001 - whatever ends a child is printed
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
