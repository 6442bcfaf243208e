"""Planted bugs of whose a reply is: calls, quotes, inputs. Each one was, somewhere, once a real one.

`MUTANTS[name]()` is a context manager: inside, the engine has that fault. Each must break a scenario or a seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tests.mutants.planting import handled_by, patched, planted_in
from turnkeeper.engine import commands
from turnkeeper.engine.chat import attribution, calls, dedup, ledger, replies, settlement
from turnkeeper.engine.chat.dedup import ToolCall
from turnkeeper.engine.chat.tables import Echo
from turnkeeper.engine.ids import channel_at
from turnkeeper.engine.protocol import (
    Quote,
    QuoteGiven,
    QuoteSettled,
    QuoteWanted,
)
from turnkeeper.engine.turn import step as turn_step

__all__ = ["MUTANTS"]

Draft = Any
MUTANTS, planted = planted_in()
replace = msgspec.structs.replace


# ---------------------------------------------------------------- quotes


@planted("quote not reserved")
def _quote_not_reserved() -> Iterator[None]:
    def wanted(draft: Draft, told: QuoteWanted) -> None:
        state = draft.state
        free = state.quote.state == "free" and state.answers.channel == told.channel
        message = state.answers.message if free else None
        draft.tell(channel_at(state.chat, told.channel), QuoteGiven(told.delivery, message, state.answers.participant))

    with handled_by(turn_step.HANDLERS, QuoteWanted, wanted):
        yield


@planted("a failed send keeps its quote")
def _quote_kept() -> Iterator[None]:
    def settled(draft: Draft, told: QuoteSettled) -> None:
        if draft.state.quote.by == told.delivery:
            draft.set(quote=Quote("spent", told.delivery))

    with handled_by(turn_step.HANDLERS, QuoteSettled, settled):
        yield


@planted("a delivered send gives its quote back")
def _quote_given_back() -> Iterator[None]:
    def settled(draft: Draft, told: QuoteSettled) -> None:
        if draft.state.quote.by == told.delivery:
            draft.set(quote=Quote())

    with handled_by(turn_step.HANDLERS, QuoteSettled, settled):
        yield


# ---------------------------------------------------------------- calls


@planted("ack on arrival")
def _ack_on_arrival() -> Iterator[None]:
    honest = replies._enter

    def enter(draft: Draft, call: ToolCall, delivery: str, *rest: Any) -> None:
        honest(draft, call, delivery, *rest)
        draft.command(commands.Ack(chat=draft.state.chat, call_id=call.call_id, ok=True, delivery="sent"))

    with patched(replies, "_enter", enter):
        yield


@planted("no in-flight count for only-open")
def _only_open_not_counted() -> Iterator[None]:
    honest = replies._assign

    def assign(draft: Draft, call: ToolCall, owner: Any, *rest: Any) -> None:
        if owner.decision.row != "only-open":
            honest(draft, call, owner, *rest)

    with patched(replies, "_assign", assign):
        yield


@planted("an echoed id is trusted only if it is open: every other one goes to the only open turn")
def _pending_turn_inferred() -> Iterator[None]:
    honest = attribution._echo

    def echo(state: Any, echoed: object) -> tuple[Echo, str]:
        kind, source = honest(state, echoed)
        return (kind, source) if kind is Echo.OPEN else (Echo.NONE, "")

    with patched(attribution, "_echo", echo):
        yield


@planted("consumed turns are not in flight")
def _consumed_not_in_flight() -> Iterator[None]:
    with patched(calls, "consumed_turns", lambda state, call, owner: []):
        yield


@planted("content hash without turn")
def _hash_without_turn() -> Iterator[None]:
    honest = dedup.content_key
    with patched(dedup, "content_key", lambda owner_id, call: honest("", call)):
        yield


@planted("content hash without the interim flag")
def _hash_without_interim() -> Iterator[None]:
    honest = dedup.content_key
    with patched(dedup, "content_key", lambda owner_id, call: honest(owner_id, replace(call, interim=False))):
        yield


@planted("a slow retry is not compared with the turn's end")
def _spoken_not_compared() -> Iterator[None]:
    with patched(dedup, "_ended", lambda state, ids: []):
        yield


@planted("a merged input is answered on its own")
def _not_merged() -> Iterator[None]:
    with patched(ledger, "merge", lambda draft, ids, turn_id: None):
        yield


@planted("the chat guard is off")
def _guard_off() -> Iterator[None]:
    with patched(calls, "_guarded", lambda state, chat_id, reply_in: True):
        yield


@planted("call ids are not remembered")
def _calls_forgotten() -> Iterator[None]:
    with (
        patched(calls, "remember_call", lambda draft, call_id, call: None),
        patched(calls, "_known_by_delivery", lambda state, call: None),
    ):
        yield


@planted("no call rate")
def _no_rate() -> Iterator[None]:
    with patched(dedup, "take_token", lambda draft: True):
        yield


@planted("blank text is an answer")
def _blank_answers() -> Iterator[None]:
    with patched(ToolCall, "blank", property(lambda call: False)):
        yield


@planted("a file alone is nothing to send")
def _file_is_nothing() -> Iterator[None]:
    with patched(ToolCall, "blank", property(lambda call: not call.text.strip())):
        yield


@planted("joined calls are never answered")
def _joined_not_answered() -> Iterator[None]:
    honest = settlement._answer

    def answer(draft: Draft, told: Any, ended: Any) -> None:
        honest(draft, told, replace(ended, calls=ended.calls[:1]))

    with patched(settlement, "_answer", answer):
        yield


# ---------------------------------------------------------------- inputs


@planted("inputs are resolved on arrival")
def _resolved_on_arrival() -> Iterator[None]:
    honest = ledger.consume

    def consume(draft: Draft, delivery: str, ids: Any) -> tuple[str, ...]:
        taken = honest(draft, delivery, ids)
        ledger.acknowledge(draft, taken)
        return taken

    with patched(ledger, "consume", consume):
        yield


@planted("drop check only after a normal end")
def _drop_check_after_normal_ends() -> Iterator[None]:
    honest = ledger.turn_ended

    def ended(draft: Draft, turn: Any, quote: Quote) -> None:
        before = draft.state.ledger
        honest(draft, turn, quote)
        if draft.state.turns[turn.turn_id].outcome in {"lost", "interrupted", "refused", "failed", "expired"}:
            kept = {key: replace(one, check_ms=before[key].check_ms) for key, one in draft.state.ledger.items()}
            draft.set(ledger=kept)

    with patched(ledger, "turn_ended", ended):
        yield


@planted("handed over again as often as it is dropped")
def _redelivered_again() -> Iterator[None]:
    honest = ledger._redeliver

    def redeliver(draft: Draft, entry: Any) -> None:
        known = draft.state.redelivered
        honest(draft, entry)
        draft.set(redelivered=known)

    with patched(ledger, "_redeliver", redeliver):
        yield


@planted("no tombstones")
def _no_tombstones() -> Iterator[None]:
    honest = ledger._evict

    def evict(draft: Draft, entry: Any) -> None:
        stones = draft.state.tombstones
        honest(draft, entry)
        draft.set(tombstones=stones)

    with patched(ledger, "_evict", evict):
        yield


@planted("a named input is not a seen one")
def _naming_proves_nothing() -> Iterator[None]:
    honest = ledger.see

    def see(draft: Draft, turn_id: str) -> None:
        if draft.state.turns.get(turn_id) is not None:
            honest(draft, turn_id)

    with patched(ledger, "see", see):
        yield
