"""What each layer costs: plain calls of the same steps, cell, actors, + metrics, + journal, beside the disk's floor.

Every figure is microseconds of a record, and the ratio to plain calls in the same run (1 = as fast).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from feeding import Fed, LoadClock, make_engine
from load import Load, make_load
from measuring import best, main, options
from plain import run_plainly, spelled_out
from prometheus_client import CollectorRegistry

from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.journal import MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.journal import Journal


def run_cell(load: Load, cell: Cell) -> None:
    """Apply every body."""
    for seq, (at_ms, body) in enumerate(load.bodies, 1):
        if body.due is not None:
            cell.forget_due(body.due)
        cell.apply(body, at_ms, seq)


class Layers:
    """Times layers over one load, each as (wall, processor) microseconds of a record, the best of some runs."""

    def __init__(self, load: Load, times: int) -> None:
        self.load = load
        self.times = times
        self.fed = Fed(load)
        self.us: dict[str, tuple[float, float]] = {}
        self.mix: dict[str, Counter[str]] = {}

    def replayed(self, name: str, what: Callable[[], object]) -> None:
        wall, cpu = best(what, self.times)
        self.us[name] = (wall / len(self.load.bodies) * 1e6, cpu / len(self.load.bodies) * 1e6)

    def live(self, name: str, journal: Callable[[], Journal | None], *, metrics: bool = False) -> None:
        """Time a running engine; starting and stopping it is not counted."""
        from measuring import spent  # noqa: PLC0415

        runs: list[tuple[float, float]] = []
        for _ in range(self.times):
            clock = LoadClock()
            engine = make_engine(clock, journal=journal(), registry=CollectorRegistry() if metrics else None)
            with engine:
                made: list[int] = []
                wall, cpu = spent(lambda engine=engine, clock=clock, made=made: made.append(self.fed.feed(engine, clock)))
            assert not engine.dead_letters()
            assert abs(made[0] - len(self.load.bodies)) < len(self.load.bodies) * 0.03, (made, len(self.load.bodies))
            runs.append((wall / made[0] * 1e6, cpu / made[0] * 1e6))
        self.us[name] = (min(wall for wall, _ in runs), min(cpu for _, cpu in runs))

    def figures(self) -> dict[str, Any]:
        plain = self.us["plain"]
        return {
            "us_of_a_record": {name: wall for name, (wall, _) in self.us.items()},
            "ratio": {name: plain[0] / wall for name, (wall, _) in self.us.items()},
            "ratio_of_processor_time": {name: plain[1] / cpu for name, (_, cpu) in self.us.items()},
        }


def fsync_ms(folder: Path, times: int = 200) -> float:
    """Return the median of appending 4 KiB to a file and making it durable, in milliseconds."""
    taken = []
    with (folder / "floor").open("wb") as file:
        for _ in range(times):
            file.write(b"x" * 4096)
            start = perf_counter()
            file.flush()
            os.fsync(file.fileno())
            taken.append(perf_counter() - start)
    return sorted(taken)[times // 2] * 1000


def run(*, quick: bool, only: str = "") -> dict[str, Any]:
    load = make_load(20_000 if quick else 100_000, 2_000 if quick else 10_000)
    layers = Layers(load, 2 if quick else 3)
    calls = spelled_out(load)
    layers.replayed("plain", lambda: run_plainly(calls, {}))
    layers.replayed("cell", lambda: run_cell(load, Cell()))
    with tempfile.TemporaryDirectory(prefix="turnkeeper-bench-") as name:
        folder = Path(name)
        numbers = iter(range(1000))
        layers.live("actors", lambda: None)
        if only != "actors":
            layers.live("metrics", lambda: None, metrics=True)
            layers.live("memory-journal", MemoryJournal, metrics=True)
            for sync in ("normal", "full"):
                layers.live(f"sqlite-{sync}", lambda sync=sync: SqliteJournal(folder / f"{next(numbers)}.db", sync=sync), metrics=True)
        floor_ms = fsync_ms(folder)
    return {
        "records": len(load.bodies),
        "chats": load.chats,
        "mix": load.kinds(),
        **layers.figures(),
        "fsync_floor_ms": floor_ms,
    }


if __name__ == "__main__":
    given = options(__doc__, only={"default": ""})
    sys.exit(main(run(quick=given.quick, only=given.only), as_json=given.json))
