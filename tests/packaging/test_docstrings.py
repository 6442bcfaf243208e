"""Every public name says what it is: those of the face, and those that a module of the engine lists in `__all__`."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FACE = ROOT / "turnkeeper" / "__init__.py"
MODULES = sorted(file for file in (ROOT / "engine").rglob("*.py") if "__pycache__" not in file.parts)


def assigned(node: ast.stmt) -> list[str]:
    """Name what a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    if isinstance(node, ast.TypeAlias if hasattr(ast, "TypeAlias") else ()):
        targets = [node.name]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def is_table(node: ast.stmt) -> bool:
    """Say whether a statement makes a decision table: docs/rules/ has a page for each."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.Call) and "DecisionTable" in ast.unparse(value.func)


def told(body: list[ast.stmt]) -> dict[str, bool]:
    """Return name → whether a docstring belongs to it; a text below an assignment is one."""
    found: dict[str, bool] = {}
    statements: list[ast.stmt | None] = [*body, None]
    for node, after in pairwise(statements):
        if node is None:
            break
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = bool(ast.get_docstring(node))
        elif isinstance(node, ast.If):
            for name, said in (*told(node.body).items(), *told(node.orelse).items()):
                found[name] = found.get(name, False) or said
        text = (
            isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        )
        for name in assigned(node):
            found[name] = found.get(name, False) or text or is_table(node)
    return found


def imported(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Return name → module and name there, of everything that a module imports."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def listed(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if "__all__" in assigned(node) and isinstance(node, ast.Assign):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def has_docstring(file: Path, name: str) -> bool:
    """Look a name up where it is made, through the modules that pass it on."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    here = told(tree.body)
    if name in here:
        return here[name]
    module, there = imported(tree)[name]
    spec = find_spec(f"{module}.{there}") if module == "turnkeeper.engine" else None
    if spec is not None and spec.origin is not None:  # a module of the engine
        return bool(ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))))
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return has_docstring(Path(spec.origin), there)


@pytest.mark.parametrize("file", [FACE, *MODULES], ids=lambda file: str(file.relative_to(ROOT)))
def test_every_public_name_has_a_docstring(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module itself"
    assert [name for name in listed(tree) if not has_docstring(file, name)] == []
