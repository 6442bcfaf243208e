"""Draw docs/bench-*.svg from build/bench.json: throughput, latency and memory, each beside its goal."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
WIDTH, ROW, LEFT, TOP = 760, 30, 250, 56
INK, BAR, MISS, GOAL = "#333333", "#4878a8", "#c8803c", "#b03030"


class Bar(NamedTuple):
    name: str
    value: float
    shown: str
    goal: float | None = None
    most: bool = False
    """The goal is an upper bound."""


def chart(title: str, bars: list[Bar], *, log: bool = False) -> str:
    """Draw horizontal bars; a red line is the goal, an orange bar missed it."""
    height = TOP + ROW * len(bars) + 16
    values = [value for bar in bars for value in (bar.value, bar.goal) if value]
    low = min(values) / 2 if log else 0.0
    high = max(values) * (2 if log else 1.1)

    def x(value: float) -> float:
        share = math.log(max(value, low) / low) / math.log(high / low) if log else value / high
        return LEFT + share * (WIDTH - LEFT - 90)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f'<g font-family="sans-serif" font-size="13" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="16">{escape(title)}</text>',
        f'<text x="12" y="42" font-size="11">red line: the goal{"; logarithmic" if log else ""}</text>',
    ]
    for index, bar in enumerate(bars):
        y = TOP + index * ROW
        bad = bar.goal is not None and (bar.value > bar.goal if bar.most else bar.value < bar.goal)
        lines.append(f'<text x="{LEFT - 8}" y="{y + 17}" text-anchor="end">{escape(bar.name)}</text>')
        lines.append(
            f'<rect x="{LEFT}" y="{y + 4}" width="{x(bar.value) - LEFT:.1f}" height="18" fill="{MISS if bad else BAR}"/>'
        )
        lines.append(f'<text x="{x(bar.value) + 6:.1f}" y="{y + 17}">{escape(bar.shown)}</text>')
        if bar.goal is not None:
            at = f"{x(bar.goal):.1f}"
            lines.append(f'<line x1="{at}" x2="{at}" y1="{y + 1}" y2="{y + 25}" stroke="{GOAL}" stroke-width="2"/>')
    return "\n".join([*lines, "</g></svg>", ""])


def throughput(figures: dict[str, Any]) -> list[Bar]:
    layers = figures["layers"]
    goals = {"cell": 0.70, "actors": 0.50, "metrics": 0.45, "sqlite-full": 0.30}
    bars = [Bar("plain calls", 1.0, "1")]
    for name, ratio in layers["ratio"].items():
        us = layers["us_of_a_record"][name]
        bars.append(Bar(name, ratio, f"{ratio:.2f}, {us:.0f} µs a record", goals.get(name)))
    replayed = figures["replay"]
    return [*bars, Bar("replay (to plain + decode)", replayed["ratio"], f"{replayed['ratio']:.2f}", 0.70)]


def latency(figures: dict[str, Any]) -> list[Bar]:
    bars = []
    for rate, found in figures["latency"].items():
        for name, value in found["decision_us"].items():
            goal = 1000.0 if rate == "20000" and name == "p99" else None
            bars.append(Bar(f"{int(rate):,} events/s, {name}", max(value, 1.0), f"{value:,.0f} µs", goal, most=True))
    return bars


def memory(figures: dict[str, Any]) -> list[Bar]:
    bars = []
    for size, found in figures["memory"].items():
        value = found["bytes_of_an_idle_chat"]
        bars.append(Bar(f"{int(size):,} idle chats", value, f"{value:.0f} B a chat", 600.0, most=True))
    return bars


def main() -> int:
    report = json.loads((ROOT / "build" / "bench.json").read_text())
    figures = report["figures"]
    quick = ", quick" if report["machine"].get("quick") else ""
    for name, title, bars, log in (
        ("throughput", f"Throughput, plain calls of the same steps = 1{quick}", throughput(figures), False),
        ("latency", f"Decision, from the seq stamp to quiescence{quick}", latency(figures), True),
        ("memory", f"Memory of an idle chat{quick}", memory(figures), False),
    ):
        (ROOT / "docs" / f"bench-{name}.svg").write_text(chart(title, bars, log=log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
