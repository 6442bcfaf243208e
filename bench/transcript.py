"""Measures the transcript library: the prompt view against `json.loads`, and the look-up in a large store.

    python bench/transcript.py            # 100,000 entries for the view, 1,000,000 for the look-up
    python bench/transcript.py --quick    # a tenth of both
    python bench/transcript.py --json

Goals: the view of a session takes no longer than `json.loads` needs for its lines, and a look-up is constant,
microseconds. Exit code 1 if one is missed. Every figure is the best of three: the machine may be busy.
"""

import argparse
import gc
import json
import random
import resource
import sys
from collections.abc import Callable
from time import perf_counter

from turnkeeper.engine.transcript import Store, prompt_view
from turnkeeper.engine.transcript.records import Route

WORDS = ("lorem", "ipsum", "dolor", "sit", "amet", "elit", "sed", "do", "tempor", "ut", "labore", "magna")
USAGE = {"input": 812, "output": 64, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 876}
ZERO = dict.fromkeys(USAGE, 0)
HERE = Route("telegram", "bot", "4242")


def session(entries: int, seed: int = 1) -> list[str]:
    """Make a busy session's lines: tools in every third turn, each answer with a receipt, half of them stripped."""
    rng = random.Random(seed)
    lines: list[str] = []
    parent: str | None = None

    def put(ident: str, **message: object) -> None:
        nonlocal parent
        entry = {
            "type": "message",
            "id": ident,
            "parentId": parent,
            "timestamp": "2026-07-01T08:00:00.000Z",
            "message": message,
        }
        lines.append(json.dumps(entry))
        parent = ident

    def words(count: int) -> str:
        return " ".join(rng.choices(WORDS, k=count))

    named = {
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "claude",
        "usage": USAGE,
        "stopReason": "stop",
    }
    turn = 0
    while len(lines) < entries:
        turn += 1
        put(f"u{turn}", role="user", content=[{"type": "text", "text": words(15)}])
        if turn % 3 == 0:
            call = {"type": "toolCall", "id": f"k{turn}", "name": "search", "arguments": {"q": words(3)}}
            put(f"t{turn}", role="assistant", content=[call], **named)
            put(f"o{turn}", role="toolResult", toolCallId=f"k{turn}", content=[{"type": "text", "text": words(30)}])
        said = words(40)
        thought = {"type": "thinking", "thinking": words(20)}
        put(f"a{turn}", role="assistant", content=[thought, {"type": "text", "text": said}], **named)
        receipt = {"provider": "openclaw", "model": "delivery-mirror", "usage": ZERO, "idempotencyKey": f"k:{turn}"}
        left = receipt if turn % 2 else {"usage": USAGE}
        put(f"r{turn}", role="assistant", content=[{"type": "text", "text": said}], **left)
    return lines[:entries]


def best_s(what: Callable[[], object], times: int = 3) -> float:
    """Return the shortest of some runs in seconds, the collector off: it would charge `json.loads` threefold."""
    taken = []
    for _ in range(times):
        gc.collect()
        gc.disable()
        start = perf_counter()
        what()
        taken.append(perf_counter() - start)
        gc.enable()
    return min(taken)


def bench_view(entries: int) -> dict[str, float]:
    lines = session(entries)
    loads_s = best_s(lambda: [json.loads(line) for line in lines])
    raws = [json.loads(line) for line in lines]
    store = Store.load({"type": "session", "version": 3, "id": "s1"}, raws)
    path_s = best_s(store.path)
    path = store.path()
    view_s = best_s(lambda: prompt_view(path))
    report = prompt_view(path).report
    clean = prompt_view(path).messages
    return {
        "entries": entries,
        "bytes": sum(map(len, lines)),
        "json_loads_s": loads_s,
        "path_s": path_s,
        "view_s": view_s,
        "view_of_a_clean_prompt_s": best_s(lambda: prompt_view(clean)),
        "dropped": sum(count for reason, count in report.counts.items() if reason != "kept"),
        "ratio": (path_s + view_s) / loads_s,
    }


def filled(receipts: int) -> Store:
    """Make a store of answers, each with its keyed receipt."""
    store = Store("s1")
    named = {"provider": "p", "model": "m"}
    route = {"channel": "telegram", "account": "bot", "chat": "4242"}
    for n in range(receipts):
        answer = {"role": "assistant", "content": "x", **named}
        store.add({"type": "message", "id": f"a{n}", "message": answer})
        receipt = {"key": f"k{n}", "source_entry_id": f"a{n}", "route": route}
        mirror = {"role": "assistant", "content": "x", "usage": ZERO}
        store.add({"type": "message", "id": f"r{n}", "message": mirror, "receipt": receipt})
    return store


def bench_lookup(entries: int) -> dict[str, float]:
    """Time look-ups in a small and in a full store, in microseconds each."""
    figures: dict[str, float] = {"entries": entries}
    for name, size in (("small", entries // 1000), ("full", entries)):
        start = perf_counter()
        store = filled(size // 2)
        figures[f"{name}_fill_s"] = perf_counter() - start
        numbers = [(n * 7919) % (size // 2) for n in range(2000)]
        asked = {
            "key": lambda store=store, numbers=numbers: [store.lookup(f"k{n}") for n in numbers],
            "miss": lambda store=store, numbers=numbers: [store.lookup(f"-{n}") for n in numbers],
            "part": lambda store=store, numbers=numbers: [store.lookup(route=HERE, answer=f"a{n}") for n in numbers],
        }
        for what, ask in asked.items():
            figures[f"{name}_{what}_us"] = best_s(ask) / len(numbers) * 1e6
            assert {answer.standing for answer in ask()} == {"none" if what == "miss" else "sent"}
    figures["memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    view, lookup = bench_view(100_000 // scale), bench_lookup(1_000_000 // scale)
    # A thousand times as many entries: a search would take a thousand times as long; memory that is far away, a few.
    constant = all(lookup[f"full_{what}_us"] <= 20 * lookup[f"small_{what}_us"] for what in ("key", "miss", "part"))
    good = view["ratio"] <= 1 and constant and lookup["full_key_us"] < 50
    if options.json:
        print(json.dumps({"view": view, "lookup": lookup, "good": good}))
        return 0 if good else 1
    print(f"view: {view['entries']:,} entries, {view['bytes'] / 1e6:.0f} MB, {view['dropped']:,} dropped")
    print(f"  json.loads {view['json_loads_s']:.3f} s; path {view['path_s']:.3f} s + view {view['view_s']:.3f} s")
    print(
        f"  = {view['ratio']:.2f} times json.loads (goal: at most 1); a clean prompt {view['view_of_a_clean_prompt_s']:.3f} s"
    )
    print(
        f"look-up: {lookup['entries']:,} entries, filled in {lookup['full_fill_s']:.1f} s, peak memory {lookup['memory_mib']:.0f} MiB"
    )
    for what in ("key", "miss", "part"):
        small, full = lookup[f"small_{what}_us"], lookup[f"full_{what}_us"]
        print(f"  by {what}: {full:.2f} µs; in a store of {lookup['entries'] // 1000:,}: {small:.2f} µs")
    print("good" if good else "a goal is missed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
