"""The end of a turn: what it sends, what it ends as, and the one terminal (RULES-replies A7).

An end that is due waits while anything is in flight, and acts when the count is zero. Before every row but
the first in which a failed final is kept, the agent's own retry is awaited once. A fallback or rescue is
released through the turn's speech channel; the turn settles when that delivery does.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from turnkeeper.engine import commands
from turnkeeper.engine.commands import Outcome
from turnkeeper.engine.ids import ChannelRef, channel_at, chat_at, delivery_key
from turnkeeper.engine.protocol import Decided, Deliver, Draft, TurnSettled
from turnkeeper.engine.signals import (
    CeilingResolved,
    ConsumedAckFallbackRescued,
    FailedReplyRescued,
    FinalizationWaited,
    InterimOnlyFinalRescued,
    QuietFinalize,
    SpeechArchived,
    SpeechUnrouted,
    StopTextSuppressed,
    TurnDeliveryResolved,
    TurnResolvedByStop,
)
from turnkeeper.engine.table import Decision
from turnkeeper.engine.turn.clocks import has_something_to_resolve
from turnkeeper.engine.turn.state import EndCause, Flight, TurnState, answers_of
from turnkeeper.engine.turn.tables import (
    DELIVERY,
    FINAL,
    PROSE,
    DeliveryFacts,
    Failure,
    FinalFacts,
    Prose,
    ProseFacts,
    Resolution,
    Stop,
    Voice,
)

__all__ = ["NO_RESCUE", "act", "living", "release_again", "resume", "settle", "speech"]

TurnDraft = Draft[TurnState]
NO_RESCUE: frozenset[str] = frozenset({"refused", "failed", "interrupted", "lost"})
"""After these nothing more is sent for the turn."""
SAYS_NOTHING: dict[Resolution, Outcome] = {
    Resolution.UNDELIVERED: "undelivered",
    Resolution.CONSUMED: "consumed",
    Resolution.SILENT: "silent",
    Resolution.INTERIM_NOOP: "interim-noop",
}
"""The ends that send nothing, as outcomes."""


class Speech(msgspec.Struct, frozen=True, gc=False):
    """The Stop text that may leave, trimmed, and where it goes."""

    text: str = ""
    channel: ChannelRef | None = None
    decision: Decision[Prose] | None = None
    """The row of PROSE that decided; None: there is no text."""


def act(draft: TurnDraft, cause: EndCause) -> None:
    """An end is due: finalize, or wait for what is in flight."""
    state = draft.state
    if not state.flights:
        _finalize(draft, cause)
        return
    since_ms = draft.at.now_ms if state.ending is None else state.ending_ms
    draft.set(ending=cause, ending_ms=since_ms)


def resume(draft: TurnDraft) -> None:
    """After a settlement: let the end act that waited for it."""
    state = draft.state
    held = bool(state.flights or state.questions or state.grace_until_ms) or state.interrupted_ms is not None
    if state.phase != "open" or state.ending is None or held:
        return
    waited_ms = draft.at.now_ms - state.ending_ms
    draft.signal(FinalizationWaited(chat=state.chat, turn_id=state.turn_id, waited_ms=waited_ms))
    _finalize(draft, state.ending)


def _finalize(draft: TurnDraft, cause: EndCause) -> None:
    """Ask the delivery table and do what it says."""
    state = draft.state
    ceiling = cause in {"idle", "hard"}
    if ceiling and not has_something_to_resolve(state):
        draft.set(ended_by=cause)
        settle(draft, "expired")
        return
    said = _speech(state, cause)
    decision = DELIVERY.decide(_facts(state, said.text))
    if decision.verdict is not Resolution.FINAL_REPLY and _awaits_retry(draft, cause):
        return
    text, channel = _tell_prose(draft, said)
    draft.decided(decision)
    draft.set(ended_by=cause, ending=None, grace_until_ms=0)
    if cause == "quiet":
        draft.signal(QuietFinalize(chat=state.chat, turn_id=state.turn_id), decision)
    elif ceiling:
        draft.signal(CeilingResolved(chat=state.chat, turn_id=state.turn_id), decision)
    _resolve(draft, decision.verdict, text, channel)


def _awaits_retry(draft: TurnDraft, cause: EndCause) -> bool:
    """Await the agent's own retry of a failed final, once a turn; says whether that begins now."""
    state, now = draft.state, draft.at.now_ms
    grace_ms = state.policy.timers.retry_grace_ms
    if state.kept is None or state.grace_used or not grace_ms:
        return False
    draft.set(ending=cause, ending_ms=now, grace_used=True, grace_until_ms=now + grace_ms)
    return True


