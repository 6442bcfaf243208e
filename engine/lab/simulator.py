"""The simulator: one seed is one run, and says everything about it; a breach is shrunk to a short script.

A run draws settings and steps from the seed, plays each step at once, and lets the oracle judge. Afterwards the
platform settles whatever it still holds and time passes until everything must have ended. The same seed makes
the same run on every machine: nothing here depends on hashes, the wall clock or the order of a set.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from turnkeeper.engine.lab.rules import RULES
from turnkeeper.engine.lab.simulation import faults
from turnkeeper.engine.lab.simulation.agent import agent_moves
from turnkeeper.engine.lab.simulation.platform import Quirks
from turnkeeper.engine.lab.simulation.player import CUT, Player, Raw
from turnkeeper.engine.lab.simulation.script import Script
from turnkeeper.engine.lab.simulation.shrinking import shrink
from turnkeeper.engine.lab.simulation.users import again, open_turn, rewind_loop, users_move
from turnkeeper.engine.lab.simulation.world import Chat, Dice, World

__all__ = ["Simulated", "finish", "kind_of", "play", "rows_of_rules", "shrunk", "simulate_seed"]

STEPS = 45
"""Steps of a run, at most; then everything ends."""
OWNERS = ("turnkeeper.engine.chat.", "turnkeeper.engine.turn.", "turnkeeper.engine.channel.")
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


def simulate_seed(seed: int, *, steps: int = STEPS, paranoid: bool | None = None) -> Simulated:
    """Run one seed; a breach ends it."""
    rng = Random(seed)
    dice = Dice(rng)
    config = faults.config_for(dice)
    poisoned = dice.chance(6)
    quirks = Quirks(not dice.chance(70 if poisoned else 15), dice.chance(20))
    careful = seed % 16 == 0 if paranoid is None else paranoid
    player = Player(config, paranoid=careful, quirks=quirks)
    world = World(rng, player, 2 if dice.chance(8) else 1)
    made: list[Raw] = []
    calm = world.chance(20)
    world.forgetful, world.poisoned = world.chance(6), poisoned
    world.answers_rewinds = not quirks.rewinds_at_once
    for _ in range(rng.randrange(10, steps)):
        raw = _next(world, calm=calm)
        made.append(raw)
        player.play(raw)
        if player.breaches:
            break
        world.learn()
    finish(player)
    script = Script(config, tuple(made), quirks)
    return Simulated(seed, script, player.breaches, player.rows, player.signals, player.played)


def _next(world: World, *, calm: bool) -> Raw:
    """Draw the next step."""
    while True:
        chat = world.chats[0] if len(world.chats) == 1 else world.pick(world.chats)
        if not chat.turns:
            raw = open_turn(world, chat)
        elif world.forgetful and chat.again:
            raw = again(world, chat)
        elif world.poisoned and world.chance(60):
            raw = rewind_loop(world, chat)
        else:
            raw = world.weighted(CALM if calm else MOVES)(world, chat)
        if raw is not None:
            return _with_mood(world, raw, calm=calm)


def _with_mood(world: World, raw: Raw, *, calm: bool) -> Raw:
    """Add how the platform settles what the step sends."""
    kind = next(iter(raw))
    if kind in UNMOODY or (calm and kind != "reply"):
        return raw
    mood = faults.mood(world)
    return raw if mood is None else {**raw, "deliver": mood}


UNMOODY = frozenset({"settle", "crash", "reload", CUT})
CALM: tuple[tuple[int, Callable[[World, Chat], Raw | None]], ...] = (
    (26, users_move),
    (40, agent_moves),
    (16, lambda world, _: faults.advance(world)),
    (13, lambda world, _: faults.settle(world)),
)
MOVES: tuple[tuple[int, Callable[[World, Chat], Raw | None]], ...] = (
    *CALM,
    (2, lambda world, _: faults.crash(world)),
    (2, lambda world, _: faults.cut(world)),
    (1, lambda world, _: {"reload": faults.config_for(world)}),
)


def finish(player: Player) -> None:
    """Let everything end: the platform answers, time passes, and the oracle asks what never came."""
    if player.breaches:
        return
    player.audit()
    player.released()
    for span_ms in (1000, 60_000, 700_000, LONG_MS):
        while held := player.platform.held():
            player.play({"settle": {"delivery": held[0], "outcome": "sent", "chat": held[0].split(":")[1]}})
        player.play({"advance": span_ms})
    player.audit()
    player.oracle.end()


def play(script: Script) -> Player:
    """Play a script again."""
    player = Player(script.config, quirks=script.quirks)
    for raw in script.steps:
        player.play(raw)
        if player.breaches:
            return player
    finish(player)
    return player


def shrunk(found: Simulated) -> Script:
    """Return the shortest script found that still shows the first breach of a run."""
    first = kind_of(found.breaches)

    def fails(script: Script) -> bool:
        return kind_of(play(script).breaches) == first

    return shrink(found.script, fails)


def kind_of(breaches: list[str]) -> str:
    """Return what kind of breach came first: the words before the ids."""
    if not breaches:
        return ""
    kind, _, rest = breaches[0].partition(":")
    return f"{kind}:{rest.split()[0]}" if kind == "set aside" else kind
