"""Takes down what a run reached and what it breached: the oracle's complaints, and what the engine itself says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine import signals
from turnkeeper.engine.errors import InvariantViolated
from turnkeeper.engine.lab.simulation.oracle import Oracle

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.config import Config
    from turnkeeper.engine.journal import Record

__all__ = ["Watcher"]

RECORDS_MAX = 50_000
"""Nothing that is simulated takes so many."""


class Watcher:
    """Watches one run.

    Args:
        config: what the run starts with.

    """

    def __init__(self, config: Config) -> None:
        self.rows: set[tuple[str, str]] = set()
        self.signals: set[str] = set()
        self.breaches: list[str] = []
        self.records = 0
        self.oracle = Oracle(config, self.breaches)

    def observe(self, record: Record, run: Run) -> None:
        """Take in a record that was committed.

        Raises:
            InvariantViolated: something goes on for ever.

        """
        self.records += 1
        if self.records > RECORDS_MAX:
            raise InvariantViolated(f"more than {RECORDS_MAX} records; something goes on for ever")
        for row in run.rows:
            self.rows.add((row.table, row.row))
        self.breaches += [f"invariant {name}" for name in run.violated]
        if run.error is not None:
            self.breaches.append(f"set aside: {type(run.error).__name__}: {run.error}")
        for signal in run.signals:
            self.signals.add(str(type(signal).__struct_config__.tag))
            if isinstance(signal, signals.DigestDiffers):
                self.breaches.append(f"replay differs at {signal.seq}")
        self.oracle.ran(record.body, run, record.at_ms)
