"""The two programs of docs/EMBEDDING.md, run as a host would run them: in a folder of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

PRINTED = {
    "embed_asyncio.py": """\
tg/100, quoting 6406: Both are done.
the tool's result: ok=True, message=9001
turn P: final-reply, delivered: yes
""",
    "embed_threads.py": """\
tg/100, quoting 6406: Done.
the tool's result: ok=True, message=9001
turn P: final-reply, delivered: yes
""",
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_program_prints_one_answer(name: str, tmp_path: Path) -> None:
    """One send, quoting the message that started the turn; the closing words are no second one."""
    program = tmp_path / name
    program.write_text((EXAMPLES / name).read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, PRINTED[name], "")


@pytest.mark.parametrize("name", PRINTED)
def test_a_program_is_short_enough_to_be_read(name: str) -> None:
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 40