def _resolve(draft: TurnDraft, verdict: Resolution, text: str, channel: ChannelRef | None) -> None:
    state = draft.state
    match verdict:
        case Resolution.FINAL_REPLY:
            _beside_a_final(draft, text, channel)
        case Resolution.FALLBACK:
            _speak(draft, "fallback", "fallback", text, channel)
        case Resolution.CONSUMED_RESCUE:
            draft.signal(ConsumedAckFallbackRescued(chat=state.chat, turn_id=state.turn_id))
            _speak(draft, "consumed-rescue", "rescue", text, channel)
        case Resolution.INTERIM_RESCUE:
            draft.signal(InterimOnlyFinalRescued(chat=state.chat, turn_id=state.turn_id))
            _speak(draft, "interim-rescue", "rescue", text, channel)
        case Resolution.REPLY_RESCUE:
            if state.kept is not None:
                release_again(draft, state.kept.flight)
        case _:
            draft.count("stop_texts", "equal" if text else "empty")
            settle(draft, SAYS_NOTHING[verdict])


def _beside_a_final(draft: TurnDraft, text: str, channel: ChannelRef | None) -> None:
    """A final reply was delivered: the Stop text stays unsent, or goes as a rescue by policy (table FINAL)."""
    state = draft.state
    said = [reply.flight.text.strip() for reply in state.replies]
    decision = FINAL.decide(FinalFacts(state.policy.finalize.final_reply, bool(text) and text not in said))
    draft.decided(decision)
    match decision.verdict:
        case Voice.RESCUE:
            _speak(draft, "final-reply", "rescue", text, channel)
            return
        case Voice.SUPPRESS:
            final = next(reply.flight.text for reply in reversed(state.replies) if not reply.flight.interim)
            draft.count("stop_texts", "suppressed-different")
            draft.signal(
                StopTextSuppressed(
                    chat=state.chat, turn_id=state.turn_id, stop_length=len(text), reply_length=len(final.strip())
                ),
                decision,
            )
        case Voice.NOTHING:
            draft.count("stop_texts", "equal" if text else "empty")
    settle(draft, "final-reply")


def _stop_text(state: TurnState, cause: EndCause) -> str:
    """Return the Stop text that this end may use, trimmed; one that several turns could own only at a ceiling."""
    stop = state.stop
    if stop is None or (not stop.attributed and cause not in {"idle", "hard"}):
        return ""
    return stop.text.strip()


def _speech(state: TurnState, cause: EndCause) -> Speech:
    """Decide the text that may leave and its channel, by `speech.prose` (table PROSE)."""
    text = _stop_text(state, cause)
    if not text or state.stop is None:
        return Speech()
    prefix = state.stop.channel
    decision = PROSE.decide(ProseFacts(state.policy.speech.prose, prefix is not None))
    match decision.verdict:
        case Prose.LOCUS:
            return Speech(text, state.speech, decision)
        case Prose.PREFIX:
            # A bare id that nobody answers to is no place; the text was not meant for the locus either.
            return Speech(text, prefix if prefix is not None and prefix.server is not None else None, decision)
        case Prose.ARCHIVE:
            return Speech("", None, decision)


def _tell_prose(draft: TurnDraft, said: Speech) -> tuple[str, ChannelRef | None]:
    """Note the row that decided where plain speech goes, and tell what stays in the archive."""
    decision = said.decision
    if decision is not None:
        draft.decided(decision)
        if decision.verdict is Prose.ARCHIVE:
            draft.signal(SpeechArchived(chat=draft.state.chat, turn_id=draft.state.turn_id), decision)
    return said.text, said.channel


def speech(draft: TurnDraft, cause: EndCause) -> tuple[str, ChannelRef | None]:
    """Return the text that may leave, and its channel; told where it is archived."""
    return _tell_prose(draft, _speech(draft.state, cause))


def _facts(state: TurnState, text: str) -> DeliveryFacts:
    finals = [reply for reply in state.replies if not reply.flight.interim]
    interims = [reply for reply in state.replies if reply.flight.interim]
    failed = Failure.NO
    if state.kept is not None:
        failed = Failure.PERMANENT if state.kept.permanent else Failure.TRANSIENT
    return DeliveryFacts(bool(finals), bool(interims), bool(state.consumed), failed, _stop_is(state, text))


