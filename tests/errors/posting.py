"""How each error about an event comes about, and what else a running engine raises."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from tests.actors import hosts
from tests.actors.hosts import PATIENCE_S, QUICK, HandJournal, Plain
from tests.errors.running import raising, running, when
from turnkeeper import Engine, events
from turnkeeper.engine.ids import chat_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


# ------------------------------------------------------------ events


@contextmanager
def held(config: dict[str, object]) -> Iterator[Engine]:
    """An engine whose shard looks at something, and takes nothing meanwhile."""
    began, over = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        began.set()
        assert over.wait(PATIENCE_S)

    with running(config) as engine:
        looking = threading.Thread(target=engine.look, args=(hold,))
        looking.start()
        assert began.wait(PATIENCE_S)
        try:
            yield engine
        finally:
            over.set()
            looking.join(PATIENCE_S)


@when("no commit in time")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with held({}) as engine:
        engine.post(hosts.activity("c1")).wait(0)


@when("posted above the watermark")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with held({"limits": {"ingress_high": 2, "ingress_low": 0}}) as engine:
        for _ in range(3):
            engine.post(hosts.activity("c1"))


@when("too many callers wait")
async def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    config = {"limits": {"waiters": 1}}
    async with Engine(config, Plain(lambda command: None)) as engine:
        waiting = asyncio.ensure_future(engine.turn_settled("c1", "P"))
        await asyncio.sleep(0)
        try:
            await engine.ask(hosts.reply("c1", "k1"))
        finally:
            waiting.cancel()


def post(event: Any) -> None:
    with running() as engine:
        engine.post(event)


@when("posted what is no event")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    post({"type": "activity", "chat": "c1"})


@when("a field of another type")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    post(events.Activity("c1", 5))  # type: ignore[arg-type]


@when("a word that is none")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    post(events.Settled("c1", "d", "ok"))  # type: ignore[arg-type]


@when("a value that cannot be written")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    post(events.Stopped("c1", text=object()))  # type: ignore[arg-type]


@when("asked what no ack answers")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running() as engine:
        engine.call(hosts.activity("c1"))  # type: ignore[arg-type]


@when("a chat was told an event of another")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running() as engine:
        engine.chat("c1").tell(hosts.activity("c2"))


@when("a chat was told something else")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running() as engine:
        engine.chat("c1").tell("hello")


@when("asked, and a step raised")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running() as engine:
        engine.post(hosts.opened("c1")).wait(PATIENCE_S)
        raising(patch, ZeroDivisionError())
        engine.call(hosts.reply("c1", "k1"), PATIENCE_S)


@when("asked through pykka, and a step raised")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    raising(patch, ZeroDivisionError())
    with running() as engine:
        engine.chat("c1").ask(hosts.opened("c1"), timeout=PATIENCE_S)


# ------------------------------------------------------------ what else an engine raises


@when("a commit failed")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    journal = HandJournal()
    engine = Engine(QUICK, Plain(), journal=journal)
    starting = threading.Thread(target=engine.start)
    starting.start()
    journal.commit()
    starting.join(PATIENCE_S)
    admission = engine.post(hosts.activity("c1"))
    journal.commit(OSError("the disk is full"))
    try:
        admission.wait(PATIENCE_S)
    finally:
        engine.kill()


@when("an owner ran outside of a run")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running() as engine:
        engine.post(hosts.opened("c1")).wait(PATIENCE_S)
        actor = engine.look(lambda cell: cell.owners[chat_at("c1")])
        actor.on_receive(hosts.activity("c1"))


@when("the port of the metrics is taken")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running({"metrics": {"addr": "127.0.0.1:0"}}, registry=CollectorRegistry()) as engine:
        taken = {"metrics": {"addr": f"127.0.0.1:{engine.metrics_port}"}}
        Engine(taken, Plain(), registry=CollectorRegistry()).start()
