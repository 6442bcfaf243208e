"""Planted bugs of how a turn ends and what a channel sends, in good times and after a crash.

As in `replies`: each must break a scenario or a seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tests.mutants.planting import handled_by, patched, planted_in
from turnkeeper.engine import events
from turnkeeper.engine.channel import outbox, preview
from turnkeeper.engine.channel import step as channel_step
from turnkeeper.engine.chat import ledger, replies
from turnkeeper.engine.chat import step as chat_step
from turnkeeper.engine.chat.dedup import ToolCall
from turnkeeper.engine.protocol import (
    Active,
    Quote,
    Recorded,
    Recover,
    Settlement,
)
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.turn import finalization, record
from turnkeeper.engine.turn import step as turn_step

__all__ = ["MUTANTS"]

Draft = Any
MUTANTS, planted = planted_in()
replace = msgspec.structs.replace


# ---------------------------------------------------------------- ends


@planted("Stop does not wait")
def _stop_does_not_wait() -> Iterator[None]:
    with patched(finalization, "act", finalization._finalize):
        yield


@planted("no grace for the agent's own retry")
def _no_retry_grace() -> Iterator[None]:
    with patched(finalization, "_awaits_retry", lambda draft, cause: False):
        yield


@planted("activity does not cancel a Stop")
def _activity_cancels_nothing() -> Iterator[None]:
    def active(draft: Draft, _: Active) -> None:
        draft.set(active_ms=draft.at.now_ms, quiet_from_ms=draft.at.now_ms)

    with handled_by(turn_step.HANDLERS, Active, active):
        yield


@planted("an interrupted turn sends its Stop text")
def _interrupted_speaks() -> Iterator[None]:
    honest = finalization.settle

    def settle(draft: Draft, outcome: Any) -> None:
        if outcome == "interrupted" and draft.state.stop is not None:
            finalization._finalize(draft, "stop")
        else:
            honest(draft, outcome)

    with patched(finalization, "settle", settle):
        yield


@planted("a rescue after any end")
def _rescue_after_any_end() -> Iterator[None]:
    with patched(finalization, "NO_RESCUE", frozenset()):
        yield


@planted("the terminal does not wait for the fallback")
def _terminal_at_release() -> Iterator[None]:
    honest = finalization._release

    def release(draft: Draft, outcome: Any, purpose: Any, flight: Any) -> None:
        settled = draft.state.phase == "settled"
        honest(draft, outcome, purpose, flight)
        if not settled and draft.state.phase == "settling":
            finalization.settle(draft, outcome)

    with patched(finalization, "_release", release):
        yield


@planted("a failed fallback counts as delivered")
def _failed_fallback() -> Iterator[None]:
    honest = record._speech_ended

    def ended(draft: Draft, told: Recorded) -> None:
        honest(draft, replace(told, outcome="sent"))

    with patched(record, "_speech_ended", ended):
        yield


@planted("interim replies count as final")
def _interim_is_final() -> Iterator[None]:
    honest = replies._assign

    def assign(draft: Draft, call: ToolCall, *rest: Any) -> None:
        honest(draft, replace(call, interim=False), *rest)

    with patched(replies, "_assign", assign):
        yield


@planted("an empty question stops no clock")
def _questions_ignored() -> Iterator[None]:
    with handled_by(chat_step.HANDLERS, events.QuestionOpened, lambda draft, event: None):
        yield


# ---------------------------------------------------------------- channels


@planted("receipt check off")
def _receipts_ignored() -> Iterator[None]:
    with patched(outbox, "standing_of", lambda receipts, delivery: Standing.NONE):
        yield


@planted("unknown is resent blindly")
def _resent_blindly() -> Iterator[None]:
    with patched(outbox, "doubt", outbox.emit):
        yield


@planted("unknown is failed")
def _unknown_is_failed() -> Iterator[None]:
    def doubt(draft: Draft) -> None:
        item = draft.state.out
        if item is not None:
            outbox.end(draft, "failed", Settlement(item.delivery, "failed", reason="no answer"))

    with patched(outbox, "doubt", doubt):
        yield


@planted("a waiting send is overtaken")
def _overtaken() -> Iterator[None]:
    honest = outbox._wait

    def wait(draft: Draft, wait_ms: int, *, counted: bool) -> None:
        honest(draft, wait_ms, counted=counted)
        item = draft.state.out
        if item is not None and draft.state.queue:
            draft.set(out=None, queue=(*draft.state.queue, replace(item, phase="queued")))
            outbox.pump(draft)

    with patched(outbox, "_wait", wait):
        yield


@planted("any reply replaces the live preview")
def _preview_taken() -> Iterator[None]:
    honest = preview.meet

    def meet(draft: Draft) -> None:
        item, live = draft.state.out, draft.state.preview
        if item is not None and live is not None and item.kind == "send":
            draft.set(out=replace(item, owned=True, turn_id=live.turn_id))
        honest(draft)

    with patched(preview, "meet", meet):
        yield


@planted("a preview outlives its turn")
def _preview_lives_on() -> Iterator[None]:
    with patched(preview, "detach", lambda draft, turn_id, **ended: None):
        yield


# ---------------------------------------------------------------- crashes


@planted("silence goes on counting through a crash")
def _clocks_go_on() -> Iterator[None]:
    with handled_by(turn_step.HANDLERS, Recover, lambda draft, told: None):
        yield


@planted("what was handed over is sent again after a crash")
def _sent_again_after_crash() -> Iterator[None]:
    honest = channel_step.HANDLERS[Recover]

    def recover(draft: Draft, told: Recover) -> None:
        item = draft.state.out
        if item is not None and item.phase == "handed":
            outbox.emit(draft)
        else:
            honest(draft, told)

    with handled_by(channel_step.HANDLERS, Recover, recover):
        yield


@planted("turns are told of a failure as of a success")
def _failure_is_success() -> Iterator[None]:
    honest = turn_step.HANDLERS[Recorded]

    def recorded(draft: Draft, told: Recorded) -> None:
        honest(draft, replace(told, outcome="sent"))

    with handled_by(turn_step.HANDLERS, Recorded, recorded):
        yield


@planted("a turn that ends does not tell its chat what is left of its quote")
def _quote_not_handed_over() -> Iterator[None]:
    honest = ledger.turn_ended
    with patched(ledger, "turn_ended", lambda draft, turn, quote: honest(draft, turn, Quote())):
        yield
