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
from turnkeeper.engine.table import Decision

__all__ = [
    "Merged",
    "consume",
    "is_for",
    "merge",
    "merged",
    "on_quiesced",
    "on_resumed",
    "on_wake",
    "queue",
    "withdraw",
]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]
DELIVERED = frozenset({"message", "edit", "merged"})
"""The reasons of wakes that a delivery made; a retry of the same message is none of them."""


class Merged(msgspec.Struct, frozen=True, gc=False):
    """What several wakes come to."""

    answers: Answers
    addressed: bool
    rows: tuple[Decision[From], ...]


def on_wake(draft: ChatDraft, event: Wake) -> None:
    """Queue a demand to run that is for no message; a subagent is run by its parent alone."""
    if not draft.state.ephemeral:
        queue(draft, Waking(event.reason, draft.state.tick, channel=event.channel, addressed=event.addressed))


def queue(draft: ChatDraft, wake: Waking) -> None:
    """Queue a wake; while quiesced it parks, and replaces the parked one of the same key."""
    pending = draft.state.wakes
    pending = _parked(pending, wake) if draft.state.quiesced else (*pending, wake)
    limit = draft.at.policy.limits.wakes
    if len(pending) > limit:
        draft.signal(LimitReached(chat=draft.state.chat, limit="wakes"))
    while len(pending) > limit:
        pending = _shortened(pending)
    draft.set(wakes=pending)


def _parked(pending: tuple[Waking, ...], wake: Waking) -> tuple[Waking, ...]:
    """Park a wake in place of the parked one that it stands for (Q2 to Q5)."""
    rest = (kept for kept in pending if not (kept.parked and _key(kept) == _key(wake)))
    return (*rest, replace(wake, parked=True))


def _key(wake: Waking) -> tuple[str, bool, ChannelRef | None, str]:
    """Return the quiesce key: reason, address, channel and message; without a message its own occurrence (Q7)."""
    what = wake.occurrence if wake.message is None else f"message {wake.message}"
    return (wake.reason, wake.addressed, wake.channel, what)


def _shortened(pending: tuple[Waking, ...]) -> tuple[Waking, ...]:
    """Make room by merging the two oldest: the message is lost rather than ever wrong."""
    first, second, *rest = pending
    done = merged((first, second))
    both = replace(
        second,
        reason="merged",
        channel=done.answers.channel,
        message=done.answers.message,
        participant=done.answers.participant,
        addressed=done.addressed,
        occurrence="",
    )
    return (both, *rest)


def is_for(wake: Waking, channel: ChannelRef | None, message: MessageId | None) -> bool:
    """Say whether a wake is for this message of this channel."""
    return wake.channel == channel and same_message(wake.message, message)


def withdraw(
    draft: ChatDraft, channel: ChannelRef | None, message: MessageId | None, occurrence: str = ""
) -> tuple[Waking, ...]:
    """Withdraw the wakes that this occurrence, or deliveries of this message, made; returns them (H9, H10, Q7)."""
    mine = tuple(
        wake
        for wake in draft.state.wakes
        if (occurrence and wake.occurrence == occurrence)
        or (wake.reason in DELIVERED and is_for(wake, channel, message))
    )
    draft.set(wakes=tuple(wake for wake in draft.state.wakes if wake not in mine))
    return mine


def consume(draft: ChatDraft) -> tuple[Waking, ...]:
    """Take every wake that is not parked; what parked stays."""
    taken = tuple(wake for wake in draft.state.wakes if not wake.parked)
    draft.set(wakes=tuple(wake for wake in draft.state.wakes if wake.parked))
    return taken


def merge(draft: ChatDraft, taken: tuple[Waking, ...]) -> tuple[Answers, bool]:
    """Merge wakes into what the turn answers, and whether somebody addressed the agent (tables MERGE)."""
    done = merged(taken)
    for decision in done.rows:
        draft.decided(decision)
    return done.answers, done.addressed


def merged(taken: tuple[Waking, ...]) -> Merged:
    """Decide what these wakes come to; the newest is the last."""
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
    if winner is None:
        return Merged(Answers(), addressed=False, rows=(where, what))
    keeps = what.verdict is From.ALL
    answers = Answers(winner.channel, winner.message if keeps else None, _author(taken, winner) if keeps else None)
    return Merged(answers, winner.addressed, (where, what))


def _author(taken: tuple[Waking, ...], winner: Waking) -> str | None:
    """Return who wrote the message that they all name, if any of them says so."""
    known = [wake.participant for wake in (*taken, winner) if wake.participant is not None]
    return known[-1] if known else None


def on_quiesced(draft: ChatDraft, _: Quiesced) -> None:
    """Maintenance begins: everything pending parks."""
    pending: tuple[Waking, ...] = ()
    for wake in draft.state.wakes:
        pending = _parked(pending, wake)
    draft.set(quiesced=True, wakes=pending)


def on_resumed(draft: ChatDraft, _: Resumed) -> None:
    """Maintenance ends: what parked merges into the next start."""
    draft.set(quiesced=False, wakes=tuple(replace(wake, parked=False) for wake in draft.state.wakes))
