"""Memory of an idle chat (one settled turn, horizons passed), and the pause of a full garbage collection.

Each population is measured in a process of its own; without `gc.freeze`.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from time import perf_counter
from typing import Any

from measuring import main, options, rss_bytes
from population import populate, population

from turnkeeper.engine.cell import AWAKE_CHATS, Cell

SIZES = (10_000, 100_000, 1_000_000)


def measure(chats: int) -> dict[str, float]:
    """Measure one population in this process."""
    cell = Cell()
    populate(cell, min(chats, 64), awake=0)  # what is loaded once
    cell = Cell()
    gc.collect()
    before = rss_bytes()
    populate(cell, chats)
    gc.collect()
    asleep = rss_bytes()
    for chat in [*cell.asleep][:AWAKE_CHATS]:
        cell.wake(chat)
    awake = rss_bytes()
    pauses = []
    for _ in range(5):
        start = perf_counter()
        gc.collect()
        pauses.append(perf_counter() - start)
    return {
        "bytes_of_an_idle_chat": (asleep - before) / chats,
        "bytes_of_one_kept_awake": (awake - asleep) / min(AWAKE_CHATS, chats),
        "gc_pause_ms": max(pauses) * 1000,
        "rss_mib": awake / (1 << 20),
    }


def run(*, quick: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for chats in SIZES[:2] if quick else SIZES:
        population(chats)
        done = subprocess.run(
            [sys.executable, __file__, "--of", str(chats)], check=True, capture_output=True, text=True
        )
        figures[str(chats)] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    given = options(__doc__, of={"type": int, "default": 0, "help": "measure one population in this process"})
    if given.of:
        json.dump(measure(given.of), sys.stdout)
        sys.exit(0)
    sys.exit(main(run(quick=given.quick), as_json=given.json))
