"""Plain calls of the same steps: what the rules alone cost. No undo, ids, confirmation or invariants.

Messages of a run are in one deque, states in one dict. What a cell finds out at run time (who is told of a
hand-over) is prepared, so that nothing but the steps is left.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from turnkeeper.engine.cell import OPENS_CHANNEL, STEPS, Cell
from turnkeeper.engine.channel.state import open_channel
from turnkeeper.engine.chat.state import open_chat
from turnkeeper.engine.ids import Address, channel_at, chat_at
from turnkeeper.engine.protocol import At, Due, Handed, Message, Opened
from turnkeeper.engine.turn.state import open_turn

if TYPE_CHECKING:
    from load import Load

    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.journal import Body

__all__ = ["Call", "run_plainly", "spelled_out"]

Call = tuple[Address, Message, At]


def spelled_out(load: Load, cell: Cell | None = None) -> list[Call]:
    """Return the first message of each run, to whom, and when; a confirmation is no call."""
    cell = Cell() if cell is None else cell
    calls: list[Call] = []
    for seq, (at_ms, body) in enumerate(load.bodies, 1):
        told = _told(body, cell.pending)
        if body.due is not None:
            cell.forget_due(body.due)
        cell.apply(body, at_ms, seq)
        if told is not None:
            calls.append((*told, cell.at))
    return calls


def _told(body: Body, pending: dict[str, Command]) -> tuple[Address, Message] | None:
    if body.event is not None:
        return chat_at(body.event.chat), body.event
    if body.due is not None:
        return Address.parse(body.due.chat, body.due.owner), Due()
    if body.handed is not None:
        command: Any = pending[body.handed.id]
        return channel_at(command.chat, command.channel), Handed(body.handed.delivery, body.handed.attempt)
    return None


def run_plainly(calls: list[Call], states: dict[Address, Any]) -> int:
    """Call the steps; returns how many were called."""
    fifo: deque[tuple[Address, Message]] = deque()
    steps = 0
    for to, first, at in calls:
        fifo.append((to, first))
        while fifo:
            address, message = fifo.popleft()
            state = states.get(address)
            if state is None:
                address, state = _opened(address, message, at, states)
                if state is None:
                    continue
            done = STEPS[address.kind](state, message, at)
            steps += 1
            if done.state is None:
                del states[address]
            else:
                states[address] = done.state
            fifo.extend(done.tells)
    return steps


def _opened(address: Address, message: Message, at: At, states: dict[Address, Any]) -> tuple[Address, Any]:
    if address.kind == "channel":
        return address, open_channel(address) if isinstance(message, OPENS_CHANNEL) else None
    if isinstance(message, Opened):
        return address, open_turn(address, at.policy, at.now_ms)
    chat = chat_at(address.chat)
    return chat, states.get(chat) or open_chat(chat)
