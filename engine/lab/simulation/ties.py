"""The whole engine beside the plain cell: the same script must show users the same, command by command.

They differ in one thing. On the engine a hand-over waits for a commit and for its turn, and an answer to
`reconcile` for the platform, so a deadline of the same millisecond comes first; the cell hands over at once. Both
are orders that the rules must stand, and the explorer plays either. Here the cell takes the engine's order, and
nothing is left that may differ. Where the process dies within a step there is nothing to compare: the engine
commits records together that the cell commits one by one, so another record is the last.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnkeeper.engine.commands import Ack, Command, React, Reconcile
from turnkeeper.engine.journal import Body, DoneBody
from turnkeeper.engine.lab.matching import plain
from turnkeeper.engine.lab.runtime import CellRuntime
from turnkeeper.engine.recovery import answer_to

if TYPE_CHECKING:
    from collections.abc import Collection

    from turnkeeper.engine.lab.platform import Platform
    from turnkeeper.engine.lab.runtime import RuntimeMaker

__all__ = ["TIED", "difference", "expected", "shown"]


class TiedRuntime(CellRuntime):
    """The plain cell, with deadlines ahead of the hand-overs and answers of their instant."""

    def _hand_over(self, command: Command) -> None:
        self._fire()
        if not isinstance(command, Reconcile):
            super()._hand_over(command)
            return
        answer = self._platform.reconcile(command.delivery)
        self._fire()
        self._run(Body(event=answer_to(command, answer)))
        self._run(Body(done=DoneBody(command.id)))

    def _fire(self) -> None:
        while (body := self.cell.take_due(self.now_ms())) is not None:
            self._run(body)


TIED: RuntimeMaker = partial(TiedRuntime, paranoid=False)
"""Makes the cell that an engine is compared with."""


def shown(platform: Platform) -> dict[str, list[dict[str, Any]]]:
    """Return what a platform was told to do, by chat; ids are left out, they number records.

    Reactions are told apart: while one is on its way the next waits for it, and what goes to a channel passes both.
    """
    told: dict[str, list[dict[str, Any]]] = {}
    for command in platform.performed:
        if not isinstance(command, Reconcile):
            lane = f"reactions of {command.chat}" if isinstance(command, React) else command.chat
            told.setdefault(lane, []).append({"type": _tag(command), **_fields(command)})
    return told


def _alone(platform: Platform) -> bool:
    """Say whether all was for one chat."""
    return len({command.chat for command in platform.performed if not isinstance(command, Reconcile)}) <= 1


def difference(engine: Platform, cell: Platform) -> str:
    """Return the first command that is not the same on both; empty if there is none.

    Between two chats there is no order, so that the platform's numbers for their messages may be exchanged.
    """
    here, there = shown(engine), shown(cell)
    if not _alone(cell):
        here, there = _unnumbered(here), _unnumbered(there)
    for chat in sorted(here.keys() | there.keys()):
        ours, theirs = here.get(chat, []), there.get(chat, [])
        for at in range(max(len(ours), len(theirs))):
            pair = [repr(side[at]) if at < len(side) else "nothing" for side in (ours, theirs)]
            if pair[0] != pair[1]:
                return f"differs from the cell: command {at + 1} of {chat} is {pair[0]}, on the cell {pair[1]}"
    return ""


def _unnumbered(told: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {chat: [{**fields, "message": None} for fields in commands] for chat, commands in told.items()}


def expected(cell: Platform) -> dict[str, Any]:
    """Write what a platform was told as an `expect` step."""
    alone = _alone(cell)
    free = {"id"} if alone else {"id", "message"}
    acks = [_fields(one, free) for one in cell.performed if isinstance(one, Ack)]
    rest = [{_tag(one): _fields(one, free)} for one in cell.performed if not isinstance(one, Ack | Reconcile)]
    reacts = any(isinstance(one, React) for one in cell.performed)
    return {"expect": rest, "acks": acks, "ordered": alone and not reacts}


def _tag(command: Command) -> str:
    return str(type(command).__struct_config__.tag)


def _fields(command: Command, free: Collection[str] = ("id",)) -> dict[str, Any]:
    return {name: value for name, value in plain(command).items() if name not in free}
