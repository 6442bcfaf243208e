"""Running seeds, in this process or in several: what they came to, always in the order of the seeds."""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor

import msgspec

from turnkeeper.cli.playing import RuntimeName, maker_of
from turnkeeper.engine.lab.simulation.faults import FaultsName
from turnkeeper.engine.lab.simulator import Simulated, simulate_seed

__all__ = ["Kind", "Part", "Ranges", "parts_of", "simulated"]

CHUNK = 8
"""Seeds that a process runs before it tells."""


class Kind(msgspec.Struct, frozen=True):
    """What every seed of a range is run on, and how much goes wrong."""

    runtime: RuntimeName = "cell"
    faults: FaultsName = "some"


class Part(msgspec.Struct):
    """What some seeds came to, up to the first that breached."""

    seeds: int = 0
    steps: int = 0
    rows: set[tuple[str, str]] = msgspec.field(default_factory=set)
    breached: int | None = None
    """A seed."""


def simulated(seed: int, kind: Kind) -> Simulated:
    """Run one seed."""
    return simulate_seed(seed, faults=kind.faults, maker=None if kind.runtime == "cell" else maker_of(kind.runtime))


def part(run: Callable[[int, Kind], Simulated], seeds: range, kind: Kind) -> Part:
    """Run some seeds, up to the first that breaches; in any process."""
    told = Part()
    for seed in seeds:
        done = run(seed, kind)
        told.seeds += 1
        told.steps += done.steps
        told.rows |= done.rows
        if done.breaches:
            told.breached = seed
            break
    return told


class Ranges:
    """The seeds, cut into ranges.

    Args:
        first: the first seed.
        jobs: how many processes share them.
        seeds: how many there are.
        minutes: go on for so long instead.

    """

    def __init__(self, first: int, jobs: int, *, seeds: int, minutes: float | None = None) -> None:
        self.timed = minutes is not None
        self.total = seeds if minutes is None else max(1, round(60 * minutes))
        """Seeds, or seconds."""
        self._first = first
        self._size = 1 if jobs == 1 else CHUNK
        self._end = None if self.timed else first + seeds
        self._began_s = time.monotonic()
        self._span_s = 0.0 if minutes is None else 60 * minutes

    def __iter__(self) -> Iterator[range]:
        at = self._first
        while self._more(at):
            after = at + self._size if self._end is None else min(self._end, at + self._size)
            yield range(at, after)
            at = after

    def _more(self, at: int) -> bool:
        return time.monotonic() - self._began_s < self._span_s if self._end is None else at < self._end

    def done(self, seeds: int) -> int:
        """Return how much of the total is done once so many seeds are."""
        return min(self.total, int(time.monotonic() - self._began_s) if self.timed else seeds)


def parts_of(
    cut: Iterable[range], kind: Kind, jobs: int, run: Callable[[int, Kind], Simulated] = simulated
) -> Generator[Part, None, None]:
    """Run the ranges, and yield what each came to, in their order whoever is ready first.

    Args:
        cut: the seeds; a range is asked for when a process is about to be free for it.
        kind: what they are run on.
        jobs: how many processes; 1: this one.
        run: runs a seed.

    """
    if jobs == 1:
        yield from (part(run, seeds, kind) for seeds in cut)
        return
    # A process of its own memory: threads of this one are not copied half-way.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))
    waiting: deque[Future[Part]] = deque()
    try:
        for seeds in cut:
            waiting.append(pool.submit(part, run, seeds, kind))
            if len(waiting) > 2 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
