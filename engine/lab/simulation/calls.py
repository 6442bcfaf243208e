"""What can be said of a tool call from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine.commands import Send
from turnkeeper.engine.ids import delivery_key

if TYPE_CHECKING:
    from turnkeeper.engine.lab.simulation.judge import Judge
    from turnkeeper.engine.lab.simulation.seen import Seen
    from turnkeeper.engine.lab.simulation.things import CallSeen, TurnSeen

__all__ = ["call_of", "consumed_by", "hasty", "owner_of"]

FOLDS = frozenset({"autosteer", "edit-fold"})
"""The follow-ups that are part of what a turn answers."""


def consumed_by(call: CallSeen) -> tuple[str, ...]:
    """Return the ids that a call names in `consumed_turn_ids`."""
    consumed = call.event.consumed_turn_ids
    return tuple(one for one in consumed if isinstance(one, str)) if isinstance(consumed, tuple) else ()


def hasty(oracle: Judge, log: Seen, turn: TurnSeen) -> CallSeen | None:
    """Return the one final reply of a turn that failed so lately that its retry is still awaited."""
    if oracle.torn or any(_unclear(log, call) for call in log.calls.values()):
        return None
    failed: list[CallSeen] = []
    for operation in log.operations.values():
        sent = operation.command
        if not isinstance(sent, Send) or sent.purpose != "reply" or sent.turn_id != turn.turn_id or sent.interim:
            continue
        call = log.calls.get(operation.delivery.partition(":")[2].partition(":")[2])
        if call is None or call.late or operation.lied or operation.visible or _was_unknown(call):
            # It may be the turn's answer: then nothing waits. Or it was taken for that until some time ago.
            return None
        if call.failed_ms is not None:
            failed.append(call)
    if len(failed) != 1 or failed[0].failed_ms is None or failed[0].failed_at < turn.worked_at:
        # Work since then ended the one time to wait, or begins another that is not promised.
        return None
    due_ms = failed[0].failed_ms + turn.config.timers.retry_grace_ms
    return failed[0] if oracle.now_ms < due_ms else None


def _was_unknown(call: CallSeen) -> bool:
    return bool(call.acks) and not (call.acks[0].error or "").startswith("delivery failed")


def _unclear(log: Seen, call: CallSeen) -> bool:
    """Say whether a call failed, or may have, that never left: whose it was, nobody saw."""
    if delivery_key("reply", call.event.chat, call.call_id) in log.operations:
        return False
    return call.failed_ms is not None or len(call.acks) < call.events


LOST = ("delivery failed", "unknown")
"""What a call is told of an answer that is lost, or may be: its turn may say it once more."""


def owner_of(log: Seen, call: CallSeen) -> str | None:
    """Say whose a reply is when it comes: what it echoes, the turn that it proves, or the only open one (A3)."""
    open_ = {turn.turn_id: turn for turn in log.turns.values() if not turn.over and not turn.subagent}
    lost = any((ack.error or "").startswith(LOST) for one in log.calls.values() for ack in one.acks)
    if lost or any(turn.first_stop for turn in open_.values()):
        # One of them may speak for itself already: then it is not open any more, and nobody was told.
        return None
    echoed, consumed = call.event.turn_id, consumed_by(call)
    if not isinstance(echoed, str) or (echoed not in log.turns and echoed not in log.inputs):
        return next(iter(open_)) if len(open_) == 1 else ""
    if echoed in log.turns:
        return None if log.turns[echoed].subagent else echoed
    proven = [open_[one] for one in dict.fromkeys(consumed) if one in open_]
    if len(proven) != 1 or echoed not in consumed or log.inputs[echoed].event.source not in FOLDS:
        return echoed
    return proven[0].turn_id if proven[0].config.attribution.fold_proof == "consumed" else echoed


def call_of(log: Seen, delivery: str) -> CallSeen | None:
    """Return the call that made an operation; None: it was no call."""
    form, _, rest = delivery.partition(":")
    return log.calls.get(rest.partition(":")[2]) if form in {"reply", "edit"} else None
