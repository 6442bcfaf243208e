"""Remembering inside a bound: what leaves before its time is told (ARCHITECTURE, principle 10)."""

from __future__ import annotations

from typing import TypeVar

from turnkeeper.engine.chat.state import ChatState, Outbound
from turnkeeper.engine.horizon import Horizon
from turnkeeper.engine.ids import ChannelRef, same_message, turn_at
from turnkeeper.engine.protocol import Corrected, Draft
from turnkeeper.engine.signals import LimitReached

__all__ = ["channel_of_bubble", "kept", "put_outbound"]

T = TypeVar("T")
ChatDraft = Draft[ChatState]


def kept(draft: ChatDraft, memory: Horizon[T], key: str, value: T, limit: tuple[str, int]) -> Horizon[T]:
    """Return the memory with one entry more; if the oldest had to leave, say which limit decided."""
    name, size = limit
    if key not in memory and len(memory) >= size:
        draft.signal(LimitReached(chat=draft.state.chat, limit=name))
    return memory.put(key, value, size)


def put_outbound(draft: ChatDraft, delivery: str, entry: Outbound) -> None:
    """Remember a delivery; one that is out is never forgotten before one that has ended."""
    known, limit = draft.state.outbound, draft.at.policy.limits.deliveries
    if delivery not in known and len(known) >= limit:
        draft.signal(LimitReached(chat=draft.state.chat, limit="deliveries"))
        ended = next(((key, one) for key, one in known.items() if one.outcome != "in flight"), None)
        if ended is not None:
            known = known.drop(ended[0])
            _let_go(draft, *ended)
    draft.set(outbound=known.put(delivery, entry, max(limit, len(known) + 1)))


def _let_go(draft: ChatDraft, delivery: str, gone: Outbound) -> None:
    """A delivery is forgotten while it is unknown: the turns that wait for its correction wait no longer."""
    if gone.outcome != "unknown":
        return
    for turn_id in dict.fromkeys((*gone.consumers, gone.turn_id)):
        if turn_id:
            draft.tell(turn_at(draft.state.chat, turn_id), Corrected(delivery, "unknown"))


def channel_of_bubble(state: ChatState, message: int | str) -> ChannelRef | None:
    """Return the channel of the newest delivery that made this message."""
    for _, known in reversed(tuple(state.outbound.items())):
        if any(same_message(message, made) for made in known.messages):
            return known.channel
    return None
