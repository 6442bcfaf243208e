"""What being durable costs: events a second beside no journal and beside the disk's floor, recovery, an ack, memory.

Ratios are of one run: `full` to no journal at all, commits a second to the fsyncs a second that the same disk
does in the same minute, a recovery to plain calls of the same steps plus reading the same bytes, an ack to the
sum of its three commits (reply, handed, settled). `--chats` says how many chats are recovered for the memory.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from feeding import Fed, LoadClock, make_engine
from layers import fsync_ms
from load import START_MS, Load, make_load, name_of
from measuring import best, machine, main, options, rss_bytes, spent
from plain import run_plainly, spelled_out

from turnkeeper import Engine, events
from turnkeeper.actors.snapshots import begin_from
from turnkeeper.actors.sqlite import SqliteJournal
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.config import Policy
from turnkeeper.engine.journal import RULES, Snapshot, decode_frame, encode_frame
from turnkeeper.engine.recovery import record_of, replay
from turnkeeper.engine.snapshot import Still, pictures_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnkeeper.engine.commands import Command

FRAME = 64
COMMITS_OF_AN_ACK = 3
DAYS_MS = 10 * 86_400_000
"""So long ago is the last that was said in a chat that rests."""


def live(load: Load, journal: SqliteJournal | None) -> dict[str, float]:
    """Feed an engine, and return records and commits a second; start and stop are not counted."""
    clock, fed = LoadClock(), Fed(load)
    with make_engine(clock, journal=journal) as engine:
        began, made = perf_counter(), fed.feed(engine, clock)
        taken = perf_counter() - began
        pause_ms = engine._shard.snapshots.pause_ns / 1e6
    commits = 0 if journal is None else journal.commits
    return {
        "records_per_s": made / taken,
        "commits_per_s": commits / taken,
        "records_of_a_commit": made / commits if commits else 0.0,
        "longest_snapshot_pause_ms": pause_ms,
    }


def durable(load: Load, folder: Path, times: int) -> dict[str, Any]:
    """Compare both ways of being durable with none, and with what the disk can do."""
    found: dict[str, Any] = {}
    for way in ("none", "normal", "full"):
        runs = [
            live(load, None if way == "none" else SqliteJournal(folder / f"{way}{n}.db", sync=way))  # type: ignore[arg-type]
            for n in range(times)
        ]
        found[way] = max(runs, key=lambda run: run["records_per_s"])
    floor_ms = fsync_ms(folder)
    for way in ("normal", "full"):
        found[way]["ratio_to_none"] = found[way]["records_per_s"] / found["none"]["records_per_s"]
        found[way]["records_of_a_floor_fsync"] = found[way]["records_per_s"] * floor_ms / 1000
    found["full"]["commits_to_floor_fsyncs"] = found["full"]["commits_per_s"] * floor_ms / 1000
    found["fsync_floor_ms"] = floor_ms
    return found


def frames_of(load: Load) -> list[bytes]:
    """Write the load as a journal has it."""
    cell, records = Cell(), []
    for seq, (at_ms, body) in enumerate(load.bodies, 1):
        if body.due is not None:
            cell.forget_due(body.due)
        records.append(record_of(seq, at_ms, body, cell.apply(body, at_ms, seq)))
    return [encode_frame(records[n : n + FRAME]) for n in range(0, len(records), FRAME)]


def recovery(load: Load, times: int) -> dict[str, float]:
    """Compare a replay with plain calls plus reading the bytes."""
    frames, calls = frames_of(load), spelled_out(load)
    plain_s, _ = best(lambda: run_plainly(calls, {}), times)
    decode_s, _ = best(lambda: [decode_frame(frame) for frame in frames], times)
    replay_s, _ = best(lambda: replay(Cell(), frames), times)
    return {
        "records_per_s": len(load.bodies) / replay_s,
        "plain_us_of_a_record": plain_s / len(load.bodies) * 1e6,
        "decode_us_of_a_record": decode_s / len(load.bodies) * 1e6,
        "replay_us_of_a_record": replay_s / len(load.bodies) * 1e6,
        "ratio_to_plain_plus_decode": (plain_s + decode_s) / replay_s,
    }


class AtOnce:
    """A platform that answers at once."""

    def perform(self, command: Command, /) -> int:
        return 9001


def ack(folder: Path, calls: int) -> dict[str, float]:
    """Time the ack of one call after the other, and one commit after the other, on an engine that does nothing else."""
    rates = {"calls_per_s": 1_000_000, "calls_burst": 1_000_000}
    config = {"journal": {"path": str(folder / "ack.db"), "linger_ms": 0}, "limits": rates}
    with Engine(config, AtOnce()) as engine:
        engine.post(events.TurnOpened("c1", "P", message=1, channel="tg/1")).wait(30)  # type: ignore[arg-type]
        acks, commits = [], []
        for n in range(calls):
            began = perf_counter()
            engine.post(events.Activity("c1", "hook")).wait(30)
            commits.append(perf_counter() - began)
            began = perf_counter()
            engine.call(events.Reply("c1", f"k{n}", turn_id="P", text=f"answer {n}"), 30)
            acks.append(perf_counter() - began)
    commit_ms, ack_ms = median(commits) * 1000, median(acks) * 1000
    return {
        "commit_ms": commit_ms,
        "ack_ms": ack_ms,
        "ack_to_three_commits": ack_ms / (COMMITS_OF_AN_ACK * commit_ms),
    }


def idle_pictures(chats: int) -> Iterator[tuple[str, bytes]]:
    """Yield pictures of chats that each had a turn or two, and rest."""
    load = make_load(8, 1)
    cell = Cell()
    for seq, (at_ms, body) in enumerate(load.bodies, 1):
        if body.due is not None:
            cell.forget_due(body.due)
        cell.apply(body, at_ms, seq)
    ((name, picture),) = pictures_of(cell)
    for n in range(chats):
        other = name_of(n)
        yield other, picture.replace(name.encode(), other.encode())


def many_chats(folder: Path, chats: int) -> dict[str, float]:
    """Recover so many chats from a snapshot; then capture them all, and a few."""
    path, kept = folder / "chats.db", threading.Event()
    journal = SqliteJournal(path, sync="normal")
    journal.keep(Snapshot(1, START_MS + DAYS_MS, RULES, Policy(), idle_pictures(chats)), lambda error: kept.set())
    written_s, _ = spent(kept.wait)
    journal.close()
    journal, cell, before = SqliteJournal(path), Cell(), rss_bytes()
    taken_s, _ = spent(lambda: begin_from(cell, journal))
    after = rss_bytes()
    whole_s, _ = spent(lambda: Still(cell))
    few = {name_of(n) for n in range(min(chats, 1000))}
    few_s, _ = spent(lambda: Still(cell, few))
    journal.close()
    return {
        "chats": float(cell.chats),
        "write_s": written_s,
        "file_bytes_of_a_chat": path.stat().st_size / chats,
        "recover_s": taken_s,
        "recover_chats_per_s": chats / taken_s,
        "memory_mb": (after - before) / 1e6,
        "memory_bytes_of_a_chat": (after - before) / chats,
        "pause_to_capture_all_ms": whole_s * 1000,
        "pause_to_capture_1000_touched_ms": few_s * 1000,
    }


def run(*, quick: bool, chats: int) -> dict[str, Any]:
    """Run everything."""
    times = 1 if quick else 2
    load = make_load(10_000 if quick else 40_000, 1_000 if quick else 4_000)
    with tempfile.TemporaryDirectory(prefix="turnkeeper-bench-", dir=Path.cwd()) as name:
        folder = Path(name)
        return {
            "machine": machine(),
            "records": len(load.bodies),
            "durable": durable(load, folder, times),
            "recovery": recovery(load, times),
            "ack": ack(folder, 50 if quick else 500),
            "many_chats": many_chats(folder, chats or (10_000 if quick else 200_000)),
        }


if __name__ == "__main__":
    given = options(__doc__, chats={"type": int, "default": 0, "help": "chats to recover; 0: 200,000, or 10,000"})
    sys.exit(main(run(quick=given.quick, chats=given.chats), as_json=given.json))
