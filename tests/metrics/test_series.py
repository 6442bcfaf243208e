"""The plain integers below the instruments."""

from threading import Lock

from prometheus_client import CollectorRegistry

from turnkeeper.metrics.series import Bucketed, Counted, Family, Gauged, SeriesCollector, Since


def test_every_series_of_a_closed_family_is_there_at_zero() -> None:
    family = Family("doors", "Doors.", {"state": ("open", "shut"), "side": ("in", "out")})
    assert Counted(family).values == {("open", "in"): 0, ("open", "out"): 0, ("shut", "in"): 0, ("shut", "out"): 0}
    assert Counted(Family("rain", "Rain.")).values == {(): 0}


def test_clocks_are_bounded_and_the_oldest_is_given_up() -> None:
    since: Since[str] = Since(2)
    since.begin("a", 10)
    since.begin("b", 20)
    since.begin("a", 30)  # a second attempt: the clock starts anew, and b is the oldest now
    since.begin("c", 40)
    assert len(since) == 2
    assert since.end("b", 50) is None
    assert since.end("a", 50) == 20
    assert since.end("a", 60) is None
    since.clear()
    assert len(since) == 0


def test_a_bound_belongs_to_its_bucket() -> None:
    histogram = Bucketed(Family("wait_seconds", "Waits."), (1_000, 2_000), 1_000)
    for lasted_ms in (0, 1_000, 1_001, 2_000, 2_001):
        histogram.add(lasted_ms)
    assert histogram.counts == [2, 2, 1]


def test_a_scrape_reads_under_the_lock_of_counting() -> None:
    """A reader of a gauge may ask for the lock itself: it is not held then."""
    lock, registry = Lock(), CollectorRegistry()
    gauge = Gauged(Family("depth", "Depth."))
    gauge.readers[()] = lambda: int(lock.acquire(blocking=False)) + 6
    registry.register(SeriesCollector(lock, [Counted(Family("rain", "Rain."))], [gauge]))
    assert registry.get_sample_value("turnkeeper_depth") == 7
