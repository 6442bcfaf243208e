"""What each layer costs: plain calls of the same steps, cell, actors, + metrics, + journal, beside the disk's floor.

Every figure is microseconds of a record, and the ratio to plain calls in the same run (1 = as fast).
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from feeding import AHEAD, AHEAD_ON_DISK, Fed, LoadClock, make_engine
from load import Load, Timed, make_load
from measuring import every_core, main, options, pin, spent
from plain import Call, run_plainly, spelled_out
from prometheus_client import CollectorRegistry

from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.journal import MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.actors.release import Observer
    from turnkeeper.engine.journal import Journal


def run_cell(load: Load, cell: Cell) -> None:
    """Apply every body."""
    for seq, (at_ms, body) in enumerate(load.bodies, 1):
        if body.due is not None:
            cell.forget_due(body.due)
        cell.apply(body, at_ms, seq)


class Layers:
    """Times layers, each as (plain, wall, processor) microseconds of a record.

    A layer that replays is timed over the load. A running engine makes its own records, a few deadlines more or
    less than the load has: the plain calls that it is compared with are those of exactly the records it made.
    """

    def __init__(self, load: Load, times: int) -> None:
        self.load = load
        self.times = times
        self.fed = Fed(load)
        self.runs: dict[str, list[tuple[float, float, float]]] = {}

    def replayed(self, name: str, what: Callable[[], object]) -> None:
        calls = spelled_out(self.load)
        for _ in range(self.times):
            self._note(name, len(self.load.bodies), calls, lambda: spent(what))

    def live(self, name: str, journal: Callable[[], Journal | None], *, metrics: bool = False) -> None:
        """Time a running engine; starting and stopping it is not counted.

        A first run tells which records it makes; those that are timed have no observer.
        """
        made: list[Timed] = []
        self._feed(journal(), lambda record, _: made.append(Timed(record.at_ms, record.body)), metrics=metrics)
        assert abs(len(made) - len(self.load.bodies)) < len(self.load.bodies) * 0.1, len(made)
        calls = spelled_out(Load(made, self.load.chats))
        for _ in range(self.times):
            self._note(name, len(made), calls, lambda: self._feed(journal(), None, metrics=metrics))

    def _feed(self, journal: Journal | None, observer: Observer | None, *, metrics: bool) -> tuple[float, float]:
        """Return (wall, processor) seconds of one run."""
        clock, on_disk = LoadClock(), isinstance(journal, SqliteJournal)
        engine = make_engine(
            clock, journal=journal, registry=CollectorRegistry() if metrics else None, observer=observer
        )
        with every_core() if on_disk else nullcontext(), engine:
            taken = spent(lambda: self.fed.feed(engine, clock, AHEAD_ON_DISK if on_disk else AHEAD))
        assert not engine.dead_letters()
        return taken

    def _note(self, name: str, records: int, calls: list[Call], what: Callable[[], tuple[float, float]]) -> None:
        """Time a layer between two rounds of plain calls: whatever else the machine does disturbs all three."""
        before = spent(lambda: run_plainly(calls, {}))[1]
        wall, cpu = what()
        after = spent(lambda: run_plainly(calls, {}))[1]
        us = 1e6 / records
        self.runs.setdefault(name, []).append(((before + after) / 2 * us, wall * us, cpu * us))

    def figures(self) -> dict[str, Any]:
        """Return medians: of times, and of the ratio of each run to the plain calls around it."""

        def middle(what: Callable[[tuple[float, float, float]], float]) -> dict[str, float]:
            return {name: median(map(what, runs)) for name, runs in self.runs.items()}

        return {
            "plain_us": middle(lambda run: run[0]),
            "us_of_a_record": middle(lambda run: run[1]),
            "us_of_a_record_processor": middle(lambda run: run[2]),
            "ratio": middle(lambda run: run[0] / run[1]),
            "ratio_of_processor_time": middle(lambda run: run[0] / run[2]),
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
    pin()
    load = make_load(10_000 if quick else 20_000, 2_000 if quick else 4_000, per_s=16)
    layers = Layers(load, 3 if quick else 9)
    with tempfile.TemporaryDirectory(prefix="turnkeeper-bench-") as name:
        folder, numbers = Path(name), iter(range(1000))

        def on_disk(sync: str) -> Journal:
            return SqliteJournal(folder / f"{next(numbers)}.db", sync=sync)

        each: dict[str, Callable[[], None]] = {
            "cell": lambda: layers.replayed("cell", lambda: run_cell(load, Cell())),
            "actors": lambda: layers.live("actors", lambda: None),
            "metrics": lambda: layers.live("metrics", lambda: None, metrics=True),
            "memory-journal": lambda: layers.live("memory-journal", MemoryJournal, metrics=True),
            "sqlite-normal": lambda: layers.live("sqlite-normal", lambda: on_disk("normal"), metrics=True),
            "sqlite-full": lambda: layers.live("sqlite-full", lambda: on_disk("full"), metrics=True),
        }
        for layer, measure in each.items():
            if not only or layer in only.split(","):
                measure()
        floor_ms = fsync_ms(folder)
    return {
        "records": len(load.bodies),
        "chats": load.chats,
        "mix": load.kinds(),
        **layers.figures(),
        "fsync_floor_ms": floor_ms,
    }


if __name__ == "__main__":
    given = options(__doc__, only={"default": "", "help": "these layers, with commas between"})
    sys.exit(main(run(quick=given.quick, only=given.only), as_json=given.json))
