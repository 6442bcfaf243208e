"""The simulator: one seed is one run, and says everything about it; a breach is shrunk to a short script.

A run draws settings and steps from the seed, plays each step at once, and lets the oracle judge. Afterwards the
platform settles whatever it still holds and time passes until everything must have ended. The same seed makes
the same run on every machine: nothing here depends on hashes, the wall clock or the order of a set.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine.lab.rules import RULES
from turnkeeper.engine.lab.simulation.agent import agent_moves
from turnkeeper.engine.lab.simulation.faults import FAULTS, Faults, FaultsName, advance, config_for
from turnkeeper.engine.lab.simulation.habits import CRAMMED, next_of_habit
from turnkeeper.engine.lab.simulation.platform import Quirks
from turnkeeper.engine.lab.simulation.player import Player, Raw
from turnkeeper.engine.lab.simulation.script import Script
from turnkeeper.engine.lab.simulation.shrinking import shrink
from turnkeeper.engine.lab.simulation.ties import TIED, difference, expected
from turnkeeper.engine.lab.simulation.users import again, open_turn, rewind_loop, users_move
from turnkeeper.engine.lab.simulation.world import Chat, Dice, World

if TYPE_CHECKING:
    from turnkeeper.engine.lab.runtime import RuntimeMaker

__all__ = ["Simulated", "finish", "kind_of", "play", "rows_of_rules", "shrunk", "simulate_seed"]

STEPS = 45
"""Steps of a run, at most; then everything ends."""
OWNERS = ("turnkeeper.engine.chat.", "turnkeeper.engine.turn.", "turnkeeper.engine.channel.")
Move = Callable[[World, Chat], Raw | None]
LONG_MS = 95_000_000
"""More than a question, a turn and a queue may last."""


class Simulated(msgspec.Struct):
    """What a seed led to."""

    seed: int
    script: Script
    breaches: list[str]
    rows: set[tuple[str, str]]
    """(table, row) of every decision."""
    signals: set[str]
    steps: int = 0


def rows_of_rules() -> set[tuple[str, str]]:
    """List (table, row) of every rule of chat, turn and channel: what seeds together must reach."""
    tables = [rule.table for rule in RULES if rule.table.facts.__module__.startswith(OWNERS)]
    return {(table.name, row.name) for table in tables for row in table.rows}


def simulate_seed(
    seed: int,
    *,
    steps: int = STEPS,
    paranoid: bool | None = None,
    faults: FaultsName = "some",
    maker: RuntimeMaker | None = None,
) -> Simulated:
    """Run one seed; a breach ends it.

    Args:
        seed: says everything about the run.
        steps: so many at most.
        paranoid: check that no step changes the state it was given; absent: one seed in sixteen does.
        faults: how much goes wrong.
        maker: makes the runtime; the plain cell if absent.

    """
    rng = Random(seed)
    dice = Dice(rng)
    config = config_for(dice)
    crammed = dice.chance(4)
    if crammed:
        config["limits"] = {**config.get("limits", {}), **CRAMMED}
    poisoned = dice.chance(6)
    quirks = Quirks(not dice.chance(70 if poisoned else 15), dice.chance(20))
    careful = seed % 16 == 0 if paranoid is None else paranoid
    player = Player(config, paranoid=careful, quirks=quirks, maker=maker)
    try:
        world = World(rng, player, 2 if dice.chance(8) else 1)
        mix = Mix(FAULTS[faults], calm=world.chance(FAULTS[faults].calm_percent))
        world.forgetful, world.poisoned, world.crammed = world.chance(6), poisoned, crammed
        world.answers_rewinds = not quirks.rewinds_at_once
        made = _made(world, mix, rng.randrange(10, steps))
        finish(player)
    finally:
        player.close()
    script = Script(config, tuple(made), quirks)
    _compare(player, script, maker)
    return Simulated(seed, script, player.breaches, player.rows, player.signals, player.played)


def _made(world: World, mix: Mix, steps: int) -> list[Raw]:
    """Draw and play so many steps, up to a breach."""
    made: list[Raw] = []
    for _ in range(steps):
        raw = mix.next(world)
        made.append(raw)
        world.player.play(raw)
        if world.player.breaches:
            break
        world.learn()
    return made


class Mix:
    """What a run is drawn from."""

    def __init__(self, faults: Faults, *, calm: bool) -> None:
        self._mood = faults.mood
        self._calm = calm
        self._well = not faults.moves
        wrong = faults.moves[:1] if calm else faults.moves
        self._moves = (*MOVES, *((weight, _alone(move)) for weight, move in wrong))

    def next(self, world: World) -> Raw:
        """Draw the next step."""
        while True:
            chat = world.chats[0] if len(world.chats) == 1 else world.pick(world.chats)
            habit = next_of_habit(world, chat, well=self._well)
            if habit is not None:
                return habit
            if not chat.turns:
                raw = open_turn(world, chat)
            elif world.forgetful and chat.again:
                raw = again(world, chat)
            elif world.poisoned and world.chance(60):
                raw = rewind_loop(world, chat)
            else:
                raw = world.weighted(self._moves)(world, chat)
            if raw is not None:
                return self._with_mood(world, raw)

    def _with_mood(self, world: World, raw: Raw) -> Raw:
        """Add how the platform settles what the step sends."""
        kind = next(iter(raw))
        if kind in UNMOODY or (self._calm and kind != "reply"):
            return raw
        mood = self._mood(world)
        return raw if mood is None else {**raw, "deliver": mood}


def _alone(move: Callable[[World], Raw | None]) -> Move:
    return lambda world, _: move(world)


UNMOODY = frozenset({"settle", "crash", "reload"})
MOVES: tuple[tuple[int, Move], ...] = (
    (26, users_move),
    (40, agent_moves),
    (16, _alone(advance)),
)
"""What happens whatever goes wrong."""


def finish(player: Player) -> None:
    """Let everything end: the platform answers, time passes, and the oracle asks what never came."""
    if player.breaches:
        return
    player.judge()
    player.released()
    for span_ms in (1000, 60_000, 700_000, LONG_MS):
        while held := player.platform.held():
            player.play({"settle": {"delivery": held[0], "outcome": "sent", "chat": held[0].split(":")[1]}})
        player.play({"advance": span_ms})
    player.judge(ended=True)


def play(script: Script, maker: RuntimeMaker | None = None) -> Player:
    """Play a script again, to its end or to a breach."""
    player = _played(script, maker)
    _compare(player, script, maker)
    return player


def _compare(player: Player, script: Script, maker: RuntimeMaker | None) -> None:
    """Find a breach if what was shown on another runtime is not what the plain cell shows."""
    if maker is None or player.breaches or any("during" in raw for raw in script.steps):
        return
    cell = _played(script, TIED).platform
    differs = difference(player.platform, cell)
    if differs:
        player.breaches.append(differs)
        player.steps.append(expected(cell))


def _played(script: Script, maker: RuntimeMaker | None) -> Player:
    player = Player(script.config, quirks=script.quirks, maker=maker)
    try:
        for raw in script.steps:
            player.play(raw)
            if player.breaches:
                player.judge()
                return player
        finish(player)
    finally:
        player.close()
    return player


def shrunk(found: Simulated, maker: RuntimeMaker | None = None) -> Script:
    """Return the shortest script found that still shows the first breach of a run."""
    first = kind_of(found.breaches)

    def fails(script: Script) -> bool:
        return kind_of(play(script, maker).breaches) == first

    return shrink(found.script, fails)


def kind_of(breaches: list[str]) -> str:
    """Return what kind of breach came first: the words before the ids."""
    if not breaches:
        return ""
    kind, _, rest = breaches[0].partition(":")
    return f"{kind}:{rest.split()[0]}" if kind == "set aside" else kind
