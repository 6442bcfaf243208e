"""The quote of a turn's input: one, reserved while a send is with the host, spent when delivered (A4).

The turn owns it from its opening until `TurnSettled`, which hands what is left to the chat's ledger; a
message about the quote of a settled turn is passed on to the chat.
"""

from __future__ import annotations

from turnkeeper.engine.ids import MessageId, channel_at, chat_at
from turnkeeper.engine.protocol import Draft, Quote, QuoteGiven, QuoteSettled, QuoteWanted
from turnkeeper.engine.signals import QuoteReleased, QuoteReserved, QuoteSpent
from turnkeeper.engine.turn.state import TurnState

__all__ = ["on_settled", "on_wanted"]


def on_wanted(draft: Draft[TurnState], wanted: QuoteWanted) -> None:
    """Give the quote to the first send that leaves in the input's own channel, if it is unspent."""
    state = draft.state
    if state.phase == "settled":
        draft.tell(chat_at(state.chat), wanted)
        return
    message: MessageId | None = None
    participant: str | None = None
    answers = state.answers
    mine = state.quote.state == "free" or (state.quote.state == "reserved" and state.quote.by == wanted.delivery)
    if mine and answers.message is not None and answers.channel == wanted.channel:
        message, participant = answers.message, answers.participant
        draft.set(quote=Quote("reserved", wanted.delivery))
        draft.count("quotes", "reserved")
        draft.signal(QuoteReserved(chat=state.chat, delivery=wanted.delivery, turn_id=state.turn_id))
    draft.tell(channel_at(state.chat, wanted.channel), QuoteGiven(wanted.delivery, message, participant))


def on_settled(draft: Draft[TurnState], told: QuoteSettled) -> None:
    """Spend the quote, or give it back to the next send."""
    state = draft.state
    if state.phase == "settled":
        draft.tell(chat_at(state.chat), told)
        return
    if state.quote.by != told.delivery:
        return
    if told.spent:
        draft.set(quote=Quote("spent", told.delivery))
        draft.count("quotes", "spent")
        draft.signal(QuoteSpent(chat=state.chat, delivery=told.delivery, turn_id=state.turn_id))
    else:
        draft.set(quote=Quote())
        draft.count("quotes", "released")
        draft.signal(QuoteReleased(chat=state.chat, delivery=told.delivery, turn_id=state.turn_id))
