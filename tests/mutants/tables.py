"""Every row of every decision table of chat, turn and channel, wrong in two ways: flipped, and deleted.

A flipped row gives the next other verdict of its table. A deleted row leaves its cases to the rows below it; a
row whose cases no other row covers, or whose heir gives the same verdict, cannot be deleted as such: it has its
flip alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

from turnkeeper.engine.lab.rules import RULES
from turnkeeper.engine.lab.simulator import rows_of_rules
from turnkeeper.engine.table import ANY, Decision, DecisionTable, Row

__all__ = ["Mutant", "mutants_of", "tables"]


class Mutant:
    """One row, wrong in one way."""

    def __init__(self, table: DecisionTable[Any], row: str, how: str, lookup: dict[Any, Decision[Any]]) -> None:
        self.table = table
        self.row = row
        self.how = how
        self._lookup = lookup

    @property
    def name(self) -> str:
        """As the report calls it."""
        return f"{self.table.name} / {self.row}: {self.how}"

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the table decides wrongly."""
        honest, self.table._lookup = self.table._lookup, self._lookup
        try:
            yield
        finally:
            self.table._lookup = honest


def tables() -> list[DecisionTable[Any]]:
    """List the tables of the three owners."""
    names = {table for table, _ in rows_of_rules()}
    return [rule.table for rule in RULES if rule.table.name in names]


def mutants_of(table: DecisionTable[Any]) -> Iterator[Mutant]:
    """Make the mutants of a table."""
    for index, row in enumerate(table.rows):
        other = _other_verdict(table, index)
        if other is not None:
            yield Mutant(table, row.name, f"flipped to {_word(other)}", _flipped(table, row, other))
        deleted = _deleted(table, row)
        if deleted is not None:
            yield Mutant(table, row.name, "deleted", deleted)


def _word(verdict: Any) -> str:
    return str(getattr(verdict, "name", verdict))


def _other_verdict(table: DecisionTable[Any], index: int) -> Any:
    """Choose the next verdict of the table, in the order of its rows, that is not this row's."""
    own = table.rows[index].verdict
    rest = [row.verdict for row in (*table.rows[index + 1 :], *table.rows[:index])]
    return next((verdict for verdict in rest if verdict != own), None)


def _flipped(table: DecisionTable[Any], row: Row[Any], verdict: Any) -> dict[Any, Decision[Any]]:
    wrong = Decision(table.name, row.name, verdict, row.why)
    return {facts: wrong if made.row == row.name else made for facts, made in table._lookup.items()}


def _deleted(table: DecisionTable[Any], gone: Row[Any]) -> dict[Any, Decision[Any]] | None:
    """Leave the row's cases to the rows below; None if nothing changes."""
    lookup = dict(table._lookup)
    changed = False
    for values in product(*table._domains):
        facts = values[0] if table._single else values
        if lookup[facts].row != gone.name:
            continue
        heir = next((row for row in table.rows if row is not gone and _matches(row.when, values)), None)
        if heir is not None and heir.verdict != gone.verdict:
            lookup[facts] = Decision(table.name, heir.name, heir.verdict, heir.why)
            changed = True
    return lookup if changed else None


def _matches(when: tuple[Any, ...], values: tuple[Any, ...]) -> bool:
    return all(
        pattern is ANY or (value in pattern if isinstance(pattern, tuple) else value == pattern)
        for pattern, value in zip(when, values, strict=True)
    )
