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
from turnkeeper.engine.turn.state import Consumption, Flight, Kept, Reply, TurnState, answers_of

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
    if state.phase == "settled":
        # Its end did not wait (interrupt, loss): the chat told the reply as late.
        return
    if told.outcome != "failed":
        _add(draft, told.delivery, flight, known=told.outcome == "sent")
    elif flight.own and not flight.interim:
        draft.set(kept=Kept(told.delivery, flight, told.permanent))
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
    # A final of unknown fate may have turned out lost while the different text was out.
    final = state.outcome == "final-reply" and any(not one.flight.interim for one in answers_of(state))
    if told.outcome == "failed" and not final:
        finalization.settle(draft, "undelivered")
    else:
        finalization.settle(draft, state.outcome)


def on_corrected(draft: TurnDraft, told: Corrected) -> None:
    """What was recorded as unknown, or kept as failed, is known now."""
    state = draft.state
    if told.outcome == "sent" and state.kept is not None and state.kept.delivery == told.delivery:
        _arrived_after_all(draft, state.kept)
        return
    flight = _unknown(state, told.delivery)
    if flight is None:
        return
    if told.outcome == "unknown":
        _let_go(draft, told.delivery)
    else:
        _amend(draft, told, flight)


def _amend(draft: TurnDraft, told: Corrected, flight: Flight) -> None:
    """Confirm the record, or correct it; what is lost after all is sent once if the turn is settled."""
    state, sent = draft.state, told.outcome == "sent"
    if told.delivery == state.speaks:
        draft.set(speech_outcome=told.outcome)
    draft.set(
        replies=_amended(state.replies, told.delivery, sent=sent),
        consumed=_amended(state.consumed, told.delivery, sent=sent),
    )
    if sent:
        _tell_attributed(draft, flight)
    elif state.phase == "open":
        draft.set(quiet_from_ms=draft.at.now_ms)
        if flight.own and not flight.interim and state.kept is None:
            draft.set(kept=Kept(told.delivery, flight, told.permanent))
    elif state.phase == "settled":
        _rescue_once(draft, told, flight)


def _arrived_after_all(draft: TurnDraft, kept: Kept) -> None:
    """A final that was told as failed did arrive: it is the turn's answer, if its end is not decided yet."""
    if draft.state.phase in {"open", "closing"}:
        draft.set(kept=None, ending=None, grace_until_ms=0, quiet_from_ms=draft.at.now_ms)
        _add(draft, kept.delivery, kept.flight, known=True)


def _let_go(draft: TurnDraft, delivery: str) -> None:
    """Nobody will ever say what became of it: it stays unknown, and the turn does not wait for it."""
    state = draft.state
    if delivery == state.speaks:
        draft.set(spoken=None)
    draft.set(replies=_gone(state.replies, delivery), consumed=_gone(state.consumed, delivery))


def _gone(kept: tuple[T, ...], delivery: str) -> tuple[T, ...]:
    return tuple(replace(one, gone=True) if one.delivery == delivery else one for one in kept)


def _unknown(state: TurnState, delivery: str) -> Flight | None:
    if delivery == state.speaks and state.speech_outcome == "unknown":
        return state.spoken
    for one in answers_of(state):
        if one.delivery == delivery and not one.known:
            return one.flight
    return None


def _amended(kept: tuple[T, ...], delivery: str, *, sent: bool) -> tuple[T, ...]:
    if sent:
        return tuple(replace(one, known=True) if one.delivery == delivery else one for one in kept)
    return tuple(one for one in kept if one.delivery != delivery)


def _rescue_once(draft: TurnDraft, told: Corrected, flight: Flight) -> None:
    """Nothing that answers the turn arrived after all: the held-back Stop text, else the reply itself.

    A Stop text that was sent is not held back: it goes again only if it is what was lost, and not for good.
    """
    state = draft.state
    heard = bool(answers_of(state) or state.flights) or state.speech_outcome in {"sent", "unknown"}
    if heard or state.rescued or flight.interim or state.outcome in finalization.NO_RESCUE:
        return
    draft.set(rescued=True)
    text, channel = "", None
    if not state.speaks or (state.speaks == told.delivery and not told.permanent):
        text, channel = finalization.speech(draft, state.ended_by or "stop")
    if text and channel is not None:
        finalization.release_again(draft, Flight(text, channel=channel))
    elif (flight.own or flight.stands_in) and not told.permanent:
        finalization.release_again(draft, replace(flight, channel=flight.channel or state.speech))
