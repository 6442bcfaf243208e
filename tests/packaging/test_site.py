"""The site (`make docs`) shows every page and every public name; links in the pages lead somewhere."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import turnkeeper

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NAV = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
API = (DOCS / "API.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^::: ([\w.]+)$", API, re.MULTILINE)


def test_every_page_is_in_the_navigation() -> None:
    for page in DOCS.rglob("*.md"):
        inside = page.relative_to(DOCS)
        entry = inside.name if inside.parent == Path() else f"{inside.parts[0]}/"
        assert re.search(rf"(- |: ){re.escape(entry)}$", NAV, re.MULTILINE), f"{inside} is not in mkdocs.yml"


@pytest.mark.parametrize("name", SHOWN)
def test_what_the_reference_shows_exists(name: str) -> None:
    module, _, last = name.rpartition(".")
    try:
        import_module(name)
    except ModuleNotFoundError:
        assert hasattr(import_module(module), last)


def test_every_name_of_the_face_is_in_the_reference() -> None:
    whole = {name for shown in SHOWN if "." in shown for name in getattr(module_or_none(shown), "__all__", [])}
    for name in turnkeeper.__all__:
        module = f"turnkeeper.engine.{name}"
        assert f"turnkeeper.{name}" in SHOWN or name in whole or module in SHOWN, name


def module_or_none(name: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
