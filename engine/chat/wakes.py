"""Pending wakes, and what a turn that they open is for (RULES-answers b, c).

Wakes wait until a turn opens; then all of them are consumed together and merged: the channel is that of the
newest addressed one, the message only what every one of them names. While quiesced they park, one per key;
nothing that parked is consumed before resume.
"""

from __future__ import annotations

import msgspec

from turnkeeper.engine.chat.answer_tables import (
    MERGE_CHANNEL,
    MERGE_MESSAGE,
    From,
    MergeChannelFacts,
    MergeMessageFacts,
)
from turnkeeper.engine.chat.state import ChatState, Waking
from turnkeeper.engine.events import Quiesced, Resumed, Wake
from turnkeeper.engine.ids import ChannelRef, MessageId, same_message
from turnkeeper.engine.protocol import Answers, Draft
from turnkeeper.engine.signals import LimitReached

__all__ = ["consume", "is_for", "merge", "on_quiesced", "on_resumed", "on_wake", "queue"]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]


def on_wake(draft: ChatDraft, event: Wake) -> None:
    """Queue a demand to run that is for no message."""
    queue(draft, Waking(event.reason, draft.state.tick, channel=event.channel, addressed=event.addressed))


def queue(draft: ChatDraft, wake: Waking) -> None:
    """Queue a wake; while quiesced it parks, and replaces the parked one of the same key."""
    pending = draft.state.wakes
    if draft.state.quiesced:
        wake = replace(wake, parked=True)
        pending = _collapsed(pending, wake)
    limit = draft.at.policy.limits.wakes
    if len(pending) >= limit:
        draft.signal(LimitReached(chat=draft.state.chat, limit="wakes"))
        pending = _shortened(pending)
    draft.set(wakes=(*pending, wake))


def _collapsed(pending: tuple[Waking, ...], wake: Waking) -> tuple[Waking, ...]:
    """Leave out the parked wake that this one stands for: same reason, address, channel and message (Q2 to Q5)."""
    return tuple(kept for kept in pending if not (kept.parked and _key(kept) == _key(wake)))


def _key(wake: Waking) -> tuple[str, bool, ChannelRef | None, str | None]:
    return (wake.reason, wake.addressed, wake.channel, None if wake.message is None else str(wake.message))


def _shortened(pending: tuple[Waking, ...]) -> tuple[Waking, ...]:
    """Make room by merging the two oldest: the message is lost rather than ever wrong."""
    first, second, *rest = pending if len(pending) > 1 else (*pending, *pending)
    answers, addressed, _ = _merged((first, second))
    both = replace(
        second,
        reason="merged",
        channel=answers.channel,
        message=answers.message,
        participant=answers.participant,
        addressed=addressed,
        event_id="",
    )
    return (both, *rest)


def is_for(wake: Waking, channel: ChannelRef | None, message: MessageId | None) -> bool:
    """Say whether a wake is for this message of this channel."""
    return wake.channel == channel and same_message(wake.message, message)


def consume(draft: ChatDraft) -> tuple[Waking, ...]:
    """Take every wake that is not parked; what parked stays."""
    taken = tuple(wake for wake in draft.state.wakes if not wake.parked)
    draft.set(wakes=tuple(wake for wake in draft.state.wakes if wake.parked))
    return taken


def merge(draft: ChatDraft, taken: tuple[Waking, ...]) -> tuple[Answers, bool]:
    """Merge wakes into what the turn answers, and whether somebody addressed the agent (tables MERGE)."""
    answers, addressed, decisions = _merged(taken)
    for decision in decisions:
        draft.decided(decision)
    return answers, addressed


def _merged(taken: tuple[Waking, ...]) -> tuple[Answers, bool, list]:  # type: ignore[type-arg]
    placed = [wake for wake in taken if wake.channel is not None]
    called = [wake for wake in placed if wake.addressed]
    where = MERGE_CHANNEL.decide(MergeChannelFacts(bool(called), bool(placed)))
    winner = None
    if where.verdict is From.ADDRESSED:
        winner = called[-1]
    elif where.verdict is From.NEWEST:
        winner = placed[-1]
    first = taken[0] if taken else None
    named = bool(taken) and all(wake.message is not None for wake in taken)
    equal = first is not None and all(is_for(wake, first.channel, first.message) for wake in taken)
    what = MERGE_MESSAGE.decide(MergeMessageFacts(named, equal))
    keeps = what.verdict is From.ALL and winner is not None
    answers = Answers(
        winner.channel if winner is not None else None,
        winner.message if keeps and winner is not None else None,
        winner.participant if keeps and winner is not None else None,
    )
    return answers, winner is not None and winner.addressed, [where, what]


def on_quiesced(draft: ChatDraft, _: Quiesced) -> None:
    """Maintenance begins: everything pending parks."""
    draft.set(quiesced=True, wakes=tuple(replace(wake, parked=True) for wake in draft.state.wakes))


def on_resumed(draft: ChatDraft, _: Resumed) -> None:
    """Maintenance ends: what parked merges into the next start."""
    draft.set(quiesced=False, wakes=tuple(replace(wake, parked=False) for wake in draft.state.wakes))
