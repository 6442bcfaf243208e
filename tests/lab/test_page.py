"""docs/LAB.md: every program on it runs, and every name of the kit that it uses is there."""

import re
from pathlib import Path

import pytest

from turnkeeper.engine import lab

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "LAB.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_of_the_page_runs(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(program, "docs/LAB.md", "exec"), {"__name__": "page"})  # noqa: S102 - that is what is tested


def test_methods_of_the_page_exist() -> None:
    names = set(re.findall(r"`([a-z_]+)\(", PAGE))
    known = {*dir(lab.Lab), *lab.__all__}
    assert names <= known, names - known
