"""kill -9 at random instants: nothing is lost, nothing is said twice, nothing changes places."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import IO, TYPE_CHECKING, Self

import pytest

from tests.crash.platform import Platform
from turnkeeper.actors.history import History
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.commands import Preview, React
from turnkeeper.engine.events import Settled
from turnkeeper.engine.signals import DeliveryUnknown

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLS = int(os.environ.get("TURNKEEPER_KILLS", "20"))
SEED = int(os.environ.get("TURNKEEPER_SEED", "6"))
LIFE_S = 0.25
"""A life ends at an instant up to here, so some end while they recover."""
PATIENCE_S = 60
ROOT = Path(__file__).parents[2]


class Gateways:
    """The process that begins one life after the other."""

    def __init__(self, platform: Path, journal: Path, kind: str) -> None:
        command = [sys.executable, "-m", "tests.crash.gateway", str(platform), str(journal), kind]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self._pid = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
        self._file(self._process.stdin).close()
        self._process.wait(PATIENCE_S)
        self._file(self._process.stdout).close()

    @staticmethod
    def _file(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe

    def begin(self) -> None:
        pipe = self._file(self._process.stdin)
        pipe.write("live\n")
        pipe.flush()
        self._pid = int(self._file(self._process.stdout).readline())

    def ended_within(self, seconds: float) -> bool:
        """Wait for the end of the life; False: it goes on."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._file(self._process.stdout), selectors.EVENT_READ)
            return bool(selector.select(seconds))

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        assert self.code() == -signal.SIGKILL

    def code(self) -> int:
        self._pid = 0
        return int(self._file(self._process.stdout).readline())


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    platform = Platform(tmp_path / "platform", SEED)
    yield platform
    platform.close()


def in_doubt(journal: Path) -> set[str]:
    """What was with the host at a kill, as the journal has it."""
    out: set[str] = set()
    with History(journal) as history:
        for record in history.records():
            if record.body.handed is not None:
                out.add(record.body.handed.delivery)
            elif isinstance(record.body.event, Settled):
                out.discard(record.body.event.delivery)
            elif record.body.recovered is not None:
                out.clear()  # doubted, and told, at that restart
    return out


def taken_as_unknown(journal: Path) -> set[str]:
    """The deliveries that the engine told as unknown, over all lives."""
    cell = Cell()
    told: set[str] = set()
    with History(journal) as history:
        for record in history.records():
            if record.body.due is not None:
                cell.forget_due(record.body.due)
            run = cell.apply(record.body, record.at_ms, record.seq)
            told |= {signal.delivery for signal in run.signals if isinstance(signal, DeliveryUnknown)}
            assert not any(isinstance(command, Preview | React) for command in run.commands)
    return told


def play(platform: Platform, tmp_path: Path, kind: str, kills: int) -> set[str]:
    """Live and die, then live to the end; returns what was in doubt at the kills."""
    rng = Random(SEED)
    doubted: set[str] = set()
    journal = tmp_path / "journal"
    with Gateways(tmp_path / "platform", journal, kind) as gateways:
        for _ in range(kills):
            gateways.begin()
            assert not gateways.ended_within(rng.random() * LIFE_S), "a life ended by itself"
            gateways.kill()
            if kind == "deaf" and platform.confirmed:
                doubted |= in_doubt(journal)
        platform.end()
        gateways.begin()
        assert gateways.ended_within(PATIENCE_S), platform.left()
        assert gateways.code() == 0
    assert platform.failure is None
    with History(journal) as history:
        found = history.verify()
    assert found.ok, found
    assert found.records > platform.confirmed
    return doubted


def check_order(platform: Platform) -> None:
    """Answers of one channel are in the order in which the agent gave them."""
    order = {key: n for n, key in enumerate(key for turn in platform.turns() for key in turn.keys)}
    last: dict[str, int] = {}
    for one in platform.seen:
        if one["delivery"] in order:
            assert order[one["delivery"]] > last.get(one["channel"], -1), one
            last[one["channel"]] = order[one["delivery"]]


def check_once(platform: Platform) -> None:
    """Nothing is seen twice, and no quote is used twice."""
    assert max(Counter(one["delivery"] for one in platform.seen).values()) == 1
    quotes = Counter((one["chat"], one["quote"]) for one in platform.seen if one["quote"] is not None)
    assert max(quotes.values()) == 1
    assert {one["delivery"] for one in platform.seen} <= {key for turn in platform.turns() for key in turn.answers}


def test_nothing_is_lost_or_said_twice(platform: Platform, tmp_path: Path) -> None:
    """The platform can say what arrived: every admitted turn has exactly its answers, in order."""
    play(platform, tmp_path, "asked", KILLS)
    check_order(platform)
    check_once(platform)
    seen = {one["delivery"] for one in platform.seen}
    missing = [key for turn in platform.turns() for key in turn.answers if key not in seen]
    assert not missing
    told = {said["turn"]: said for said in platform.told}
    assert {turn.name for turn in platform.turns()} == told.keys()
    assert {said["delivered"] for said in told.values()} == {"yes"}
    assert len(platform.turns()) > KILLS


def test_what_cannot_be_known_is_told(platform: Platform, tmp_path: Path) -> None:
    """The platform cannot say: at most what it had at a kill is in doubt, and each of these is told."""
    doubted = play(platform, tmp_path, "deaf", max(4, KILLS // 2))
    check_order(platform)
    check_once(platform)
    seen = {one["delivery"] for one in platform.seen}
    unknown = taken_as_unknown(tmp_path / "journal")
    assert unknown == doubted
    told = {said["turn"]: said["delivered"] for said in platform.told}
    for turn in platform.turns():
        for key in turn.answers:
            assert key in seen or key in unknown, key
        final = turn.answers[-1]
        if len(turn.answers) == 1:
            assert told[turn.name] == ("unknown" if final in unknown else "yes"), turn.name
