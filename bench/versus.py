"""Our actors beside what a user would pick instead: a pykka ThreadingActor, or an asyncio task and queue, per chat.

Twice: the load of `load.py`, where each actor runs the same steps for its chat's owners, and mailboxes alone:
messages a second to N actors that do nothing with them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pykka
from feeding import Fed, LoadClock, make_engine
from load import Load, make_load
from measuring import main, options
from plain import Call, run_plainly, spelled_out

from turnkeeper.engine import events
from turnkeeper.engine.cell import STEPS
from turnkeeper.engine.ids import chat_at
from turnkeeper.engine.journal import Body
from turnkeeper.engine.protocol import Transition

if TYPE_CHECKING:
    from collections.abc import Callable

ACTORS = (1, 100, 1_000)


class Threaded(pykka.ThreadingActor):
    """A chat on a thread of its own: its owners' states, and the steps called plainly."""

    use_daemon_thread = True

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[Any, Any] = {}

    def on_receive(self, call: Call | None) -> None:
        if call is not None:
            run_plainly([call], self.states)


def threading_actors(calls: list[Call], actors: int) -> float:
    """Return events a second through one ThreadingActor a chat."""
    refs: dict[str, pykka.ActorRef[Threaded]] = {}
    for to, _, _ in calls:
        if to.chat not in refs and len(refs) < actors:
            refs[to.chat] = Threaded.start()
    every = list(refs.values())
    start = perf_counter()
    for number, call in enumerate(calls):
        (refs.get(call[0].chat) or every[number % actors]).tell(call)
    pykka.get_all([ref.ask(None, block=False) for ref in every])
    taken = perf_counter() - start
    for ref in every:
        ref.stop()
    return len(calls) / taken


def asyncio_tasks(calls: list[Call]) -> float:
    """Return events a second through one task and queue a chat."""

    async def live(queue: asyncio.Queue[Call | None]) -> None:
        states: dict[Any, Any] = {}
        while (call := await queue.get()) is not None:
            run_plainly([call], states)

    async def feed() -> float:
        queues: dict[str, asyncio.Queue[Call | None]] = {}
        tasks = []
        start = perf_counter()
        for number, call in enumerate(calls):
            chat = call[0].chat
            if chat not in queues:
                queues[chat] = asyncio.Queue()
                tasks.append(asyncio.create_task(live(queues[chat])))
            queues[chat].put_nowait(call)
            if not number % 64:
                await asyncio.sleep(0)
        for queue in queues.values():
            queue.put_nowait(None)
        await asyncio.gather(*tasks)
        return len(calls) / (perf_counter() - start)

    return asyncio.run(feed())


def ours(load: Load) -> float:
    """Return records a second through the engine, from `post` to release."""
    clock = LoadClock()
    engine, fed = make_engine(clock), Fed(load)
    with engine:
        start = perf_counter()
        return fed.feed(engine, clock) / (perf_counter() - start)


# ---------------------------------------------------------------- mailboxes alone


class Deaf(pykka.ThreadingActor):
    """Does nothing."""

    use_daemon_thread = True

    def on_receive(self, message: object) -> None:
        pass


def threading_mailboxes(actors: int, messages: int) -> float:
    refs = [Deaf.start() for _ in range(actors)]
    start = perf_counter()
    for number in range(messages):
        refs[number % actors].tell(number)
    pykka.get_all([ref.ask(None, block=False) for ref in refs])
    taken = perf_counter() - start
    for ref in refs:
        ref.stop()
    return messages / taken


def our_mailboxes(actors: int, messages: int) -> float:
    """Tell actors inside runs, as owners tell each other: one run passes a message on to a hundred of them."""
    engine = make_engine(LoadClock())
    names = [chat_at(f"c{number}") for number in range(actors)]
    each = 100
    tells = [tuple((names[(n + k) % actors], events.Activity("c0", "-")) for k in range(each)) for n in range(actors)]
    at = iter(range(1 << 30))

    def deaf(state: Any, message: Any, _at: Any) -> Transition[Any]:
        told = tells[next(at) % actors] if message.cause == "go" else ()
        return Transition(state, told)

    real, STEPS["chat"] = STEPS["chat"], deaf
    try:
        with engine:
            shard = engine._shard

            def tell_all() -> float:
                for name in names:
                    shard._apply(Body(event=events.Activity(name.chat, "-")))
                start = perf_counter()
                for _ in range(messages // (each + 1)):
                    shard._apply(Body(event=events.Activity("c0", "go")))
                return messages / (perf_counter() - start)

            return shard.look(tell_all)
    finally:
        STEPS["chat"] = real


def best_of(what: Callable[[], float], times: int) -> float:
    return max(what() for _ in range(times))


def run(*, quick: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    threading.stack_size(256 * 1024)
    for actors in ACTORS:
        load = make_load(6_000 if quick else 20_000, actors, per_s=max(0.2, actors / 500))
        calls = spelled_out(load)
        messages = 20_000 if quick else 100_000
        times = 2 if quick else 3
        found = {
            "ours_per_s": best_of(lambda load=load: ours(load), times),
            "threading_per_s": best_of(lambda calls=calls, actors=actors: threading_actors(calls, actors), times),
            "asyncio_per_s": best_of(lambda calls=calls: asyncio_tasks(calls), times),
            "our_messages_per_s": best_of(lambda n=actors, m=messages: our_mailboxes(n, m), times),
            "threading_messages_per_s": best_of(lambda n=actors, m=messages: threading_mailboxes(n, m), times),
        }
        found["records_to_threading"] = found["ours_per_s"] / found["threading_per_s"]
        found["records_to_asyncio"] = found["ours_per_s"] / found["asyncio_per_s"]
        found["messages_to_threading"] = found["our_messages_per_s"] / found["threading_messages_per_s"]
        figures[str(actors)] = found
    return figures


if __name__ == "__main__":
    given = options(__doc__)
    sys.exit(main(run(quick=given.quick), as_json=given.json))
