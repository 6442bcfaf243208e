"""Between performer and shard: what the performer admits, and what the gateway's calls report."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnkeeper.actors.reception import checked
from turnkeeper.actors.sequencer import Entry, Sequencer
from turnkeeper.engine.journal import Body, DoneBody, HandedBody

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turnkeeper.actors.performer import Job
    from turnkeeper.actors.shard import Shard
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.config import Policy
    from turnkeeper.engine.events import Event

__all__ = ["ShardOffice"]


class ShardOffice:
    """The performer's view of its shard, and the report of the calls, which comes from any thread."""

    def __init__(self, sequencer: Sequencer, shard: Shard) -> None:
        self._sequencer = sequencer
        self._shard = shard

    def policy(self) -> Policy:
        """Return the policy that is in force."""
        return self._shard.cell.at.policy

    def pending(self) -> Mapping[str, Command]:
        """Return the commands that await confirmation."""
        return self._shard.cell.pending

    def admit_handed(self, job: Job, /) -> None:
        """Ask the cell whether the attempt is still wanted."""
        command: Any = job.command
        entry = Entry(command.chat, Body(handed=HandedBody(command.id, command.delivery, command.attempt)))
        entry.job = job
        self._sequencer.put_own(entry)

    def admit_done(self, command: Command, /) -> None:
        """Note that a command without settlement was performed."""
        self._sequencer.put_own(Entry(command.chat, Body(done=DoneBody(command.id))))

    def admit_event(self, event: Event, /) -> None:
        """Take a settlement.

        Raises:
            DecodeError: a field of it cannot be read.

        """
        self._sequencer.put_own(Entry(event.chat, Body(event=checked(event))))

    # ------------------------------------------------------------ the calls, from any thread

    def begun(self, job: Job, /) -> None:
        """The gateway is about to be called."""
        self._sequencer.notice(partial(self._shard.performer.begun, job))

    def returned(self, job: Job, result: Any, error: BaseException | None, /) -> None:  # noqa: ANN401 - whatever a gateway returns
        """The call returned, or raised."""
        self._sequencer.notice(partial(self._returned, job, result, error))

    def _returned(self, job: Job, result: Any, error: BaseException | None) -> None:  # noqa: ANN401 - whatever a gateway returns
        self._shard.performer.returned(job, result, error, self._shard.now_ms())
