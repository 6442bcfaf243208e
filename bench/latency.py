"""Latency of a decision under offered load: from the `seq` stamp to quiescence, another process offering events.

The sender paces itself to ticks of a millisecond; how late its ticks are is the floor below which nothing here can
be seen. What the engine refuses above its watermark is counted. The wall's clock runs, so turns end while
others open.
"""

from __future__ import annotations

import multiprocessing
import struct
import sys
import threading
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from feeding import make_engine
from load import make_load
from measuring import main, options

from turnkeeper.actors.clock import WallClock
from turnkeeper.engine import codec, events
from turnkeeper.engine.errors import Overloaded

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

RATES = (5_000, 20_000, 50_000)
TICK_S = 0.001
SIZE = struct.Struct(">I")
UNHURRIED = {"limits": {"calls_per_s": 1_000_000, "calls_burst": 1_000_000}}
"""The load's hours are played in seconds: a chat's call rate would refuse what its users never sent so fast."""


def offer(pipe: Connection, bodies: list[bytes], per_s: int) -> None:
    """Send events at a rate, in ticks; then how late the ticks were."""
    late, sent, start = [], 0, perf_counter()
    pipe.recv()
    start = perf_counter()
    tick = 0
    while sent < len(bodies):
        tick += 1
        due = start + tick * TICK_S
        wait = due - perf_counter()
        if wait > 0:
            sleep(wait)
        late.append(max(0.0, perf_counter() - due))
        upto = min(len(bodies), int((perf_counter() - start) * per_s))
        if upto > sent:
            pipe.send_bytes(b"".join(SIZE.pack(len(body)) + body for body in bodies[sent:upto]))
            sent = upto
    pipe.send_bytes(b"")
    pipe.send(late)


def _quantiles(values: list[float], unit: float) -> dict[str, float]:
    ordered = sorted(values)
    return {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * unit
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    }


class Receiver:
    """Posts what comes through the pipe."""

    def __init__(self, engine: Any, pipe: Connection) -> None:
        self.engine, self.pipe = engine, pipe
        self.posted = self.refused = 0

    def run(self) -> None:
        while data := self.pipe.recv_bytes():
            offset = 0
            while offset < len(data):
                (size,) = SIZE.unpack_from(data, offset)
                offset += SIZE.size
                event: Any = codec.decode(data[offset : offset + size], events.Event)  # type: ignore[arg-type]
                offset += size
                try:
                    self.engine.post(event)
                    self.posted += 1
                except Overloaded:
                    self.refused += 1


def measure(per_s: int, seconds: float) -> dict[str, Any]:
    load = make_load(int(per_s * seconds * 1.9), 20_000, per_s=200)
    bodies = [
        codec.encode(body.event)
        for _, body in load.bodies
        if body.event is not None and not isinstance(body.event, events.Settled)
    ]
    here, there = multiprocessing.Pipe()
    spent_ns: list[int] = []
    engine = make_engine(WallClock(), config=UNHURRIED)
    release = engine._shard.desk._observe
    engine._shard.desk._observe = lambda done: (spent_ns.append(done.spent_ns), release(done))[1]
    sender = multiprocessing.get_context("fork").Process(target=offer, args=(there, bodies, per_s), daemon=True)
    sender.start()
    with engine:
        receiver = Receiver(engine, here)
        thread = threading.Thread(target=receiver.run)
        thread.start()
        here.send("go")
        start = perf_counter()
        thread.join()
        offered_s = perf_counter() - start
        late = here.recv()
        engine._shard.idle().wait(120)
        done_s = perf_counter() - start
    sender.join()
    return {
        "offered_per_s": len(bodies) / offered_s,
        "records_per_s": len(spent_ns) / done_s,
        "refused": receiver.refused,
        "decision_us": _quantiles([ns / 1000 for ns in spent_ns], 1.0),
        "pacer_late_us": _quantiles(late, 1e6),
    }


def run(*, quick: bool) -> dict[str, Any]:
    return {str(rate): measure(rate, 0.6 if quick else 2.0) for rate in RATES}


if __name__ == "__main__":
    given = options(__doc__)
    sys.exit(main(run(quick=given.quick), as_json=given.json))
