"""Fuzz one decoder with atheris: `python -m fuzz.run NAME [libFuzzer options]`; `make fuzz` runs them all.

A target is one of `tests.fuzz.targets`. It starts from the samples of the tests and grows its corpus in
`fuzz/corpus/NAME`. An input that fails is written to `tests/fuzz/kept/NAME-…`, where a test replays it from then on.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["turnkeeper", "msgpack", "tomllib"]):
    from tests.fuzz.samples import samples
    from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[1]
LENGTH_MAX, MEMORY_MAX_MB, HANGS_AFTER_S = 1 << 16, 2048, 10


def corpus(name: str) -> Path:
    """Lay the samples beside what earlier runs found."""
    folder = ROOT / "fuzz" / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    for sample in samples(name):
        (folder / hashlib.sha256(sample).hexdigest()[:16]).write_bytes(sample)
    return folder


def main() -> None:
    """Run one target until libFuzzer's options say stop, or something fails."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"usage: python -m fuzz.run NAME [options]; NAME is one of {', '.join(TARGETS)}")
    logging.disable()  # that a journal was cut is told for every second input
    name = sys.argv[1]
    kept = ROOT / "tests" / "fuzz" / "kept" / f"{name}-"
    options = [
        f"-artifact_prefix={kept}",
        f"-max_len={LENGTH_MAX}",
        f"-rss_limit_mb={MEMORY_MAX_MB}",
        f"-timeout={HANGS_AFTER_S}",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, *sys.argv[2:], str(corpus(name))], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
