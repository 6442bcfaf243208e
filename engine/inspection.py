"""Looking into a chat: what its owners know, as plain values, ids and counts only, never text.

The paths are those of PROTOCOL's `state` step: `anchor`, `wakes`, `turns.<id>.status`, `inputs.<id>.state`,
`channels.<ref>.open`, `receipts`. A settled turn stays visible while `limits.settled_turns` allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnkeeper.engine.channel.state import ChannelState
from turnkeeper.engine.chat.state import ChatState, Input, Registered, TurnEntry
from turnkeeper.engine.ids import Address, chat_at, turn_at
from turnkeeper.engine.turn.state import TurnState

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Cell

__all__ = ["inspect_chat", "queued"]


def inspect_chat(cell: Cell, chat: str) -> dict[str, Any]:
    """Return what is known of a chat; an empty map for a chat that does not exist."""
    cell.wake(chat)
    owner = cell.owners.get(chat_at(chat))
    if owner is None:
        return {}
    state: ChatState = owner.state
    turns = _turns_of(cell, state)
    channels = _channels_of(cell, state)
    anchor = state.anchor
    return {
        "chat": chat,
        "home": None if state.home is None else str(state.home),
        "ephemeral": state.ephemeral,
        "quiesced": state.quiesced,
        "anchor": None if anchor is None else {"channel": str(anchor.channel), "message": anchor.message},
        "wakes": len(state.wakes),
        "turns": {key: _turn(entry, turns.get(key)) for key, entry in state.turns.items()},
        "inputs": {key: _input(entry) for key, entry in state.ledger.items()},
        "channels": _channels(state, channels),
        "receipts": sum(len(one.receipts) for one in channels.values()),
    }


def queued(cell: Cell, chat: str) -> list[str]:
    """List the deliveries that wait or are out in the channels of a chat."""
    found: list[str] = []
    cell.wake(chat)
    owner = cell.owners.get(chat_at(chat))
    if owner is None:
        return found
    for state in _channels_of(cell, owner.state).values():
        items = (*(() if state.out is None else (state.out,)), *state.queue)
        found += [item.delivery for item in items]
        found += state.loose
    return found


def _channels_of(cell: Cell, state: ChatState) -> dict[str, ChannelState]:
    """Return the states of the channels that the chat uses, by name."""
    owners = ((name, cell.owners.get(Address("channel", state.chat, name))) for name in state.places)
    return {name: owner.state for name, owner in owners if owner is not None}


def _turns_of(cell: Cell, state: ChatState) -> dict[str, TurnState]:
    """Return the states of the turns that still live, by id."""
    owners = ((turn_id, cell.owners.get(turn_at(state.chat, turn_id))) for turn_id in state.turns)
    return {turn_id: owner.state for turn_id, owner in owners if owner is not None}


def _turn(entry: TurnEntry, state: TurnState | None) -> dict[str, Any]:
    return {
        "status": "settled" if entry.status == "settled" else "open" if entry.status == "open" else "settling",
        "source": entry.source,
        "outcome": entry.outcome or None,
        "replies": entry.replies,
        "in_flight": 0 if state is None else _in_flight(state),
        "channel": None if entry.answers.channel is None else str(entry.answers.channel),
        "message": entry.answers.message,
        "speech": None if entry.speech is None else str(entry.speech),
        "quote": None if state is None else state.quote.state,
        "seen": state is not None and state.seen,
        "ends": None if state is None else state.ending,
        "questions": 0 if state is None else len(state.questions),
    }


def _in_flight(state: TurnState) -> int:
    """Count what is out for a turn: replies, and the fallback or rescue that it speaks."""
    return len(state.flights) + (state.spoken is not None and not state.speech_outcome)


def _input(entry: Input) -> dict[str, Any]:
    return {
        "state": entry.state,
        "source": entry.source,
        "into": entry.into,
        "merged": entry.merged or None,
        "quote": entry.quote.state,
    }


def _channels(state: ChatState, owned: dict[str, ChannelState]) -> dict[str, Any]:
    names = dict.fromkeys([*state.channels, *owned])
    return {name: _channel(state.channels.get(name), owned.get(name)) for name in names}


def _channel(known: Registered | None, state: ChannelState | None) -> dict[str, Any]:
    return {
        "open": known is not None and known.open,
        "inbound_only": known is not None and known.inbound_only,
        "queue": 0 if state is None else len(state.queue),
        "out": None if state is None or state.out is None else state.out.delivery,
        "phase": None if state is None or state.out is None else state.out.phase,
        "preview": None if state is None or state.preview is None else state.preview.turn_id,
        "unknown": 0 if state is None else len(state.unknown),
        "receipts": 0 if state is None else len(state.receipts),
    }
