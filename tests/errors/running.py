"""How each error of a running engine comes about; a name is the "when" of docs/ERRORS.md."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from tests.actors import hosts
from tests.actors.hosts import PATIENCE_S, QUICK, HandJournal, Plain
from turnkeeper import Engine, MemoryJournal, commands, events
from turnkeeper.actors.owners import ChatActor
from turnkeeper.engine import cell
from turnkeeper.engine.ids import chat_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest

RAISERS: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {}


def when(name: str) -> Callable[[Any], Any]:
    """Register how a row comes about."""

    def register(raiser: Any) -> Any:
        assert name not in RAISERS
        RAISERS[name] = raiser
        return raiser

    return register


@contextmanager
def running(config: dict[str, object] | None = None, gateway: Any = None, **parts: Any) -> Iterator[Engine]:
    with Engine(QUICK | (config or {}), gateway or Plain(), **parts) as engine:
        yield engine


def new() -> Engine:
    return Engine(QUICK, Plain())


# ------------------------------------------------------------ life


@when("started twice")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running() as engine:
        engine.start()


@when("started after it stopped")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running() as engine:
        pass
    engine.start()


@when("`stop` on the loop that performs")
async def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    async with new() as engine:
        engine.stop()


@when("`idle` on the loop that performs")
async def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    async with new() as engine:
        engine.idle()


@when("`call` on the thread of a running loop")
async def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    async with new() as engine:
        engine.call(hosts.reply("c1", "k1"))


@when("waiting for a turn that settled before the start")
async def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    journal = MemoryJournal()
    async with Engine(QUICK, Plain(), journal=journal) as engine:
        await engine.post(hosts.opened("c1"))
        await engine.ask(hosts.reply("c1", "k1"))
        await engine.post(events.Stopped("c1"))
        await engine.turn_settled("c1", "P")
    async with Engine(QUICK, Plain(), journal=MemoryJournal(tuple(journal.frames))) as engine:
        await engine.turn_settled("c1", "P")


@when("starting an owner through pykka")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    ChatActor.start()


@when("posted before the start")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    new().post(hosts.activity("c1"))


@when("posted while it stops")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    began, over = threading.Event(), threading.Event()

    def act(command: commands.Command) -> Any:
        began.set()
        assert over.wait(PATIENCE_S)

    engine = Engine(QUICK, Plain(act))
    engine.start()
    engine.post(hosts.opened("c1")).wait(PATIENCE_S)
    engine.post(hosts.reply("c1", "k1")).wait(PATIENCE_S)
    assert began.wait(PATIENCE_S)
    stopping = threading.Thread(target=engine.stop)
    stopping.start()
    try:
        while True:  # until the door is shut; each post before that is taken
            engine.post(hosts.activity("c1")).wait(PATIENCE_S)
    finally:
        over.set()
        stopping.join(PATIENCE_S)


@when("posted after it stopped")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running() as engine:
        pass
    engine.post(hosts.activity("c1"))


@when("`idle` before the start")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    new().idle()


@when("it stopped before the answer came")
async def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    async with Engine(QUICK, Plain(lambda command: None)) as engine:
        await engine.post(hosts.opened("c1"))
        waiting = asyncio.ensure_future(engine.turn_settled("c1", "P"))
        await engine.post(hosts.activity("c1"))
    await waiting


class Ended(BaseException):
    """Something that no step may catch."""


@when("a run ended the engine")
async def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    raising(patch, Ended())
    async with new() as engine:
        waiting = asyncio.ensure_future(engine.turn_settled("c2", "Q"))
        with contextlib.suppress(Ended):  # whoever posted it gets what was raised
            await engine.post(hosts.opened("c1"))
        await waiting


def raising(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let the step of turns raise."""

    def step(state: Any, message: Any, at: Any) -> Any:
        raise error

    patch.setitem(cell.STEPS, "turn", step)


@when("no commit in time")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with held({}) as engine:
        engine.post(hosts.activity("c1")).wait(0)


@when("no answer in time")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    with running(gateway=Plain(lambda command: None)) as engine:
        engine.post(hosts.opened("c1")).wait(PATIENCE_S)
        try:
            engine.call(hosts.reply("c1", "k1"), timeout_s=0)
        finally:
            engine.post(events.Settled("c1", "reply:c1:k1", "sent", messages=(1,)))


@when("not idle in time")
def _(tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    journal = HandJournal()
    engine = Engine(QUICK, Plain(), journal=journal)
    starting = threading.Thread(target=engine.start)
    starting.start()
    journal.commit()
    starting.join(PATIENCE_S)
    engine.post(hosts.activity("c1"))
    try:
        engine.idle(timeout_s=0)
    finally:
        engine.kill()


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
