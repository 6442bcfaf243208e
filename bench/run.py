"""Every bench, one after the other, into build/bench.json: {"ratios", "goals", "met", "machine", "figures", "others"}.

Run it on a quiet machine: `make bench`. With `--quick` the sizes are a tenth, and the figures only show that it runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from measuring import machine

HERE = Path(__file__).parent
OUT = HERE.parent / "build" / "bench.json"
OURS = ("layers", "replay", "versus", "latency", "memory", "scale")
OTHERS = ("transcript", "journal", "loop_lateness")
"""Benches of other parts, with goals of their own; run if they are there."""
GOALS: dict[str, tuple[str, float]] = {
    "cell": (">=", 0.70),
    "actors": (">=", 0.50),
    "metrics": (">=", 0.45),
    "sqlite-full": (">=", 0.30),
    "messages to ThreadingActor, 1000 actors": (">=", 10),
    "decision p99 at 20000/s, ms": ("<", 1.0),
    "bytes of an idle chat": ("<=", 600),
    "flat from 1000 chats within": ("<=", 1.25),
    "full gc pause at 100000 chats, ms": ("<", 100),
    "replay to plain and decode": (">=", 0.70),
}


def told_by(name: str, *, quick: bool) -> dict[str, Any]:
    """Run one bench and read what it prints."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), "--json", *(["--quick"] if quick else [])],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    seconds = time.perf_counter() - start
    try:
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        found = {"failed": done.stderr[-2000:], "code": done.returncode}
    print(f"{name:14} {seconds:6.1f} s{'  FAILED' if 'failed' in found else ''}", file=sys.stderr)
    return found


def _versus(figures: dict[str, Any]) -> dict[str, float]:
    ratios: dict[str, float] = {}
    for actors, found in figures.items():
        if isinstance(found, dict):
            ratios[f"messages to ThreadingActor, {actors} actors"] = found["messages_to_threading"]
            ratios[f"records to ThreadingActor, {actors} chats"] = found["records_to_threading"]
            ratios[f"records to asyncio, {actors} chats"] = found["records_to_asyncio"]
    return ratios


def ratios_of(figures: dict[str, Any]) -> dict[str, float]:
    """Pick what has a goal; a bench that failed gives none."""
    layers, ratios = figures["layers"], dict[str, float]()
    for name, ratio in layers.get("ratio", {}).items():
        ratios[name] = ratio
        ratios[f"{name}, processor time"] = layers["ratio_of_processor_time"][name]
    ratios.update(_versus(figures["versus"]))
    for rate, found in figures["latency"].items():
        if isinstance(found, dict):
            ratios[f"decision p99 at {rate}/s, ms"] = found["decision_us"]["p99"] / 1000
    sizes = {int(size): found for size, found in figures["memory"].items() if size.isdigit()}
    if sizes:
        ratios["bytes of an idle chat"] = sizes[max(sizes)]["bytes_of_an_idle_chat"]
        ratios["full gc pause at 100000 chats, ms"] = sizes[100_000]["gc_pause_ms"]
    for name, bench, key in (
        ("flat from 1000 chats within", "scale", "flat_within"),
        ("replay to plain and decode", "replay", "ratio"),
    ):
        if key in figures[bench]:
            ratios[name] = figures[bench][key]
    return ratios


def holds(value: float | None, bound: tuple[str, float]) -> bool:
    """Say whether a goal is met; what was not measured is not."""
    if value is None:
        return False
    sign, limit = bound
    return value >= limit if sign == ">=" else value <= limit if sign == "<=" else value < limit


def main() -> int:
    parser = argparse.ArgumentParser(description="Every bench, into build/bench.json.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--only", default="", help="these benches, with commas between; the rest stays as it was")
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else [*OURS, *OTHERS]
    before: dict[str, Any] = json.loads(OUT.read_text()) if OUT.exists() and given.only else {}
    known = {**before.get("figures", {}), **before.get("others", {})}
    for name in (*OURS, *OTHERS):
        if name in wanted and (HERE / f"{name}.py").exists():
            known[name] = told_by(name, quick=given.quick)
    figures = {name: known.get(name, {}) for name in OURS}
    ratios = ratios_of(figures)
    goals = {name: f"{sign} {limit:g}" for name, (sign, limit) in GOALS.items()}
    met = {name: holds(ratios.get(name), bound) for name, bound in GOALS.items()}
    report = {
        "ratios": ratios,
        "goals": goals,
        "met": met,
        "machine": {**machine(), "quick": given.quick},
        "figures": figures,
        "others": {name: known[name] for name in OTHERS if name in known},
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(report, indent=1) + "\n")
    for name, goal in goals.items():
        value = ratios.get(name)
        shown = "not measured" if value is None else f"{value:.3g}"
        print(f"{'met   ' if met[name] else 'MISSED'}  {name:42} {shown:>12}   goal {goal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
