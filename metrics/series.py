"""The numbers behind the instruments: plain integers, and the one collector that reads them.

Nothing here knows what is counted. A family has a closed set of values for each label, so the number of
series is known from the code and every series is exported from the start, at zero: a rate over a counter
then also sees its first increment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from threading import Lock
from typing import Generic, TypeVar

import msgspec
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

__all__ = ["Bucketed", "Counted", "Family", "Gauged", "SeriesCollector", "Since"]

PREFIX = "turnkeeper_"
K = TypeVar("K")


class Family(msgspec.Struct, frozen=True, gc=False):
    """One metric: its name without prefix and suffix, its help text, and the closed set of each label."""

    name: str
    about: str
    labels: dict[str, tuple[str, ...]] = {}
    starts: int = 0
    """The value before anything was counted or set."""

    def series(self) -> Iterator[tuple[str, ...]]:
        """Yield every combination of label values."""
        return product(*self.labels.values())


class Counted:
    """A counter: one integer for each combination of its label values."""

    __slots__ = ("family", "values")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values = dict.fromkeys(family.series(), family.starts)

    def fault(self, labels: tuple[str, ...]) -> str:
        """Say what is wrong with label values that are no series of this family."""
        names = tuple(self.family.labels)
        if len(labels) != len(names):
            return f"expected {len(names)} label values ({', '.join(names) or 'none'})"
        for name, value, known in zip(names, labels, self.family.labels.values(), strict=True):
            if value not in known:
                return f"{name} is {value!r}; expected one of {', '.join(known)}"
        return ""

    def metric(self) -> Metric:
        """Return the family as the exporter writes it."""
        family = CounterMetricFamily(PREFIX + self.family.name, self.family.about, labels=tuple(self.family.labels))
        for labels, value in self.values.items():
            family.add_metric(labels, value)
        return family


class Gauged:
    """A gauge: an integer that was set, or a callable that gives it when it is asked for."""

    __slots__ = ("family", "readers", "values")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values = dict.fromkeys(family.series(), family.starts)
        self.readers: dict[tuple[str, ...], Callable[[], int]] = {}

    def metric(self) -> Metric:
        """Return the family as the exporter writes it."""
        family = GaugeMetricFamily(PREFIX + self.family.name, self.family.about, labels=tuple(self.family.labels))
        for labels, value in self.values.items():
            reader = self.readers.get(labels)
            family.add_metric(labels, value if reader is None else reader())
        return family


class Bucketed:
    """A histogram over integers of one unit; seconds appear only when it is read.

    Args:
        family: its name and help; it has no labels.
        bounds: upper bounds of the buckets, in the unit, ascending.
        per_second: how many of the unit make a second.

    """

    __slots__ = ("bounds", "counts", "family", "per_second", "total")

    def __init__(self, family: Family, bounds: tuple[int, ...], per_second: int) -> None:
        self.family = family
        self.bounds = bounds
        self.per_second = per_second
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    def add(self, value: int) -> None:
        """Count one duration in the unit; one below zero (a clock set back) counts as zero."""
        self.counts[bisect_left(self.bounds, value)] += 1
        if value > 0:
            self.total += value

    def metric(self) -> Metric:
        """Return the family as the exporter writes it: cumulative buckets, in seconds."""
        family = HistogramMetricFamily(PREFIX + self.family.name, self.family.about)
        names = [*(str(bound / self.per_second) for bound in self.bounds), "+Inf"]
        running, buckets = 0, []
        for name, count in zip(names, self.counts, strict=True):
            running += count
            buckets.append((name, running))
        family.add_metric((), buckets, self.total / self.per_second)
        return family


class Since(Generic[K]):
    """When things began, by key; at most `limit` of them, the oldest leave first and are never measured."""

    __slots__ = ("_began_ms", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._began_ms: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self._began_ms)

    def begin(self, key: K, at_ms: int) -> None:
        """Start the clock of a key; one that runs starts anew."""
        self._began_ms.pop(key, None)
        if len(self._began_ms) >= self.limit:
            del self._began_ms[next(iter(self._began_ms))]
        self._began_ms[key] = at_ms

    def end(self, key: K, at_ms: int) -> int | None:
        """Stop the clock of a key and return how long it ran; None: it did not."""
        began_ms = self._began_ms.pop(key, None)
        return None if began_ms is None else at_ms - began_ms

    def clear(self) -> None:
        """Forget everything."""
        self._began_ms.clear()


class SeriesCollector(Collector):
    """What a registry asks: reads all families at once.

    Integers are read under the lock that guards counting, so a scrape never shows half a run. Callables of
    gauges are called without it; they may be called from any thread, and what they raise fails the scrape.
    """

    def __init__(self, lock: Lock, counted: Iterable[Counted | Bucketed], gauges: Iterable[Gauged]) -> None:
        self._lock = lock
        self._counted = tuple(counted)
        self._gauges = tuple(gauges)

    def describe(self) -> Iterable[Metric]:
        """Name the families, so that a registry refuses a second collector with the same names."""
        return [each.metric() for each in self._counted] + [
            GaugeMetricFamily(PREFIX + each.family.name, each.family.about) for each in self._gauges
        ]

    def collect(self) -> Iterable[Metric]:
        """Return every family with its values."""
        with self._lock:
            counted = [each.metric() for each in self._counted]
        return counted + [each.metric() for each in self._gauges]
