"""How each error of a running engine comes about; a name is the "when" of docs/ERRORS.md."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.actors import hosts
from tests.actors.hosts import PATIENCE_S, QUICK, HandJournal, Plain
from turnkeeper import Engine, MemoryJournal, commands, events
from turnkeeper.actors.owners import ChatActor
from turnkeeper.engine import cell

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
