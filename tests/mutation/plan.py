"""Which changes there are: cosmic-ray's operators on the rules, without annotations, one of each kind at each place."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec

__all__ = ["ROOT", "Mutant", "files_of_rules", "mutants_of"]

ROOT = Path(__file__).parents[2]
LEFT_OUT = (
    "NoOp",
    "VariableReplacer",
    "VariableInserter",
    "RemoveDecorator",
    "ExceptionReplacer",
    "ReplaceComparisonOperator_NotEq_IsNot",
    "ReplaceComparisonOperator_Eq_Is",
)
"""Operators that change nothing, need arguments, change what no rule rests on, or compare short texts by identity."""
MANNERS = {"frozen", "gc", "omit_defaults", "kw_only", "array_like", "strict"}
"""Keywords that say how a class or `zip` is made: no rule rests on them."""


class Mutant(msgspec.Struct, frozen=True):
    """One change of one file."""

    file: str
    line: int
    operator: str
    occurrence: int

    @property
    def path(self) -> Path:
        """Where the file is."""
        return ROOT / self.file

    def code(self) -> str:
        """Return the file's text with the change."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        text: str | None = mutate_code(
            self.path.read_text(encoding="utf-8"), get_operator(self.operator)(), self.occurrence
        )
        assert text is not None, self
        return text

    def change(self) -> tuple[str, str]:
        """Return the line before and after."""
        before = self.path.read_text(encoding="utf-8").splitlines()
        after = self.code().splitlines()
        for old, new in zip(before, after, strict=False):
            if old != new:
                return old.strip(), new.strip()
        return "", ""


def files_of_rules() -> list[Path]:
    """List the files that hold the rules."""
    folders = (ROOT / "engine" / name for name in ("chat", "turn", "channel"))
    return [*(file for folder in folders for file in sorted(folder.glob("*.py"))), ROOT / "engine" / "table.py"]


def mutants_of(file: Path, seed: int) -> list[Mutant]:
    """List the mutants of a file; of the replacements of one operator by others, the seed picks one."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator, operator_names

    rng = Random(f"{seed} {file.name}")
    tree = get_ast_from_path(file)
    nodes = list(ast_nodes(tree))
    places: dict[tuple[str, Any], list[Mutant]] = {}
    for name in operator_names():
        short = name.partition("/")[2]
        if short.startswith(LEFT_OUT):
            continue
        operator = get_operator(name)()
        spots = [(node, start) for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, (node, start) in enumerate(spots):
            if not _is_annotation(node) and not _is_manner(node):
                mutant = Mutant(str(file.relative_to(ROOT)), start[0], name, occurrence)
                places.setdefault((short.partition("_")[0], start), []).append(mutant)
    return [rng.choice(found) for _, found in sorted(places.items())]


def _is_annotation(node: Any) -> bool:
    """Say whether a node stands in an annotation: it decides nothing."""
    at = node
    while at.parent is not None:
        parent = at.parent
        if parent.type == "annassign" and at is parent.children[1]:
            return True
        if parent.type in {"tfpdef", "param"} and parent.children[0] is not at and "=" not in _before(parent, at):
            return True
        if parent.type == "funcdef" and "->" in _before(parent, at)[-1:]:
            return True
        if parent.type == "if_stmt" and parent.children[1].get_code().strip() == "TYPE_CHECKING":
            return True
        at = parent
    return False


def _is_manner(node: Any) -> bool:
    """Say whether a node is the value of a keyword that is none of a rule."""
    parent = node.parent
    return parent is not None and parent.type == "argument" and getattr(parent.children[0], "value", "") in MANNERS


def _before(parent: Any, node: Any) -> list[str]:
    """List what stands before a node in its parent."""
    return [one.get_code().strip() for one in parent.children[: parent.children.index(node)]]
