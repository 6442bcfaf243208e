"""Coming up: replay, configured, recovered, and what is released again (ARCHITECTURE "After a crash").

Runs on the shard's thread before anything else. Posts that come meanwhile wait in the ingress, ahead of the
deadlines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.actors.clock import ticks_ns
from turnkeeper.actors.log import log
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
    from turnkeeper.engine.recovery import Replayed
    from turnkeeper.engine.signals import Recovered

__all__ = ["recover"]

MILESTONE = 100_000
"""Records between two lines of a long replay."""


def recover(shard: Shard, roster: Roster, journal: Journal, policy: Policy, started: Admission) -> None:
    """Rebuild the cell, tell its owners that it was rebuilt, and release again what was not confirmed.

    Raises:
        DecodeError: a frame is damaged.
        SchemaTooNew: a newer version wrote it.

    """
    roster.replaying = True
    began_ns = ticks_ns()
    base = begin_from(shard.cell, journal)
    found = replay(shard.cell, _with_dead_letters(shard, journal.load()), Milestones())
    roster.replaying = False
    if base is not None:
        shard.snapshots.restarted(shard.cell, found.touched)
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
    report = found_by(shard.cell, found, down_ms)
    recovered.signals = (report, *found.differs)
    _log(report, found, (ticks_ns() - began_ns) // 1_000_000)
    shard.run([configured, recovered])
    for command in pending:
        if isinstance(command, Reconcile):
            shard.performer.forget(command)


class Milestones:
    """Says how far a long replay has come."""

    def __init__(self) -> None:
        self._next = MILESTONE

    def __call__(self, found: Replayed) -> None:
        """So much was replayed."""
        if found.records >= self._next:
            self._next = found.records + MILESTONE
            log.info("recovering: %d records replayed", found.records, extra={"records": found.records})


def _log(report: Recovered, found: Replayed, spent_ms: int) -> None:
    """Say what a restart found, in one line; and each record that was decided otherwise, in one of its own."""
    extra = {
        "records": found.records,
        "events": report.events,
        "chats": report.chats,
        "open_turns": report.open_turns,
        "unknown": report.unknown,
        "down_ms": report.down_ms,
        "spent_ms": spent_ms,
        "differs": len(found.differs),
    }
    log.info(
        "recovered in %d ms after %d ms down: %d events replayed, %d chats, %d open turns, %d sends of unknown outcome",
        *(spent_ms, report.down_ms, report.events, report.chats, report.open_turns, report.unknown),
        extra=extra,
    )
    for differs in found.differs:
        log.warning(
            "record %d of chat %s is decided otherwise now; what it sent then stands",
            *(differs.seq, differs.chat),
            extra={"seq": differs.seq, "chat": differs.chat},
        )


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
