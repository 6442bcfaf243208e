"""What a settlement does to a turn: its record, its kept failure, and late corrections (RULES-replies A5).

A reply is recorded when it was delivered, or when nobody can say; never on arrival. A non-interim reply of
another owner that names the turn is its "consumed by" text. What was taken as unknown and failed after all
is sent once, if nothing else that answers the turn was sent or is unknown.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from turnkeeper.engine.protocol import Corrected, Draft, Recorded
from turnkeeper.engine.signals import FoldReplyAttributed
from turnkeeper.engine.turn import finalization
from turnkeeper.engine.turn.state import Consumption, Flight, Kept, Reply, TurnState

__all__ = ["on_corrected", "on_recorded"]

T = TypeVar("T", Reply, Consumption)
replace = msgspec.structs.replace
TurnDraft = Draft[TurnState]


def on_recorded(draft: TurnDraft, told: Recorded) -> None:
    """Take in the end of a delivery, then let the end act that waited for it."""
    state = draft.state
    if told.delivery == state.speaks:
        _speech_ended(draft, told)
        return
    flight = state.flights.get(told.delivery)
    if flight is None:
        return
    rest = {key: kept for key, kept in state.flights.items() if key != told.delivery}
    draft.set(flights=rest, quiet_from_ms=draft.at.now_ms)
    if told.outcome != "failed":
        _add(draft, told.delivery, flight, known=told.outcome == "sent")
    elif flight.own and not flight.interim:
        draft.set(kept=Kept(flight, told.permanent))
    if draft.state.phase == "closing" and not rest and draft.state.outcome is not None:
        finalization.settle(draft, draft.state.outcome)
    finalization.resume(draft)


def _add(draft: TurnDraft, delivery: str, flight: Flight, *, known: bool) -> None:
    state = draft.state
    if flight.own:
        draft.set(replies=(*state.replies, Reply(delivery, flight, known)))
        draft.count("replies", flight.row, "true" if flight.interim else "false")
        if known:
            _tell_attributed(draft, flight)
        if known and not flight.interim:
            draft.set(kept=None)
    elif not flight.interim:
        draft.set(consumed=(*state.consumed, Consumption(delivery, flight, known)))


def _tell_attributed(draft: TurnDraft, flight: Flight) -> None:
    """Signal a fold's reply only after it was delivered and recorded."""
    if not flight.folded_from:
        return
    draft.count("fold_replies_attributed", flight.fold_source)
    draft.signal(
        FoldReplyAttributed(
            chat=draft.state.chat,
            echoed_turn_id=flight.folded_from,
            effective_turn_id=draft.state.turn_id,
            source=flight.fold_source,
            interim=flight.interim,
            table="attribution",
            row=flight.row,
        )
    )


def _speech_ended(draft: TurnDraft, told: Recorded) -> None:
    """The fallback or rescue ended, and the turn with it; failed for good is `undelivered`, never delivered."""
    state = draft.state
    draft.set(speech_outcome=told.outcome)
    if state.phase != "settling" or state.outcome is None:
        return
    if told.outcome == "failed" and state.outcome != "final-reply":
        finalization.settle(draft, "undelivered")
    else:
        finalization.settle(draft, state.outcome)


def on_corrected(draft: TurnDraft, told: Corrected) -> None:
    """What was recorded as unknown is known now."""
    state = draft.state
    flight = _unknown(state, told.delivery)
    if flight is None:
        return
    sent = told.outcome == "sent"
    if told.delivery == state.speaks:
        draft.set(speech_outcome=told.outcome)
    draft.set(
        replies=_amended(state.replies, told.delivery, sent=sent),
        consumed=_amended(state.consumed, told.delivery, sent=sent),
    )
    if sent:
        _tell_attributed(draft, flight)
    elif state.phase == "open":
        if flight.own and not flight.interim:
            draft.set(kept=Kept(flight, permanent=False), quiet_from_ms=draft.at.now_ms)
    elif state.phase == "settled":
        _rescue_once(draft, flight)


def _unknown(state: TurnState, delivery: str) -> Flight | None:
    if delivery == state.speaks and state.speech_outcome == "unknown":
        return state.spoken
    for one in (*state.replies, *state.consumed):
        if one.delivery == delivery and not one.known:
            return one.flight
    return None


def _amended(kept: tuple[T, ...], delivery: str, *, sent: bool) -> tuple[T, ...]:
    if sent:
        return tuple(replace(one, known=True) if one.delivery == delivery else one for one in kept)
    return tuple(one for one in kept if one.delivery != delivery)


def _rescue_once(draft: TurnDraft, flight: Flight) -> None:
    """Nothing that answers the turn arrived after all: the held-back Stop text, else the reply itself."""
    state = draft.state
    others = any(not one.flight.interim or one.known for one in (*state.replies, *state.consumed))
    heard = others or state.speech_outcome in {"sent", "unknown"} or state.flights
    if heard or state.rescued or flight.interim or state.outcome in finalization.NO_RESCUE:
        return
    draft.set(rescued=True)
    text, channel = finalization.speech(draft, state.ended_by or "stop")
    if text and channel is not None:
        finalization.release_again(draft, Flight(text, channel=channel))
    elif flight.own or flight.stands_in:
        finalization.release_again(draft, replace(flight, channel=flight.channel or state.speech))
