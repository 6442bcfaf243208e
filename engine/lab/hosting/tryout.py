"""Trying out a gateway: random users and agents, a fake platform that fails, and the host's own gateway between.

Each seed is a story of its own and the same one everywhere. What users saw is compared with what the engine asked
for and what the gateway told; the simulator's oracle judges the rest. The first story that goes wrong is shrunk.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine.commands import Ack, Command, Edit, Preview, React, Reconcile, Rewind, Send, Settleable
from turnkeeper.engine.events import Settled
from turnkeeper.engine.lab.hosting.fake import FakeChat
from turnkeeper.engine.lab.hosting.witness import complaints
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.lab.simulation.agent import agent_moves
from turnkeeper.engine.lab.simulation.faults import advance
from turnkeeper.engine.lab.simulation.platform import Quirks, WatchedPlatform
from turnkeeper.engine.lab.simulation.player import Player, Raw
from turnkeeper.engine.lab.simulation.script import Script
from turnkeeper.engine.lab.simulation.shrinking import shrink
from turnkeeper.engine.lab.simulation.users import open_turn, users_move
from turnkeeper.engine.lab.simulation.world import Chat, World
from turnkeeper.engine.lab.trace import describe, moment_of

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.ports import Gateway

__all__ = ["GatewayMaker", "Tried", "try_gateway"]

GatewayMaker = Callable[[FakeChat], "Gateway"]
"""Makes the host's gateway over the fake platform; called once a story."""
STEPS = 30
SPANS_MS = (1000, 60_000, 700_000, 95_000_000)
MOVES: tuple[tuple[int, Callable[[World, Chat], Raw | None]], ...] = (
    (30, users_move),
    (50, agent_moves),
    (20, lambda world, _: advance(world)),
)


class Tried(msgspec.Struct):
    """What a gateway did with so many stories."""

    stories: int
    complaints: list[str] = []
    seed: int | None = None
    """The first story that went wrong."""
    steps: tuple[Raw, ...] = ()
    """It, without what does not matter, in the language of scenario files."""
    transcript: list[str] = []

    def __str__(self) -> str:
        """Say it in lines."""
        if not self.complaints:
            return f"{self.stories} stories, nothing to complain of"
        return "\n".join([*self.transcript, "", f"seed {self.seed}, {len(self.steps)} steps:", *self.complaints])


class HostPlatform(WatchedPlatform):
    """Hands what it is told to perform to the host's gateway, and settles as that tells."""

    def __init__(self, watch: Callable[[Command], None], gateway: Gateway, chat: FakeChat, found: list[str]) -> None:
        super().__init__(watch, Quirks())
        self._gateway = gateway
        self._chat = chat
        self._found = found

    def _operate(self, command: Settleable) -> None:
        before = len(self._chat.bubbles)
        try:
            told = self._called(command)
        except Exception as error:  # noqa: BLE001 - what the engine does: a gateway that raises has failed
            told = msgspec.structs.replace(self._settled(command, "failed"), reason=type(error).__name__)
        settled = told if isinstance(told, Settled) else None
        self._found += complaints(command, self._chat.bubbles[before:], settled)
        if settled is not None:
            self._answer(command, settled)

    def perform(self, command: Command) -> None:
        """Hand the command over; what is settled goes the way of `_operate`."""
        super().perform(command)
        if not isinstance(command, Send | Edit | Preview | React | Rewind | Reconcile | Ack):
            try:
                self._called(command)
            except Exception as error:  # noqa: BLE001 - the engine would try again until it returns
                self._found.append(f"raised: {describe(command)}: {type(error).__name__}: {error}")

    def _called(self, command: Command) -> object:
        told = self._gateway.perform(command)
        return _awaited(told) if inspect.isawaitable(told) else told


def _awaited(told: Any) -> object:  # noqa: ANN401 - whatever the gateway awaits
    async def wait() -> object:
        return await told

    return asyncio.run(wait())


class HostPlayer(Player):
    """Plays a script with the host's gateway in the place of the simulated platform."""

    def __init__(self, make: GatewayMaker, seed: int) -> None:
        self.lines: list[str] = []
        super().__init__({})
        self.lines.clear()
        chat = FakeChat(seed)
        self.platform = HostPlatform(self._performed, make(chat), chat, self.breaches)
        self.runtime = CellRuntime(self.clock, self.platform, self._observe, paranoid=False)
        self.start()

    def _observe(self, record: Record, run: Run) -> None:
        super()._observe(record, run)
        moment = moment_of(record, run)
        self.lines += [] if moment is None else moment.lines()

    def end(self) -> None:
        """Let everything end."""
        for span_ms in SPANS_MS:
            if not self.breaches:
                self.play({"advance": span_ms})


def try_gateway(make: GatewayMaker, *, stories: int = 200, first: int = 0) -> Tried:
    """Try out a gateway; stops at the first story that goes wrong, and shrinks it.

    Args:
        make: makes the gateway over a `FakeChat`.
        stories: how many seeds to play.
        first: the first seed.

    """
    for seed in range(first, first + stories):
        steps = _story(make, seed)
        if steps is not None:
            return _shrunk(make, seed, steps, seed - first + 1)
    return Tried(stories)


def _story(make: GatewayMaker, seed: int) -> tuple[Raw, ...] | None:
    """Play one story; returns its steps if it went wrong."""
    rng, player = Random(seed), HostPlayer(make, seed)
    world = World(rng, player, 1)
    made: list[Raw] = []
    for _ in range(rng.randrange(8, STEPS)):
        chat = world.chats[0]
        raw = world.weighted(MOVES)(world, chat) if chat.turns else open_turn(world, chat)
        if raw is None:
            continue
        made.append(raw)
        player.play(raw)
        if player.breaches:
            return tuple(made)
        world.learn()
    player.end()
    return tuple(made) if player.breaches else None


def _replayed(make: GatewayMaker, seed: int, steps: tuple[Raw, ...]) -> HostPlayer:
    player = HostPlayer(make, seed)
    for raw in steps:
        player.play(raw)
        if player.breaches:
            return player
    player.end()
    return player


def _shrunk(make: GatewayMaker, seed: int, steps: tuple[Raw, ...], stories: int) -> Tried:
    kind = _kind(_replayed(make, seed, steps).breaches)
    short = shrink(Script({}, steps), lambda script: _kind(_replayed(make, seed, script.steps).breaches) == kind)
    player = _replayed(make, seed, short.steps)
    return Tried(stories, player.breaches, seed, short.steps, player.lines)


def _kind(found: list[str]) -> str:
    return found[0].partition(":")[0] if found else ""