def _stop_is(state: TurnState, text: str) -> Stop:
    """Compare the Stop text with what was already said in this turn; only ever to suppress."""
    if not text:
        return Stop.EMPTY
    if text in (one.flight.text.strip() for one in state.consumed):
        return Stop.CONSUMING
    interims = [reply.flight.text.strip() for reply in state.replies if reply.flight.interim]
    return Stop.INTERIM if text in (*interims, "\n\n".join(interims)) else Stop.DIFFERS


def _speak(
    draft: TurnDraft,
    outcome: Outcome,
    purpose: Literal["fallback", "rescue"],
    text: str,
    channel: ChannelRef | None,
) -> None:
    """Release plain speech; with no channel it is not sent, and never moved to the last one used (G14)."""
    state = draft.state
    if channel is None:
        draft.signal(SpeechUnrouted(chat=state.chat, turn_id=state.turn_id, why="no channel"))
        draft.count("speech_unrouted")
        settle(draft, "final-reply" if outcome == "final-reply" else "undelivered")
        return
    draft.count("stop_texts", "sent")
    draft.count("rescues", "final-different" if outcome == "final-reply" else outcome)
    _release(draft, outcome, purpose, Flight(text, channel=channel))


def release_again(draft: TurnDraft, flight: Flight) -> None:
    """Send a failed reply again, in its own channel; `speech.prose` does not concern it."""
    draft.signal(FailedReplyRescued(chat=draft.state.chat, turn_id=draft.state.turn_id))
    draft.count("rescues", "reply-rescue")
    _release(draft, "reply-rescue", "rescue", flight)


def _release(draft: TurnDraft, outcome: Outcome, purpose: Literal["fallback", "rescue"], flight: Flight) -> None:
    state = draft.state
    if flight.channel is None:
        settle(draft, "undelivered")
        return
    key = delivery_key(purpose, state.chat, state.turn_id)
    settled = state.phase == "settled"
    draft.set(phase="settled" if settled else "settling", speaks=key, spoken=flight, speech_outcome="")
    if not settled:
        draft.set(outcome=outcome)
    stop = state.stop
    taken = stop.stop_id if stop is not None and not stop.attributed and flight.text == stop.text.strip() else 0
    draft.tell(
        chat_at(state.chat),
        Decided(state.turn_id, key, flight.channel, outcome, flight.text, flight.files, stop_id=taken),
    )
    draft.tell(
        channel_at(state.chat, flight.channel),
        Deliver(
            key,
            flight.text,
            files=flight.files,
            purpose=purpose,
            turn_id=state.turn_id,
            owned=True,
            source=state.answers.message,
            quotes=True,
        ),
    )


def settle(draft: TurnDraft, outcome: Outcome) -> None:
    """Tell the turn's one terminal, and hand the chat what is left."""
    state = draft.state
    interims = sum(reply.flight.interim for reply in state.replies)
    draft.set(phase="settled", outcome=outcome, ending=None, grace_until_ms=0)
    draft.count("turns_settled", outcome)
    draft.signal(TurnDeliveryResolved(chat=state.chat, turn_id=state.turn_id, outcome=outcome))
    if state.ended_by == "stop" and state.stop is not None:
        draft.signal(
            TurnResolvedByStop(
                chat=state.chat,
                turn_id=state.turn_id,
                reply_count=len(state.replies),
                via_text_fallback=bool(state.speaks) and state.outcome != "reply-rescue",
                attributed=state.stop.attributed,
            )
        )
    draft.command(
        commands.TurnSettled(
            chat=state.chat,
            turn_id=state.turn_id,
            outcome=outcome,
            replies=len(state.replies),
            interim_replies=interims,
            delivered=_delivered(draft.state),
        )
    )
    draft.tell(chat_at(state.chat), TurnSettled(state.turn_id, outcome, len(state.replies), state.quote))


def _delivered(state: TurnState) -> Literal["yes", "no", "unknown"]:
    """Say whether anything that answers the turn was sent; unknown or in flight is `unknown`."""
    known = [one.known for one in answers_of(state)]
    if any(known) or state.speech_outcome == "sent":
        return "yes"
    return "unknown" if known or state.flights or state.speech_outcome == "unknown" else "no"


def living(state: TurnState) -> bool:
    """Say whether a turn is still needed: it has no terminal, or a delivery of it is unknown or in flight."""
    if state.phase != "settled" or state.flights:
        return True
    unknown = any(not one.known and not one.gone for one in answers_of(state))
    return unknown or (state.spoken is not None and state.speech_outcome in {"", "unknown"})
