"""How late an asyncio loop is while a plain gateway hangs, against idle, in one run.

    python bench/loop_lateness.py             # half a minute
    python bench/loop_lateness.py --quick     # a few seconds
    python bench/loop_lateness.py --json

The loop wants to be called every two milliseconds; how late it is called is its lateness. In each phase it also posts to the
engine and waits for the commit, on every tenth call. Idle: the gateway answers at once. Hanging: the calls of `perform` for
some chats do not return until the phase is over. The phases alternate, so that what else the machine does falls on both.
As a control, the same call hangs for a while on the loop itself: that must be seen, or nothing is measured.

Goal: the median while hanging is at most 1.5 times that of idle. Exit code 1 if it is missed, or the control sees nothing.
"""

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from statistics import median, quantiles

from turnkeeper import ChannelRef, Engine, commands, events

TICK_S = 0.002
POST_EVERY = 10
HANGING = 8
GOAL = 1.5
CONTROL_S = 0.05


class Gateway:
    """A plain `perform`: of a chat that hangs it waits until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.began = threading.Semaphore(0)

    def perform(self, command: commands.Command) -> events.Settled | None:
        if not isinstance(command, commands.Send):
            return None
        if command.chat.startswith("hangs"):
            self.began.release()
            self.let_go.wait()
        return events.Settled(command.chat, command.delivery, "sent", messages=(1,))


async def lateness(engine: Engine, ticks: int) -> list[float]:
    """Return how late each call of the loop was, in microseconds."""
    loop = asyncio.get_running_loop()
    late: list[float] = []
    for tick in range(ticks):
        due: asyncio.Future[float] = loop.create_future()
        at = loop.time() + TICK_S
        loop.call_at(at, lambda due=due: due.set_result(loop.time()))
        late.append((await due - at) * 1e6)
        if tick % POST_EVERY == 0:
            await engine.post(events.Activity("busy", "a hook"))
    return late


async def hanging(engine: Engine, gateway: Gateway, ticks: int, phase: int) -> list[float]:
    """Measure while calls of `perform` hang."""
    gateway.let_go.clear()
    chats = [f"hangs{phase}-{n}" for n in range(HANGING)]
    for chat in chats:
        await engine.post(events.TurnOpened(chat, "P", channel=ChannelRef("tg", chat), message=1))
    asks = [asyncio.ensure_future(engine.ask(events.Reply(chat, "k", turn_id="P", text="hello"))) for chat in chats]
    for _ in chats:
        await asyncio.to_thread(gateway.began.acquire)
    late = await lateness(engine, ticks)
    gateway.let_go.set()
    await asyncio.gather(*asks)
    return late


async def control(engine: Engine, ticks: int) -> list[float]:
    """Measure while a call hangs where it must not: on the loop."""
    for part in range(1, 6):
        asyncio.get_running_loop().call_later(ticks * TICK_S * part / 6, time.sleep, CONTROL_S)
    return await lateness(engine, ticks)


async def measured(phases: int, ticks: int) -> dict[str, list[float]]:
    late: dict[str, list[float]] = {"idle": [], "hanging": [], "control": []}
    gateway = Gateway()
    async with Engine({}, gateway) as engine:
        await lateness(engine, ticks)  # warm
        for phase in range(phases):
            late["idle"] += await lateness(engine, ticks)
            late["hanging"] += await hanging(engine, gateway, ticks, phase)
        late["control"] = await control(engine, ticks)
    return late


def summary(late: list[float]) -> dict[str, float]:
    parts = quantiles(late, n=100)
    figures = {"calls": len(late), "median_us": median(late), "p99_us": parts[98], "max_us": max(late)}
    return {name: round(figure, 1) for name, figure in figures.items()}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="a few seconds")
    arguments.add_argument("--json", action="store_true", help="one object")
    given = arguments.parse_args()
    late = asyncio.run(measured(2 if given.quick else 8, 200 if given.quick else 600))
    found: dict[str, object] = {name: summary(each) for name, each in late.items()}
    ratio = median(late["hanging"]) / median(late["idle"])
    p99 = quantiles(late["hanging"], n=100)[98] / quantiles(late["idle"], n=100)[98]
    seen = max(late["control"]) >= CONTROL_S * 1e6 / 2
    found |= {"ratio_median": round(ratio, 3), "ratio_p99": round(p99, 3), "goal": GOAL, "control_seen": seen}
    found |= {"hanging_calls": HANGING, "load_1min": round(os.getloadavg()[0], 2), "cores": os.cpu_count()}
    if given.json:
        print(json.dumps(found))
    else:
        idle, hung = summary(late["idle"]), summary(late["hanging"])
        print(
            f"the loop is {hung['median_us']} µs late while {HANGING} plain calls hang, {idle['median_us']} µs idle: "
            f"{ratio:.2f} times (goal {GOAL}); p99 {hung['p99_us']} and {idle['p99_us']} µs; "
            f"control {'seen' if seen else 'NOT SEEN'}: {max(late['control']) / 1e3:.0f} ms"
        )
    return 0 if ratio <= GOAL and seen else 1


if __name__ == "__main__":
    sys.exit(main())
