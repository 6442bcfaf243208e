"""What the benches share: how long something takes, memory, the machine, and how figures are printed."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
from contextlib import contextmanager
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
__all__ = ["best", "every_core", "machine", "main", "options", "pin", "rss_bytes", "spent"]


def spent(what: Callable[[], object]) -> tuple[float, float]:
    """Return (wall, processor) seconds of one call; what lay around before is collected first."""
    gc.collect()
    wall, cpu = perf_counter(), process_time()
    what()
    return perf_counter() - wall, process_time() - cpu


def best(what: Callable[[], object], times: int) -> tuple[float, float]:
    """Return the least wall and the least processor time of some calls."""
    runs = [spent(what) for _ in range(times)]
    return min(wall for wall, _ in runs), min(cpu for _, cpu in runs)


def rss_bytes() -> int:
    """Return the resident memory of this process."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 - read often
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def machine() -> dict[str, Any]:
    """Describe where this ran."""
    model = platform.processor()
    try:
        with open("/proc/cpuinfo") as file:  # noqa: PTH123
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": model,
        "cores": os.cpu_count(),
        "load_1min": round(os.getloadavg()[0], 2),
        "hash_seed": os.environ.get("PYTHONHASHSEED", "random"),
    }


def pin() -> None:
    """Stay on one core, the one that is least disturbed now: threads of one interpreter take turns anyway.

    What the scheduler's moves between cores cost is the machine's, and differs from run to run.
    """
    if not CORES:
        return
    taken = {}
    for core in CORES:
        os.sched_setaffinity(0, {core})
        taken[core] = best(_count, 5)[1]
    os.sched_setaffinity(0, {min(CORES, key=taken.__getitem__)})


@contextmanager
def every_core() -> Iterator[None]:
    """Use every core for a while: a disk's commits run beside the interpreter."""
    pinned = os.sched_getaffinity(0) if CORES else set[int]()
    if CORES:
        os.sched_setaffinity(0, CORES)
    yield
    if CORES:
        os.sched_setaffinity(0, pinned)


def _count() -> None:
    for _ in range(1_000_000):
        pass


def options(about: str | None, **more: Any) -> argparse.Namespace:
    """Read the command line that every bench has."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes: to see that it runs")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    for name, given in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **given)
    return parser.parse_args()


def main(figures: dict[str, Any], *, as_json: bool) -> int:
    """Print the figures of a bench."""
    if as_json:
        json.dump(figures, sys.stdout)
        sys.stdout.write("\n")
        return 0
    for name, value in figures.items():
        _print(name, value)
    return 0


def _print(name: str, value: Any, indent: str = "") -> None:
    if isinstance(value, dict):
        print(f"{indent}{name}")
        for key, inner in value.items():
            _print(str(key), inner, indent + "  ")
    elif isinstance(value, float):
        print(f"{indent}{name:32} {value:14,.4g}")
    elif isinstance(value, list):
        print(f"{indent}{name:32} median {median(value):.4g} of {len(value)}")
    else:
        print(f"{indent}{name:32} {value:>14}")
