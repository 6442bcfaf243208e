"""The load of the benches: conversations at Zipf-distributed chats, as the bodies of journal records.

Made once by a cell, so that every layer replays the same: inbound, turn, fold, reply, handed, settlement,
Stop, deadline, terminal. Most turns answer with one reply; some are folded into, some say something before
the answer, some leave the answer to their Stop text, and some sends fail once.
"""

from __future__ import annotations

import random
from bisect import bisect
from heapq import heappop, heappush
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from turnkeeper.engine import events
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.commands import Ack, Send
from turnkeeper.engine.config import Policy
from turnkeeper.engine.ids import ChannelRef
from turnkeeper.engine.journal import Body, DoneBody, HandedBody

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.events import Event

__all__ = ["START_MS", "Load", "Timed", "World", "make_load", "name_of"]

START_MS = 1_700_000_000_000
WORDS = "the answer depends on what was asked before it and on who asked; here is what the run came to".split()  # noqa: SIM905


class Timed(NamedTuple):
    """One record's body, and when it was sequenced."""

    at_ms: int
    body: Body


class Load(NamedTuple):
    """Bodies in order; the first configures."""

    bodies: list[Timed]
    chats: int

    def kinds(self) -> dict[str, int]:
        """Count the bodies by kind, events by type."""
        found: dict[str, int] = {}
        for _, body in self.bodies:
            event = body.event
            if event is not None:
                kind = str(type(event).__struct_config__.tag)
            else:
                kind = next(name for name in body.__struct_fields__ if getattr(body, name) is not None)
            found[kind] = found.get(kind, 0) + 1
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def name_of(number: int) -> str:
    """Return a chat's name; all have one length."""
    return f"tg:{number:09d}"


class World:
    """Users, an agent and a platform around one cell, on simulated time.

    Args:
        cell: what is driven; its bodies are kept.
        chats: how many chats there are.
        per_s: messages of users a second.
        uniform: every chat is as busy as any other; else the law of Zipf and Mandelbrot, 1 / (rank + 20).

    """

    def __init__(self, cell: Cell, chats: int, *, per_s: float = 4.0, seed: int = 1, uniform: bool = False) -> None:
        # A cell that was used before goes on from there.
        begin_ms = max(START_MS, cell.at.now_ms)
        self.cell = cell
        self.bodies: list[Timed] = []
        self.now_ms = begin_ms
        self.gap_ms = 1000 / per_s
        self.rng = random.Random(seed)
        self.chats = chats
        self._weights = list(accumulate(1.0 if uniform else 1 / (rank + 20) for rank in range(1, chats + 1)))
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._count = begin_ms - START_MS
        self._running: dict[str, tuple[str, list[str]]] = {}
        """The turn of a chat, and what was folded into it."""
        self._message = begin_ms - START_MS
        self._next_ms = float(begin_ms)

    def run(self, until: Callable[[], bool]) -> None:
        """Let users write until it is enough, then let everything settle."""
        while not until():
            self._next_ms += self.rng.expovariate(1) * self.gap_ms
            self._pass_to(int(self._next_ms))
            self._write(name_of(bisect(self._weights, self.rng.random() * self._weights[-1])))
        self._pass_to(None)

    def apply(self, body: Body) -> None:
        """Sequence one body, and do what it commands."""
        self.bodies.append(Timed(self.now_ms, body))
        run = self.cell.apply(body, self.now_ms, len(self.bodies))
        for command in run.commands:
            if isinstance(command, Send):
                self._later(1, lambda sent=command: self._hand_over(sent))
            elif not isinstance(command, Ack):
                self._later(2, lambda done=command: self.apply(Body(done=DoneBody(done.id))))

    def _pass_to(self, until_ms: int | None) -> None:
        while True:
            due_ms = self.cell.next_due_ms()
            planned_ms = self._agenda[0][0] if self._agenda else None
            soonest = min((ms for ms in (due_ms, planned_ms) if ms is not None), default=None)
            if soonest is None or (until_ms is not None and soonest > until_ms):
                break
            self.now_ms = max(self.now_ms, soonest)
            if planned_ms is not None and planned_ms == soonest:
                heappop(self._agenda)[2]()
            else:
                body = self.cell.take_due(self.now_ms)
                if body is not None:
                    self.apply(body)
        self.now_ms = max(self.now_ms, until_ms or 0)

    def _later(self, wait_ms: int, act: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._agenda, (self.now_ms + wait_ms, self._count, act))

    def _post(self, event: Event) -> None:
        self.apply(Body(event=event))

    def _says(self, least: int, most: int) -> str:
        return " ".join(self.rng.choices(WORDS, k=self.rng.randint(least, most)))

    # ------------------------------------------------------------ users and their agent

    def _write(self, chat: str) -> None:
        """A user writes: it opens a turn, or is folded into the one that runs."""
        self._message += 1
        message, where = self._message, ChannelRef("telegram", chat[3:])
        self._post(events.Inbound(chat, where, message, addressed=True, participant="u7", text=self._says(4, 12)))
        running = self._running.get(chat)
        turn_id = f"t{message:08x}"
        if running is None:
            self._running[chat] = (turn_id, [])
            self._later(20, lambda: self._think(chat, turn_id))
        elif len(running[1]) < 4:
            running[1].append(turn_id)
            folded = events.InputFolded(chat, turn_id, "autosteer", channel=where, message=message, participant="u7")
            self._later(25, lambda: self._post(folded))

    def _think(self, chat: str, turn_id: str) -> None:
        self._post(events.TurnOpened(chat, turn_id))
        self._later(150, lambda: self._post(events.Activity(chat, "tool_call")))
        kind = self.rng.random()
        if kind < 0.1:
            self._later(1000, lambda: self._reply(chat, turn_id, interim=True))
        if kind < 0.85:
            self._later(2500, lambda: self._reply(chat, turn_id))
        self._later(3500, lambda: self._stop(chat, turn_id))

    def _reply(self, chat: str, turn_id: str, *, interim: bool = False) -> None:
        folds = [] if interim else self._running[chat][1]
        self._count += 1
        said, named = self._says(15, 40), (turn_id, *folds)
        self._post(events.Reply(chat, f"toolu_{self._count:08x}", turn_id, named, said, interim=interim))

    def _stop(self, chat: str, turn_id: str) -> None:
        self._running.pop(chat, None)
        self._post(events.Stopped(chat, self._says(6, 14), turn_id))

    def _hand_over(self, sent: Send) -> None:
        self.apply(Body(handed=HandedBody(sent.id, sent.delivery, sent.attempt)))
        self._later(80, lambda: self._settle(sent))

    def _settle(self, sent: Send) -> None:
        self._message += 1
        if sent.attempt == 1 and self.rng.random() < 0.03:
            outcome = events.Settled(sent.chat, sent.delivery, "failed", attempt=1, reason="503")
        else:
            outcome = events.Settled(sent.chat, sent.delivery, "sent", attempt=sent.attempt, messages=(self._message,))
        self._post(outcome)


def make_load(
    records: int, chats: int, *, seed: int = 1, uniform: bool = False, cell: Cell | None = None, per_s: float = 4.0
) -> Load:
    """Make a load of at least so many records."""
    world = World(Cell() if cell is None else cell, chats, per_s=per_s, seed=seed, uniform=uniform)
    world.apply(Body(configured=Policy()))
    world.run(lambda: len(world.bodies) >= records)
    return Load(world.bodies, chats)
