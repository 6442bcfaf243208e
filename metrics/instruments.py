"""What the engine counts, on the registry that the host passes in.

The shard calls `observe` once for each live run, after the commit and never in a replay. An event that was
undone therefore counts as set aside and as nothing else. Steps name what they count (`Draft.count`); the
catalogue says which names and label values exist. A count outside it is a bug of ours: it raises where
`strict` is set, as in tests, and is counted as a broken invariant where it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry

from turnkeeper.engine import signals
from turnkeeper.engine.commands import TurnSettled
from turnkeeper.engine.errors import ConfigError, InvariantViolated
from turnkeeper.engine.events import Settled, TurnOpened
from turnkeeper.metrics import catalogue
from turnkeeper.metrics.series import Bucketed, Counted, Gauged, SeriesCollector, Since

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.journal import Body, Record
    from turnkeeper.engine.transcript.view import Report

__all__ = ["Instruments"]

MS, NS = 1_000, 1_000_000_000
"""Of these make a second."""
ERROR_MAX = 200
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
EVENT_KEYS = {kind: (name,) for kind, name in catalogue.EVENT_TYPES.items()}
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
        self._counts = {name: counter.values for name, counter in self._counters.items()}
        self._events = self._counts["events"]
        self._open_turns = self._gauges["open_turns"].values
        self._gauges["deliveries_in_flight"].readers[()] = self._handed.__len__
        self._heard: dict[type, Callable[[Any], None]] = {
            signals.LimitReached: self._limit_reached,
            signals.FinalizationWaited: self._waited,
            signals.DeliveryUnknown: self._unknown,
            signals.Recovered: self._recovered,
        }
        histograms = (self._event, self._delivery, self._turn, self._wait)
        try:
            registry.register(
                SeriesCollector(self._lock, (*self._counters.values(), *histograms), self._gauges.values())
            )
        except ValueError as error:
            raise ConfigError(
                f"registry: {_cut(str(error))}; "
                "take Instruments.on(registry) for the ones that are there, or another registry"
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
        body, event = record.body, record.body.event
        with self._lock:
            if event is not None:
                self._events[EVENT_KEYS[event.__class__]] += 1
            if spent_ns is not None:
                self._event.add(spent_ns)
            self._count(run)
            self._clock(body, run, record.at_ms)

    def _count(self, run: Run) -> None:
        for count in run.counts:
            self._add(count.metric, count.labels)
        for signal in run.signals:
            hear = self._heard.get(signal.__class__)
            if hear is not None:
                hear(signal)
        for name in run.violated:
            self._violated(name)

    def _clock(self, body: Body, run: Run, at_ms: int) -> None:
        event = body.event
        if event is None:
            self._hand_over(body, run, at_ms)
        elif isinstance(event, TurnOpened):
            self._open(event, run, at_ms)
        elif isinstance(event, Settled) and run.error is None:
            _take(self._delivery, self._handed.end(event.delivery, at_ms))
        for command in run.commands:
            if isinstance(command, TurnSettled):
                _take(self._turn, self._opened.end((command.chat, command.turn_id), at_ms))
                self._open_turns[()] = max(0, self._open_turns[()] - 1)

    def _add(self, metric: str, labels: tuple[str, ...]) -> None:
        try:
            self._counts[metric][labels] += 1
        except KeyError:
            self._add_unknown(metric, labels)

    def _add_unknown(self, metric: str, labels: tuple[str, ...]) -> None:
        """Count what no list has; what a step may raise is open, the label is not."""
        if metric == "set_aside":
            self._counts[metric][(catalogue.UNLISTED,)] += 1
        else:
            self._violated(catalogue.BAD_COUNT, _fault(metric, labels, self._counters))

    def _violated(self, name: str, why: str = "") -> None:
        listed = name in catalogue.INVARIANTS
        if self.strict and (why or not listed):
            raise InvariantViolated(
                why or f"invariant {name!r} is not listed; expected one of {', '.join(catalogue.INVARIANTS)}"
            )
        self._counts["invariant_violations"][(name if listed else catalogue.UNLISTED,)] += 1

    def _limit_reached(self, signal: signals.LimitReached) -> None:
        self._add("limit_reached", (signal.limit,))

    def _waited(self, signal: signals.FinalizationWaited) -> None:
        self._wait.add(signal.waited_ms)

    def _unknown(self, signal: signals.DeliveryUnknown) -> None:
        """Nobody settles it: it is in flight no longer, and not timed."""
        self._handed.end(signal.delivery, 0)

    def _recovered(self, signal: signals.Recovered) -> None:
        self._set("open_turns", signal.open_turns, ())

    def _hand_over(self, body: Body, run: Run, at_ms: int) -> None:
        """Start the clock of an attempt that goes to the host; after a restart no clock runs."""
        handed = body.handed
        if handed is not None:
            if run.go and handed.delivery.partition(":")[0] in TIMED:
                self._handed.begin(handed.delivery, at_ms)
        elif body.recovered is not None:
            self._handed.clear()
            self._opened.clear()

    def _open(self, event: TurnOpened, run: Run, at_ms: int) -> None:
        """Start the clock of a turn that opened; not every `turn_opened` opens one."""
        if run.error is None and not any(map(_refuses, run.signals)):
            self._opened.begin((event.chat, event.turn_id), at_ms)
            self._open_turns[()] += 1

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
            messages = self._counts["prompt_messages"]
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


def _cut(text: str) -> str:
    """Cut what names all metrics, one after the other."""
    return text if len(text) <= ERROR_MAX else f"{text[:ERROR_MAX]}…"


def _take(histogram: Bucketed, lasted_ms: int | None) -> None:
    if lasted_ms is not None:
        histogram.add(lasted_ms)


def _refuses(signal: signals.Signal) -> bool:
    """Say whether a signal tells that a `turn_opened` opened nothing."""
    if isinstance(signal, signals.LimitReached):
        return signal.limit in NOT_OPENED
    return isinstance(signal, signals.DuplicateTurn)


def _fault(metric: str, labels: tuple[str, ...], known: dict[str, Counted]) -> str:
    """Say which count is a bug, and what is allowed."""
    counter = known.get(metric)
    if counter is None:
        return f"count {metric}{labels} names no metric; known: {', '.join(known)}"
    return f"count {metric}{labels}: {counter.fault(labels)}"
