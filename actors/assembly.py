"""Putting the running system together: which part knows which. The parts themselves know only what they need."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from turnkeeper.actors.aio import GatewayHands
from turnkeeper.actors.clock import WallClock
from turnkeeper.actors.measures import Measures
from turnkeeper.actors.office import ShardOffice
from turnkeeper.actors.owners import Roster
from turnkeeper.actors.performer import Performer
from turnkeeper.actors.reception import Reception, Seats
from turnkeeper.actors.release import Release
from turnkeeper.actors.sequencer import Sequencer
from turnkeeper.actors.shard import Shard
from turnkeeper.actors.snapshots import Forgetful, Snapshots
from turnkeeper.actors.startup import recover
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.config import Config, Policy, as_policy
from turnkeeper.engine.errors import ConfigError
from turnkeeper.engine.invariants import unjudged, violations
from turnkeeper.engine.ports import Reconciling

if TYPE_CHECKING:
    from turnkeeper.actors.release import Observer
    from turnkeeper.actors.waiting import Admission
    from turnkeeper.engine.journal import Journal
    from turnkeeper.engine.ports import Clock, Gateway

__all__ = ["Assembly"]


class Assembly:
    """The parts of one engine.

    Raises:
        ConfigError: a setting cannot be used.

    """

    def __init__(  # noqa: PLR0913 - the parts that an engine may replace
        self,
        config: Config,
        gateway: Gateway,
        journal: Journal | None,
        clock: Clock | None,
        *,
        measures: Measures,
        hands: type[GatewayHands] = GatewayHands,
    ) -> None:
        limits = config.limits
        self.measures = measures
        self.journal = _journal_of(config) if journal is None else journal
        self.stopped = threading.Event()
        """Set at the end: from then on pykka's references are dead."""
        self.sequencer = Sequencer(limits.ingress_high, limits.ingress_low)
        self.shard = Shard(self.sequencer, self.journal, WallClock() if clock is None else clock)
        self.roster = Roster(self.shard, self.stopped)
        self.hands = hands(gateway, ShardOffice(self.sequencer, self.shard))
        self.seats = Seats(limits.waiters, partial(measures.limit, "waiters"))
        self._reconciles = isinstance(gateway, Reconciling)
        self._build(config)

    def _build(self, config: Config) -> None:
        shard, measures = self.shard, self.measures
        # `Roster` opens owners in the cell that the shard runs.
        shard.cell = Cell(self.roster.spawn)
        self.judge(config)
        shard.performer = Performer(ShardOffice(self.sequencer, shard), self.hands)
        shard.snapshots = Snapshots(self.journal, config.journal.snapshot_every_events)
        self.desk = shard.desk = Release(shard.performer, measures, config.limits.dead_letters)
        self.reception = Reception(self.sequencer, shard, self.desk, self.seats)
        shard.after_run = self.roster.after_run
        shard.configured = self._configured
        shard.admit = self.reception.admit
        self.sequencer.refused = partial(measures.limit, "ingress_high")
        measures.watch(self.roster.awake, self.sequencer.longest)

    def observe(self, observer: Observer | None) -> None:
        """Let somebody see every committed run."""
        self.desk.observer = observer

    def judge(self, config: Config) -> None:
        """Check the invariants on every event, or not: `invariants.live`."""
        self.shard.cell.judge = violations if config.invariants.live else unjudged

    def policy(self, config: Config) -> Policy:
        """Return what is journaled of a configuration."""
        return as_policy(config, reconciles=self._reconciles)

    def begin(self, config: Config, started: Admission) -> None:
        """Start the shard's thread, which recovers first."""
        begin = partial(recover, self.shard, self.roster, self.journal, self.policy(config), started)
        self.shard.start(begin, started)

    def _configured(self, policy: Policy) -> None:
        """Another policy is in force: the limits of the engine act at once."""
        limits = policy.limits
        self.sequencer.set_watermarks(limits.ingress_high, limits.ingress_low)
        self.desk.set_dead_letters_max(limits.dead_letters)
        self.seats.limit = limits.waiters


def _journal_of(config: Config) -> Journal:
    settings = config.journal
    if settings.kind == "memory" or (settings.kind is None and settings.path is None):
        return Forgetful()
    if settings.path is None:
        raise ConfigError('config: journal.path is absent; journal.kind "sqlite" needs the path of a file')
    from turnkeeper.actors.sqlite import SqliteJournal  # noqa: PLC0415 - only who uses it loads sqlite3

    return SqliteJournal(
        settings.path, sync=settings.sync, linger_ms=settings.linger_ms, retain_days=settings.retain_days
    )
