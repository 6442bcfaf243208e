"""The site is made of the repository's own pages: README is its first one, and links out of docs/ lead to copies."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
START = "index.md"
LINK = re.compile(r"\[([^\[\]]*)\]\((?!\w+:)([^)#\s]+)(#[^)]*)?\)")


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Write out the folders in the navigation: one entry for each of their pages, README first."""
    config.nav = [opened(entry) for entry in config.nav or []]
    return config


def opened(entry: Any) -> Any:
    """Write out the folders in an entry."""
    if isinstance(entry, dict):
        return {title: opened(inside) for title, inside in entry.items()}
    if isinstance(entry, list):
        return [opened(one) for one in entry]
    if not str(entry).endswith("/"):
        return entry
    pages = sorted((DOCS / entry).glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    return [page.relative_to(DOCS).as_posix() for page in pages]


def on_files(files: "Files", config: "MkDocsConfig", **_: Any) -> "Files":
    """Add README as the first page, and the files that pages link to."""
    readme = ROOT / "README.md"
    files.append(File.generated(config, START, content=readme.read_text(encoding="utf-8")))
    linked = {target for page in (*DOCS.rglob("*.md"), readme) for target in links(page)}
    for target in sorted(linked):
        if target.is_file() and not target.is_relative_to(DOCS):
            files.append(File.generated(config, copy_of(target), content=target.read_text(encoding="utf-8")))
    return files


def links(page: Path) -> list[Path]:
    """Return the files that a page links to."""
    return [(page.parent / link[2]).resolve() for link in LINK.finditer(page.read_text(encoding="utf-8"))]


def copy_of(target: Path) -> str:
    """Return where a file outside of docs/ is shown; what a browser would not show gets another ending."""
    name = target.relative_to(ROOT).as_posix()
    return f"files/{name}" if target.suffix in {".json", ".txt"} else f"files/{name}.txt"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links out of docs/ to the copies; a folder is only named."""
    home = ROOT if page.file.src_uri == START else (DOCS / page.file.src_uri).parent
    up = "../" * page.file.src_uri.count("/")

    def lead(link: re.Match[str]) -> str:
        target = (home / link[2]).resolve()
        if target.is_relative_to(DOCS):
            inside = target.relative_to(DOCS).as_posix()
            if target.is_dir():
                return f"[{link[1]}]({up}{inside}/README.md)" if (target / "README.md").exists() else link[1]
            return f"[{link[1]}]({up}{inside}{link[3] or ''})"
        return f"[{link[1]}]({up}{copy_of(target)})" if target.is_file() else link[1]

    return LINK.sub(lead, markdown)
