"""Every decoder on bytes that are nearly right, on bytes that are nothing, on bombs, and on what once failed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.bombs import BOMBS
from tests.fuzz.samples import mutated, samples
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
KEPT = sorted((Path(__file__).parent / "kept").glob("*-*"))
EXAMPLES = {"wire": 1200, "journal": 150, "config": 800, "scenario": 800, "transcript": 500, "openclaw": 800}
CPU_MAX_S = 5
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.parametrize("target", list(TARGETS))
def test_a_sample_is_read(target: str) -> None:
    for sample in samples(target):
        TARGETS[target](sample)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("target", list(TARGETS))
def test_whatever_comes_is_read_or_refused(target: str) -> None:
    @settings(max_examples=EXAMPLES[target], deadline=None, suppress_health_check=SLOW, derandomize=True, database=None)
    @given(mutated(target))
    def check(data: bytes) -> None:
        began_s = time.process_time()
        TARGETS[target](data)
        assert time.process_time() - began_s < CPU_MAX_S

    check()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None, suppress_health_check=SLOW, derandomize=True, database=None)
@given(
    st.sampled_from(("reply", "turn_opened", "settle", "deliver", "crash", "expect", "reload", "state", "metrics")),
    JSON,
)
def test_any_value_of_any_step_is_read_or_refused(step: str, value: object) -> None:
    line = json.dumps({step: value}).encode()
    TARGETS["scenario"](b'{"scenario": "s"}\n' + line + b"\n")


@settings(max_examples=400, deadline=None, suppress_health_check=SLOW, derandomize=True, database=None)
@given(JSON)
def test_any_entry_of_a_session_is_read_or_refused(value: object) -> None:
    entry = {"type": "message", "id": "x", "parentId": "a", "message": value}
    TARGETS["openclaw"](b'{"type":"session","version":3,"id":"s1"}\n' + json.dumps(entry).encode())


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.name)
def test_what_once_failed_is_read_or_refused(file: Path) -> None:
    TARGETS[file.name.partition("-")[0]](file.read_bytes())


@pytest.mark.parametrize("name", list(BOMBS))
def test_a_bomb_does_no_harm(name: str) -> None:
    """A small input asks for much memory or time; the process may have little of both."""
    code = (
        "import resource, sys\n"
        "from tests.fuzz.bombs import BOMBS\n"
        "from tests.fuzz.targets import TARGETS\n"
        f"target, make = BOMBS[{name!r}]\n"
        "data = make()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (30, 30))\n"
        "TARGETS[target](data)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
