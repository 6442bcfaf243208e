"""What the engine counts, on the registry that the host passes in.

The shard calls `observe` once for each live run, after the commit and never in a replay. An event that was
undone therefore counts as set aside and as nothing else. Steps name what they count (`Draft.count`); the
catalogue says which names and label values exist. A count outside it is a bug of ours: it raises where
`strict` is set, as in tests, and is counted as a broken invariant where it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry

from turnkeeper.engine import signals
from turnkeeper.engine.commands import TurnSettled
from turnkeeper.engine.errors import ConfigError, InvariantViolated
from turnkeeper.engine.events import EventBase, Settled, TurnOpened
from turnkeeper.metrics import catalogue
from turnkeeper.metrics.series import Bucketed, Counted, Gauged, SeriesCollector, Since

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.journal import Body, Record
    from turnkeeper.engine.transcript.view import Report

__all__ = ["Instruments"]

MS, NS = 1_000, 1_000_000_000
"""Of these make a second."""
SINCE_MAX = 65_536
"""So many open turns and deliveries are timed at once; of more, the oldest are not."""
EVENT_BOUNDS_NS = tuple(
    us * 1_000 for us in (25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000)
)
DELIVERY_BOUNDS_MS = (50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000)
TURN_BOUNDS_MS = (1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 5_400_000)
WAIT_BOUNDS_MS = (100, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000)
TIMED = frozenset({"reply", "edit", "fallback", "rescue", "report"})
"""Forms of deliveries that always end; a snapshot or a mark may end without anyone being told."""
NOT_OPENED = frozenset({"open_turns", "chats"})

_made: WeakKeyDictionary[CollectorRegistry, Instruments] = WeakKeyDictionary()
_making = Lock()


class Instruments:
    """The metrics of one engine.

    `observe` and the setters may be called from any thread; a scrape sees a run as a whole or not at all.

    Args:
        registry: where the host's exporter looks; never prometheus_client's global one by itself.
        strict: raise `InvariantViolated` for a count that the catalogue does not have.

    Raises:
        ConfigError: the registry holds a metric of one of these names already.

    Source: PROTOCOL "Metrics", docs/adr/0012.
    """

    def __init__(self, registry: CollectorRegistry, *, strict: bool = False) -> None:
        self.strict = strict
        self._lock = Lock()
        self._counters = {family.name: Counted(family) for family in catalogue.COUNTERS}
        self._gauges = {family.name: Gauged(family) for family in catalogue.GAUGES}
        self._event = Bucketed(catalogue.EVENT_SECONDS, EVENT_BOUNDS_NS, NS)
        self._delivery = Bucketed(catalogue.DELIVERY_SECONDS, DELIVERY_BOUNDS_MS, MS)
        self._turn = Bucketed(catalogue.TURN_SECONDS, TURN_BOUNDS_MS, MS)
        self._wait = Bucketed(catalogue.FINALIZATION_WAIT_SECONDS, WAIT_BOUNDS_MS, MS)
        self._handed: Since[str] = Since(SINCE_MAX)
        self._opened: Since[tuple[str, str]] = Since(SINCE_MAX)
        histograms = (self._event, self._delivery, self._turn, self._wait)
        try:
            registry.register(
                SeriesCollector(self._lock, (*self._counters.values(), *histograms), self._gauges.values())
            )
        except ValueError as error:
            raise ConfigError(
                f"registry: {error}; take Instruments.on(registry) for the ones that are there, or another registry"
            ) from error

    @classmethod
    def on(cls, registry: CollectorRegistry) -> Instruments:
        """Return the instruments of a registry, made at the first call.

        An engine that is started again in one process goes on counting where the last one stopped. Two that
        run at once add up in the counters, and overwrite each other's gauges: give each a registry.

        Raises:
            ConfigError: as the constructor.

        """
        with _making:
            made = _made.get(registry)
            if made is None:
                made = _made[registry] = cls(registry)
            return made

    # ------------------------------------------------------------ after each live run

    def observe(self, record: Record, run: Run, spent_ns: int | None = None) -> None:
        """Count one record that was run and committed.

        Args:
            record: gives event type and times.
            run: what it led to.
            spent_ns: how long the run took, in nanoseconds of a monotonic clock; None: not timed.

        Raises:
            InvariantViolated: `strict`, and the run counted what the catalogue does not have.

        """
        body = record.body
        with self._lock:
            if body.event is not None:
                self._counters["events"].values[(catalogue.EVENT_TYPES[type(body.event)],)] += 1
            if spent_ns is not None:
                self._event.add(spent_ns)
            for count in run.counts:
                self._add(count.metric, count.labels)
            for signal in run.signals:
                self._hear(signal)
            for name in run.violated:
                self._violated(name)
            self._begin(body, run, record.at_ms)
            self._end(body, run, record.at_ms)

    def _add(self, metric: str, labels: tuple[str, ...]) -> None:
        counter = self._counters.get(metric)
        if counter is not None and labels in counter.values:
            counter.values[labels] += 1
        elif metric == "set_aside":
            # What a step may raise is open; the label is not.
            self._counters[metric].values[(catalogue.UNLISTED,)] += 1
        else:
            self._violated(catalogue.BAD_COUNT, _fault(counter, metric, labels, self._counters))

    def _violated(self, name: str, why: str = "") -> None:
        listed = name in catalogue.INVARIANTS
        if self.strict and (why or not listed):
            raise InvariantViolated(
                why or f"invariant {name!r} is not listed; expected one of {', '.join(catalogue.INVARIANTS)}"
            )
        self._counters["invariant_violations"].values[(name if listed else catalogue.UNLISTED,)] += 1

    def _hear(self, signal: signals.Signal) -> None:
        """Count what only a signal says."""
        if isinstance(signal, signals.LimitReached):
            self._add("limit_reached", (signal.limit,))
        elif isinstance(signal, signals.FinalizationWaited):
            self._wait.add(signal.waited_ms)
        elif isinstance(signal, signals.DeliveryUnknown):
            self._handed.end(signal.delivery, 0)
        elif isinstance(signal, signals.Recovered):
            self._set("open_turns", signal.open_turns, ())

    def _begin(self, body: Body, run: Run, at_ms: int) -> None:
        """Start the clocks of a turn that opened and of an attempt that goes to the host."""
        event, handed = body.event, body.handed
        if isinstance(event, TurnOpened):
            if run.error is None and not any(map(_refuses, run.signals)):
                self._opened.begin((event.chat, event.turn_id), at_ms)
                self._gauges["open_turns"].values[()] += 1
        elif handed is not None:
            if run.go and handed.delivery.partition(":")[0] in TIMED:
                self._handed.begin(handed.delivery, at_ms)
        elif body.recovered is not None:
            self._handed.clear()
            self._opened.clear()

    def _end(self, body: Body, run: Run, at_ms: int) -> None:
        """Stop the clocks of what settled."""
        event: EventBase | None = body.event
        if isinstance(event, Settled) and run.error is None:
            _take(self._delivery, self._handed.end(event.delivery, at_ms))
        for command in run.commands:
            if isinstance(command, TurnSettled):
                _take(self._turn, self._opened.end((command.chat, command.turn_id), at_ms))
                open_turns = self._gauges["open_turns"].values
                open_turns[()] = max(0, open_turns[()] - 1)
        self._gauges["deliveries_in_flight"].values[()] = len(self._handed)

    # ------------------------------------------------------------ what no run says

    def count(self, metric: str, *labels: str) -> None:
        """Add one to a counter, for what happens outside a run: an event refused at the door, for example.

        Raises:
            InvariantViolated: `strict`, and the catalogue does not have it.

        """
        with self._lock:
            self._add(metric, labels)

    def prompt_built(self, report: Report) -> None:
        """Count what a prompt view kept and dropped: `view.report` of `turnkeeper.engine.transcript`."""
        with self._lock:
            self._add("prompts", (report.result,))
            messages = self._counters["prompt_messages"].values
            for reason, count in report.counts.items():
                messages[(reason,)] += count

    def set(self, gauge: str, value: int, *labels: str) -> None:
        """Set a gauge.

        Raises:
            InvariantViolated: the catalogue does not have it; also without `strict`, this is no step's doing.

        """
        with self._lock:
            self._set(gauge, value, labels)

    def watch(self, gauge: str, read: Callable[[], int], *labels: str) -> None:
        """Let a gauge be read when it is asked for; `read` is called from the exporter's thread.

        Raises:
            InvariantViolated: the catalogue does not have it.

        """
        self._known(gauge, labels).readers[labels] = read

    def _set(self, gauge: str, value: int, labels: tuple[str, ...]) -> None:
        self._known(gauge, labels).values[labels] = value

    def _known(self, gauge: str, labels: tuple[str, ...]) -> Gauged:
        known = self._gauges.get(gauge)
        if known is None or labels not in known.values:
            series = ", ".join(f"{name}{labels}" for name, one in self._gauges.items() for labels in one.values)
            raise InvariantViolated(f"gauge {gauge}{labels} does not exist; known: {series}")
        return known


def _take(histogram: Bucketed, lasted_ms: int | None) -> None:
    if lasted_ms is not None:
        histogram.add(lasted_ms)


def _refuses(signal: signals.Signal) -> bool:
    """Say whether a signal tells that a `turn_opened` opened nothing."""
    if isinstance(signal, signals.LimitReached):
        return signal.limit in NOT_OPENED
    return isinstance(signal, signals.DuplicateTurn)


def _fault(counter: Counted | None, metric: str, labels: tuple[str, ...], known: dict[str, Counted]) -> str:
    """Say which count is a bug, and what is allowed."""
    if counter is None:
        return f"count {metric}{labels} names no metric; known: {', '.join(known)}"
    return f"count {metric}{labels}: {counter.fault(labels)}"
