"""Decision tables: every rule of the product is one, complete and without dead rows, checked at import.

A table's columns are the fields of a small struct of facts, each with finitely many values; a row matches
by value, by a tuple of values, or by `ANY`; the first row that matches decides. Tables compile to one
dictionary look-up, and the decision carries the row's name and its *why* into signals, docs and metrics.
"""

from __future__ import annotations

from enum import Enum
from itertools import product
from operator import attrgetter
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from turnkeeper.engine.errors import TableError

__all__ = ["ANY", "Decision", "DecisionTable", "Row"]

V_co = TypeVar("V_co", covariant=True)
COMBINATIONS_MAX = 1000
"""A larger product means two rules in one table."""


class _Anything:
    """Matches every value of a column."""

    def __repr__(self) -> str:
        """Return the word that stands in a table."""
        return "any"


ANY = _Anything()
"""A column of a row that may have any value."""


class Row(msgspec.Struct, Generic[V_co], frozen=True):
    """One case of a rule: its name in RULES, the pattern, the verdict and why."""

    name: str
    when: tuple[Any, ...]
    verdict: V_co
    why: str


class Decision(msgspec.Struct, Generic[V_co], frozen=True, gc=False):
    """What a table decided: the verdict, and the row to show for it."""

    table: str
    row: str
    verdict: V_co
    why: str


class DecisionTable(Generic[V_co]):
    """A rule as data.

    Args:
        name: the rule's name in docs and signals.
        facts: a struct whose fields are bools, enums or literals: the columns.
        rows: the cases in order; the first match decides.
        source: where the rule is written down.

    Raises:
        TableError: a row has the wrong number of columns or an unknown value, a combination is covered by
            no row, or a row can never decide; the text names row, column and what to do.

    """

    def __init__(self, name: str, facts: type[msgspec.Struct], rows: list[Row[V_co]], *, source: str) -> None:
        self.name = name
        self.facts = facts
        self.rows = tuple(rows)
        self.source = source
        self.columns = facts.__struct_fields__
        self._domains = _domains(facts, name)
        self._read = attrgetter(*self.columns)
        self._single = len(self.columns) == 1
        self._decisions = [Decision(name, row.name, row.verdict, row.why) for row in rows]
        self._lookup = self._compiled()

    def decide(self, facts: msgspec.Struct) -> Decision[V_co]:
        """Return the decision for these facts; total, so it never fails."""
        return self._lookup[self._read(facts)]

    def decision(self, row: str) -> Decision[V_co]:
        """Return the decision of a row by its name, for a step that was told which row decided."""
        return next(made for made in self._decisions if made.row == row)

    def _compiled(self) -> dict[Any, Decision[V_co]]:
        for row in self.rows:
            self._check_pattern(row)
        lookup: dict[Any, Decision[V_co]] = {}
        live: set[int] = set()
        for values in product(*self._domains):
            index = next((i for i, row in enumerate(self.rows) if _matches(row.when, values)), None)
            if index is None:
                raise TableError(self._uncovered(values))
            live.add(index)
            lookup[values[0] if self._single else values] = self._decisions[index]
        for index, row in enumerate(self.rows):
            if index not in live:
                raise TableError(
                    f"table {self.name}: row {index + 1} ({row.name}) can never decide, rows above it cover it; "
                    "move it up, narrow a row above, or delete it"
                )
        return lookup

    def _check_pattern(self, row: Row[V_co]) -> None:
        if len(row.when) != len(self.columns):
            raise TableError(
                f"table {self.name}: row {row.name} has {len(row.when)} columns, "
                f"{self.facts.__name__} has {len(self.columns)}: {', '.join(self.columns)}"
            )
        for column, domain, pattern in zip(self.columns, self._domains, row.when, strict=True):
            for value in pattern if isinstance(pattern, tuple) else (pattern,):
                if value is not ANY and value not in domain:
                    raise TableError(
                        f"table {self.name}: row {row.name}: {column} cannot be {value!r}; "
                        f"allowed: {', '.join(map(_word, domain))} or ANY"
                    )

    def _uncovered(self, values: tuple[Any, ...]) -> str:
        where = ", ".join(f"{column}={_word(value)}" for column, value in zip(self.columns, values, strict=True))
        return (
            f"table {self.name}: no row of {self.facts.__name__} covers {where}; "
            "add one, or widen an existing row with ANY"
        )

    def grid(self) -> list[list[str]]:
        """Write the table in words: a head, then for each row its name, a column a fact, verdict and why."""
        head = ["row", *self.columns, "verdict", "why"]
        return [head, *([row.name, *map(_cell, row.when), _word(row.verdict), row.why] for row in self.rows)]

    def values(self) -> dict[str, list[str]]:
        """Write each column's values in words."""
        return {column: list(map(_word, domain)) for column, domain in zip(self.columns, self._domains, strict=True)}

    def markdown(self) -> str:
        """Render the table for the docs: a column a fact, then the verdict and why."""
        head, *rows = self.grid()
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in rows]
        return "\n".join([f"## {self.name}", "", f"Source: {self.source}.", "", *lines, ""])


def _domains(facts: type[msgspec.Struct], name: str) -> list[tuple[Any, ...]]:
    """List each column's values, from its type."""
    hints = get_type_hints(facts)
    domains = [_domain(hints[column], name, column) for column in facts.__struct_fields__]
    size = 1
    for domain in domains:
        size *= len(domain)
    if size > COMBINATIONS_MAX:
        raise TableError(f"table {name}: {size} combinations, at most {COMBINATIONS_MAX}; split it into two rules")
    return domains


def _domain(hint: Any, name: str, column: str) -> tuple[Any, ...]:  # noqa: ANN401 - a type annotation is any object
    if hint is bool:
        return (False, True)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return tuple(hint)
    if get_origin(hint) is Literal:
        return get_args(hint)
    raise TableError(f"table {name}: column {column} is a {hint!r}; allowed: bool, an Enum, a Literal")


def _matches(when: tuple[Any, ...], values: tuple[Any, ...]) -> bool:
    return all(
        pattern is ANY or (value in pattern if isinstance(pattern, tuple) else value == pattern)
        for pattern, value in zip(when, values, strict=True)
    )


def _word(value: object) -> str:
    """Write a fact or verdict as a reader would."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _cell(pattern: object) -> str:
    return " or ".join(map(_word, pattern)) if isinstance(pattern, tuple) else _word(pattern)
