"""What README shows is what happens."""

import re
import subprocess
import sys

import pytest

from tests.cli.conftest import ROOT, Turnkeeper
from tests.cli.test_group import OURS

README = (ROOT / "README.md").read_text(encoding="utf-8")
CLI = (ROOT / "docs" / "CLI.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "embed_asyncio.py"
MAKE_RUN = ("compare", "examples/incident.jsonl", "--set", "attribution.fold_proof=off")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_incident_is_what_make_run_prints(turnkeeper: Turnkeeper) -> None:
    shown = blocks("text")[0]
    assert turnkeeper(*MAKE_RUN, columns=100).output.endswith(shown)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"$(BIN)/turnkeeper {' '.join(MAKE_RUN)}\n" in makefile
    assert " ".join(MAKE_RUN) in README


def test_the_example_is_the_file_and_runs_as_printed() -> None:
    (code,) = blocks("python")
    assert code == EXAMPLE.read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == blocks("text")[1]


@pytest.mark.parametrize(("page", "text"), [("README.md", README), ("docs/CLI.md", CLI)])
def test_links_lead_somewhere(page: str, text: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("https://"):
            assert ((ROOT / page).parent / target).exists(), target


@pytest.mark.parametrize("name", [*OURS, "simulate", "transcript"])
def test_every_command_is_described(name: str) -> None:
    assert f"| `turnkeeper {name} " in README
    assert f"## turnkeeper {name}\n" in CLI


def test_every_step_of_a_scenario_is_described() -> None:
    from turnkeeper.engine.lab.steps import STEPS

    for word in STEPS:
        assert f'"{word}"' in CLI
