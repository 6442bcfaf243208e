"""Many idle chats, each after one settled turn: made once, kept in build/, and shared by the benches.

A few hundred chats live through a turn; the others are their pictures under other names, as a snapshot holds them.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from load import START_MS, World, name_of

from turnkeeper.engine.cell import Cell
from turnkeeper.engine.config import Policy
from turnkeeper.engine.journal import Body
from turnkeeper.engine.picture import ChatPicture, pack
from turnkeeper.engine.protocol import At
from turnkeeper.engine.snapshot import pictures_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LATER_MS", "populate", "population", "sleepers"]

BUILD = Path(__file__).parent.parent / "build" / "bench"
LATER_MS = START_MS + 3_600_000
"""An hour later every window has passed."""
TEMPLATES = 300
SIZE = struct.Struct(">I")


def _templates() -> list[tuple[bytes, bytes]]:
    """Return pictures of chats after one turn, each with the number in its name."""
    from turnkeeper.engine import codec  # noqa: PLC0415

    world = World(Cell(awake_max=1 << 30), 50_000, per_s=1.0, seed=3, uniform=True)
    world.apply(Body(configured=Policy()))
    world.run(lambda: len(world.bodies) >= TEMPLATES * 14)
    found = []
    for chat, picture in pictures_of(world.cell):
        if len(codec.decode(picture, ChatPicture).state.turns) == 1:
            found.append((picture, chat[3:].encode()))
    return sorted(found, key=lambda one: one[1])


def population(chats: int) -> Path:
    """Return the file of a population, made if it is not there."""
    path = BUILD / f"population-{chats}.bin"
    if not path.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        templates = _templates()
        fresh = path.with_suffix(".new")
        with fresh.open("wb") as file:
            for number in range(chats):
                picture, name = templates[number % len(templates)]
                packed = pack(picture.replace(name, b"%09d" % number))
                file.write(SIZE.pack(len(packed)))
                file.write(packed)
        fresh.rename(path)
    return path


def sleepers(chats: int) -> Iterator[tuple[str, bytes]]:
    """Yield (chat, packed picture)."""
    with population(chats).open("rb") as file:
        for number in range(chats):
            (size,) = SIZE.unpack(file.read(SIZE.size))
            yield name_of(number), file.read(size)


def populate(cell: Cell, chats: int, *, awake: int = 0) -> Cell:
    """Let a population sleep in a cell; `awake` of them are kept awake, as in an engine that runs for long."""
    cell.at = At(START_MS, Policy())
    for chat, packed in sleepers(chats):
        cell.asleep[chat] = packed
    cell.chats = chats
    for number in range(chats - min(chats, awake), chats):
        cell.wake(name_of(number))
    cell.at = At(LATER_MS, cell.at.policy)
    return cell
