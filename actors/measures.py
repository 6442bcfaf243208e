"""From the running system to the metrics, and the limits that no step sees: of the ingress, waiters, dead letters."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from turnkeeper.actors.log import log
from turnkeeper.engine.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client import CollectorRegistry

    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.journal import Record
    from turnkeeper.metrics.exporter import Exporter
    from turnkeeper.metrics.instruments import Instruments

__all__ = ["Measures"]


class Measures:
    """Counts on the host's registry, or not at all.

    Args:
        registry: the host's; without one, and with `addr`, one that only the exporter sees.
        addr: `metrics.addr`.

    Raises:
        ConfigError: the registry has other metrics of these names, or the address cannot be read.

    """

    def __init__(self, registry: CollectorRegistry | None, addr: str | None) -> None:
        self._registry = registry
        self._addr = addr
        self._instruments: Instruments | None = None
        self._awake: Callable[[], Mapping[str, int]] = dict
        self._longest: Callable[[], int] = int
        if registry is not None:
            self._count_on(registry)
        self._exporter = self._exporter_on(addr)

    def _count_on(self, registry: CollectorRegistry) -> None:
        from turnkeeper.metrics.instruments import Instruments  # noqa: PLC0415 - only who counts loads it

        made = Instruments.on(registry)
        for kind in ("chat", "turn", "channel"):
            made.watch("live_actors", lambda kind=kind: self._awake().get(kind, 0), kind)  # type: ignore[misc]
        made.watch("ingress_depth_max", self._depth)
        made.set("config_last_reload_successful", 1)
        self._instruments = made

    def _exporter_on(self, addr: str | None) -> Exporter | None:
        if addr is None:
            return None
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 - only who serves loads it

        from turnkeeper.metrics.exporter import Exporter  # noqa: PLC0415 - only who serves loads it

        if self._registry is None:
            self._registry = CollectorRegistry()
            self._count_on(self._registry)
        return Exporter(self._registry, addr)

    def _depth(self) -> int:
        return self._longest()

    @property
    def port(self) -> int | None:
        """The port that GET /metrics is served on, if it is."""
        return None if self._exporter is None else self._exporter.port

    def start(self) -> None:
        """Serve, if `metrics.addr` says so.

        Raises:
            ConfigError: nobody can listen there.

        """
        if self._exporter is not None:
            self._exporter.start()

    def stop(self) -> None:
        """Serve no longer; the host's registry must not keep a stopped engine alive."""
        self.watch(dict, int)
        if self._exporter is not None:
            self._exporter.stop()

    def move(self, addr: str | None) -> None:
        """Serve on another address, or nowhere.

        Raises:
            ConfigError: it cannot be read, or nobody can listen there; then it stays where it is.

        """
        if addr == self._addr:
            return
        moved, left = self._exporter_on(addr), self._exporter
        if moved is not None:
            moved.start()
        self._addr, self._exporter = addr, moved
        if left is not None:
            # It waits for a scrape that is being answered; whoever reloads, perhaps on a loop, does not.
            threading.Thread(target=left.stop, name="turnkeeper-metrics", daemon=True).start()

    def watch(self, awake: Callable[[], Mapping[str, int]], longest: Callable[[], int]) -> None:
        """Let the gauges be read from the running system: actors by kind, and the longest queue of a chat."""
        self._awake, self._longest = awake, longest

    def observe(self, record: Record, run: Run, spent_ns: int) -> None:
        """Count one committed record."""
        if self._instruments is not None:
            self._instruments.observe(record, run, spent_ns)

    def limit(self, name: str) -> None:
        """A limit of the engine decided."""
        if self._instruments is not None:
            self._instruments.count("limit_reached", name)

    def reloaded(self, error: ConfigError | None) -> None:
        """A configuration was read, or not."""
        if error is not None:
            log.error("reload: the configuration stays as it was: %s", error)
        if self._instruments is not None:
            self._instruments.set("config_last_reload_successful", error is None)
