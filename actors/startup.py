"""Coming up: replay, configured, recovered, and what is released again (ARCHITECTURE "After a crash").

Runs on the shard's thread before anything else. Posts that come meanwhile wait in the ingress, ahead of the
deadlines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.actors.release import DeadLetter
from turnkeeper.actors.sequencer import Entry
from turnkeeper.actors.snapshots import begin_from
from turnkeeper.engine.commands import Ack, Reconcile
from turnkeeper.engine.journal import Body, Journal, RecoveredBody, decode_frame
from turnkeeper.engine.recovery import found_by, replay

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turnkeeper.actors.owners import Roster
    from turnkeeper.actors.shard import Shard
    from turnkeeper.actors.waiting import Admission
    from turnkeeper.engine.config import Policy

__all__ = ["recover"]


def recover(shard: Shard, roster: Roster, journal: Journal, policy: Policy, started: Admission) -> None:
    """Rebuild the cell, tell its owners that it was rebuilt, and release again what was not confirmed.

    Raises:
        DecodeError: a frame is damaged.
        SchemaTooNew: a newer version wrote it.

    """
    roster.replaying = True
    base = begin_from(shard.cell, journal)
    found = replay(shard.cell, _with_dead_letters(shard, journal.load()))
    roster.replaying = False
    if base is not None and not found.records:
        found.seq, found.at_ms = base.seq, base.at_ms
    shard.seq, shard.at_ms = found.seq, found.at_ms
    configured = Entry("", Body(configured=policy))
    if base is None and not found.records:
        configured.admission = started
        shard.run([configured])
        return
    down_ms = max(0, shard.now_ms() - found.at_ms)
    shard.performer.resume(shard.now_ms())
    recovered = Entry("", Body(recovered=RecoveredBody(down_ms)), started)
    # A reconcile is made anew by the channel that waits for it; an ack's caller is gone.
    pending = tuple(shard.cell.pending.values())
    recovered.again = tuple(command for command in pending if not isinstance(command, Reconcile | Ack))
    recovered.signals = (found_by(shard.cell, found, down_ms), *found.differs)
    shard.run([configured, recovered])
    for command in pending:
        if isinstance(command, Reconcile):
            shard.performer.forget(command)


def _with_dead_letters(shard: Shard, frames: Iterable[bytes]) -> Iterator[bytes]:
    """Pass the frames on, and note which events were set aside; the word is searched for before a frame is read."""
    for frame in frames:
        if b"set_aside" in frame:
            for record in decode_frame(frame):
                event = record.body.event
                if record.outcome == "set_aside":
                    chat = event.chat if event is not None else ""
                    shard.desk.dead_letters.append(DeadLetter(record.seq, record.at_ms, chat, event, ""))
        yield frame
