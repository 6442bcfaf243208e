"""A scenario taken apart: the moves that keep their order, and the settlements that may be moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine.lab.platform import Directive, Settling
from turnkeeper.engine.lab.steps import CHECKING
from turnkeeper.engine.lab.trace import brief

if TYPE_CHECKING:
    from turnkeeper.engine.lab.scenario import Scenario, Step

__all__ = ["Moves", "Planned", "moves_of"]


class Move(msgspec.Struct, frozen=True):
    """An event, or a step that everything before it comes before: `advance`, `crash`, `reload`."""

    step: Step
    directive: Directive

    @property
    def title(self) -> str:
        """Name it, for an order."""
        step = self.step
        if step.event is not None:
            return brief(step.event)
        return f"advance {step.raw['advance']} ms" if step.kind == "advance" else step.kind


class Planned(msgspec.Struct, frozen=True):
    """A `settle` step of the file, and after how many moves the file has it."""

    settling: Settling
    directive: Directive
    place: int


class Moves(msgspec.Struct, frozen=True):
    """A scenario, taken apart."""

    moves: tuple[Move, ...]
    planned: tuple[Planned, ...]
    chats: tuple[str, ...]

    @property
    def all_taken(self) -> int:
        """The mask of every move."""
        return (1 << len(self.moves)) - 1

    def next(self, taken: int) -> list[int]:
        """List the moves that may come next: the next event of each chat, up to the next step that is no event."""
        found: list[int] = []
        chats: set[str] = set()
        for index, move in enumerate(self.moves):
            if taken >> index & 1:
                continue
            event = move.step.event
            if event is None:
                return found or [index]
            if event.chat not in chats:
                chats.add(event.chat)
                found.append(index)
        return found


def moves_of(scenario: Scenario) -> Moves:
    """Take a scenario apart; what only looks is left out."""
    moves: list[Move] = []
    planned: list[Planned] = []
    chats: dict[str, None] = {}
    default = Directive()
    for step in scenario.steps:
        directive = default if step.deliver is None else step.deliver
        if step.kind == "deliver":
            default = directive
        elif step.settling is not None:
            planned.append(Planned(step.settling, directive, len(moves)))
        elif step.kind not in CHECKING and step.kind != "#":
            moves.append(Move(step, directive))
            if step.event is not None:
                chats[step.event.chat] = None
    return Moves(tuple(moves), tuple(planned), tuple(chats))
