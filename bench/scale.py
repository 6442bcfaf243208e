"""Cost of an event from 1,000 to 1,000,000 chats, relative to plain calls of the same steps at the same size.

The chats lie in one population each, all asleep but for those that an engine keeps awake; users write to them by
Zipf's law. Plain calls find every chat's state in one dictionary. At 1,000,000 those states would take some
gigabytes: there, only the chats that the load touches are in it.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

from layers import run_cell
from load import Load, make_load
from measuring import best, main, options, spent
from plain import run_plainly, spelled_out
from population import populate

from turnkeeper.engine import codec
from turnkeeper.engine.cell import AWAKE_CHATS, Cell
from turnkeeper.engine.picture import ChatPicture, owners_in, unpack

SIZES = (1_000, 10_000, 100_000, 1_000_000)
STATES_MAX = 100_000
"""Chats whose states plain calls hold."""


def states_of(cell: Cell, wanted: set[str]) -> dict[Any, Any]:
    """Decode what sleeps into one dictionary."""
    states = {}
    for chat, packed in cell.asleep.items():
        if len(cell.asleep) <= STATES_MAX or chat in wanted:
            owners = owners_in(codec.decode(unpack(packed), ChatPicture))
            states.update({address: state for address, state, _ in owners})
    return states


def measure(chats: int, records: int, times: int) -> dict[str, float]:
    load = make_load(records, chats, cell=populate(Cell(), chats, awake=AWAKE_CHATS), per_s=4.0)
    calls = spelled_out(load, populate(Cell(), chats, awake=AWAKE_CHATS))
    touched = {to.chat for to, _, _ in calls}
    plain = _plain(load, chats, calls, touched, times)
    gc.collect()
    cells = []
    for _ in range(times):
        cell = populate(Cell(), chats, awake=AWAKE_CHATS)
        cells.append(spent(lambda cell=cell: run_cell(load, cell)))
        asleep = len(cell.asleep)
        del cell
    cell_us = min(cpu for _, cpu in cells) / len(load.bodies) * 1e6
    return {"plain_us": plain, "cell_us": cell_us, "cost": cell_us / plain, "touched": len(touched), "asleep": asleep}


def _plain(load: Load, chats: int, calls: list[Any], touched: set[str], times: int) -> float:
    states = states_of(populate(Cell(), chats), touched)
    return best(lambda: run_plainly(calls, dict(states)), times)[1] / len(load.bodies) * 1e6


def run(*, quick: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for chats in SIZES[:3] if quick else SIZES:
        figures[str(chats)] = measure(chats, 20_000 if quick else 60_000, 2)
    costs = [figure["cost"] for figure in figures.values()]
    return {"sizes": figures, "flat_within": max(costs) / costs[0]}


if __name__ == "__main__":
    given = options(__doc__)
    sys.exit(main(run(quick=given.quick), as_json=given.json))
