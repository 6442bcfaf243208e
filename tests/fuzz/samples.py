"""What fuzzing starts from: for each decoder a few inputs that are right, and bytes like them that are not."""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine import codec
from turnkeeper.engine.config import Policy
from turnkeeper.engine.journal import RULES, Snapshot
from turnkeeper.engine.lab.lines import lines_of
from turnkeeper.engine.lab.runner import ScenarioRunner
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.scenario import read_scenario
from turnkeeper.engine.picture import draw

__all__ = ["mutated", "samples"]

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "tests" / "scenarios"
STORIES = ("a34-one-quote", "a03-old-fold-stays-late", "z12-reload", "r-a2-hostile-values", "r-b-z-parked-anchor")
TRANSCRIPTS = ("v29-chunks", "v33-malformed-marks", "l14-merge-conflict", "v39-rebuild-and-merge")
SESSION = (
    b'{"type":"session","version":3,"id":"s1"}\n'
    b'{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}\n'
    b'{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"text","text":"yo"}]}}\n'
    b'{"type":"leaf","id":"l","targetId":"a"}\n'
    b'{"type":"custom","customType":"x","id":"c","parentId":"b","data":{"k":[1,2.5,null,true]}}\n'
)
TRAJECTORY = (
    b'{"traceSchema":"openclaw-trajectory","type":"run.started"}\n'
    b'{"type":"prompt.submitted","data":{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}}\n'
)


@cache
def samples(target: str) -> tuple[bytes, ...]:
    """Return inputs of a decoder that it can read."""
    if target == "config":
        return ((ROOT / "config.example.toml").read_bytes()[:4000], b"[delivery]\nbackoff_ms = [1000, 2000]\n", b"")
    if target == "scenario":
        return tuple((SCENARIOS / f"{name}.jsonl").read_bytes() for name in STORIES)
    if target == "transcript":
        return tuple((SCENARIOS / f"{name}.jsonl").read_bytes() for name in TRANSCRIPTS)
    if target == "openclaw":
        return (SESSION, TRAJECTORY)
    frames = _frames()
    if target == "wire":
        return (*frames, *(codec.payload_of(frame) for frame in frames), *_pictures())
    return (_journal_file(frames, ()), _journal_file(frames, _pictures()))


@cache
def _runtime() -> CellRuntime:
    runner = ScenarioRunner(read_scenario(SCENARIOS / "a34-one-quote.jsonl"))
    runner.run()
    assert isinstance(runner.runtime, CellRuntime)
    assert lines_of(SCENARIOS / "a34-one-quote.jsonl")
    return runner.runtime


def _frames() -> tuple[bytes, ...]:
    return tuple(_runtime().journal.frames)


def _pictures() -> tuple[bytes, ...]:
    owners = _runtime().cell.owners.values()
    return (codec.encode(draw((owner.address, owner.state, owner.due_ms) for owner in owners)),)


def _journal_file(frames: tuple[bytes, ...], pictures: tuple[bytes, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chat.journal")
        journal = SqliteJournal(path)
        for frame in frames:
            journal.append(frame, _committed)
        if pictures:
            journal.keep(Snapshot(2, 0, RULES, Policy(), [("c1", one) for one in pictures]), _committed)
        journal.close()
        return path.read_bytes()


def _committed(error: BaseException | None) -> None:
    assert error is None


TOKENS = (
    b"\x00",
    b"\xff",
    b'"',
    b"{",
    b"[",
    b"}",
    b"]",
    b"\\ud83d",
    b"1e999",
    b"-0",
    b"NaN",
    b"null",
    b"\n",
    b"9" * 40,
)


def mutated(target: str) -> st.SearchStrategy[bytes]:
    """Draw bytes that are nearly what a decoder reads, and bytes that are nothing."""
    near = st.builds(_mutate, st.sampled_from(samples(target)), st.integers(0, 2**32), st.integers(1, 8))
    return st.one_of(near, near, near, st.binary(max_size=400))


def _mutate(sample: bytes, seed: int, edits: int) -> bytes:
    rng, data = random.Random(seed), bytearray(sample)
    for _ in range(edits):
        at = rng.randrange(len(data) + 1)
        span = rng.randrange(1, 9) if rng.randrange(4) else rng.randrange(1, 400)
        match rng.randrange(6):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at : at + span]
            case 2:
                data[at:at] = data[at : at + span]
            case 3:
                data[at:at] = TOKENS[rng.randrange(len(TOKENS))]
            case 4:
                other = rng.randrange(len(data) + 1)
                data[at : at + span] = data[other : other + span]
            case _:
                data[at : at + span] = rng.randbytes(span)
    return bytes(data)
