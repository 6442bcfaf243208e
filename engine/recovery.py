"""Rebuilding a cell from its journal: the same records through the same rules (ARCHITECTURE, principle 7).

A replay takes policy and time from the records alone, counts no metrics and emits nothing. Records that were
set aside are skipped for ever. A record whose commands differ from those it led to was decided by other
rules: that is told, and what was emitted then stays what was emitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.channel.state import ChannelState
from turnkeeper.engine.events import Settled
from turnkeeper.engine.invariants import unjudged
from turnkeeper.engine.journal import RULES, Body, Record, decode_frame
from turnkeeper.engine.signals import DigestDiffers, Recovered
from turnkeeper.engine.turn.state import TurnState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turnkeeper.engine.cell import Cell, Run
    from turnkeeper.engine.commands import Reconcile
    from turnkeeper.engine.ports import Reconciliation

__all__ = ["Replayed", "answer_to", "found_by", "record_of", "replay"]


class Replayed(msgspec.Struct):
    """What a replay found."""

    records: int = 0
    events: int = 0
    seq: int = 0
    """The last one."""
    at_ms: int = 0
    differs: list[DigestDiffers] = []
    touched: set[str] = set()
    """Chats that a record was of: their pictures in the snapshot are not of now."""


def record_of(seq: int, at_ms: int, body: Body, run: Run, *, kept: bool = True) -> Record:
    """Return the record of what was just run; one that nobody keeps needs no digest."""
    outcome = "ok" if run.error is None else "set_aside"
    return Record(seq, at_ms, RULES, body, outcome, codec.digest(run.commands) if kept else 0)  # type: ignore[arg-type]


def replay(cell: Cell, frames: Iterable[bytes], progress: Callable[[Replayed], None] | None = None) -> Replayed:
    """Run every committed record through the cell; `progress` is called after each frame.

    Raises:
        DecodeError: a frame is damaged.
        SchemaTooNew: a newer version wrote it.

    """
    found = Replayed(differs=[], touched=set())
    # What is replayed was judged when it was live.
    judge, cell.judge = cell.judge, unjudged
    try:
        _replay(cell, frames, found, progress)
    finally:
        cell.judge = judge
    _forget_other(cell, found)
    return found


def _replay(cell: Cell, frames: Iterable[bytes], found: Replayed, progress: Callable[[Replayed], None] | None) -> None:
    for frame in frames:
        for record in decode_frame(frame):
            found.records += 1
            found.events += record.body.event is not None
            found.seq, found.at_ms = record.seq, record.at_ms
            if record.outcome == "set_aside":
                continue
            _note(found, cell, record.body)
            due = record.body.due
            if due is not None:
                cell.forget_due(due)
            run = cell.apply(record.body, record.at_ms, record.seq)
            if codec.digest(run.commands) != record.digest:
                found.differs.append(DigestDiffers(chat=_chat(record.body), seq=record.seq))
        if progress is not None:
            progress(found)


def _note(found: Replayed, cell: Cell, body: Body) -> None:
    """Note which chats a record is about to touch; a restart or another policy, each that is awake."""
    if body.recovered is not None or body.configured is not None:
        found.touched.update(address.chat for address in cell.owners)
        return
    done = body.handed or body.done
    command = None if done is None else cell.pending.get(done.id)
    found.touched.add(_chat(body) if command is None else command.chat)


def _forget_other(cell: Cell, found: Replayed) -> None:
    """Of a record that is decided otherwise now nothing is emitted: what it emitted then stands."""
    other = {str(differs.seq) for differs in found.differs}
    for command_id in [key for key in cell.pending if key.partition(".")[0] in other] if other else ():
        cell.confirm(command_id)


def _chat(body: Body) -> str:
    if body.event is not None:
        return body.event.chat
    return body.due.chat if body.due is not None else ""


def found_by(cell: Cell, replayed: Replayed, down_ms: int) -> Recovered:
    """Return the report of a restart, before its owners were told.

    Of unknown outcome is what was with the host and is not settled; what was unknown before was told then.
    """
    states = [owner.state for owner in cell.owners.values()]
    return Recovered(
        events=replayed.events,
        chats=cell.chats,
        open_turns=sum(isinstance(state, TurnState) and state.phase != "settled" for state in states),
        unknown=sum(_in_doubt(state) for state in states if isinstance(state, ChannelState)),
        down_ms=down_ms,
    )


def _in_doubt(channel: ChannelState) -> bool:
    out = channel.out
    return out is not None and out.kind == "send" and out.phase in {"handed", "reconciling"}


def answer_to(asked: Reconcile, answer: Reconciliation) -> Settled:
    """Return the settlement that a gateway's answer to `reconcile` stands for."""
    if answer == "sent":
        return Settled(asked.chat, asked.delivery, "sent", channel=asked.channel, attempt=asked.attempt)
    if answer == "not_sent":
        return Settled(
            asked.chat, asked.delivery, "failed", channel=asked.channel, attempt=asked.attempt, reason="not_sent"
        )
    return Settled(asked.chat, asked.delivery, "unknown", channel=asked.channel, attempt=asked.attempt)
