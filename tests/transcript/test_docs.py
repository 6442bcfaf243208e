"""docs/TRANSCRIPT.md: its code runs, and its command prints what it says."""

import re
from pathlib import Path

from click.testing import CliRunner

from turnkeeper.cli.transcript import transcript

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "TRANSCRIPT.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/TRANSCRIPT.md", "exec"), scope)  # noqa: S102 - our own page


def test_the_command_of_the_page_prints_this() -> None:
    command, *printed = re.findall(r"```\n\$ (.*?)```", PAGE, re.DOTALL)[0].rstrip("\n").split("\n")
    arguments = command.removeprefix("turnkeeper transcript ").split()
    found = CliRunner().invoke(transcript, [arguments[0], str(ROOT / arguments[1])])
    assert found.exit_code == 1
    assert found.stdout.replace(f"{ROOT}/", "").rstrip("\n").split("\n") == printed
