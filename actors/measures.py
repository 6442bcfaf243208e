"""From the running system to the metrics, and the limits that no step sees: of the ingress, waiters, dead letters."""

from __future__ import annotations

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
        self._instruments: Instruments | None = None
        self._exporter: Exporter | None = None
        if registry is None and addr is not None:
            from prometheus_client import CollectorRegistry  # noqa: PLC0415 - only who counts loads it

            registry = CollectorRegistry()
        if registry is not None:
            from turnkeeper.metrics.instruments import Instruments  # noqa: PLC0415 - only who counts loads it

            self._instruments = Instruments.on(registry)
        if registry is not None and addr is not None:
            from turnkeeper.metrics.exporter import Exporter  # noqa: PLC0415 - only who serves loads it

            self._exporter = Exporter(registry, addr)

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
        """Serve no longer."""
        if self._exporter is not None:
            self._exporter.stop()

    def watch(self, awake: Callable[[], Mapping[str, int]], longest: Callable[[], int]) -> None:
        """Let the gauges be read from the running system: actors by kind, and the longest queue of a chat."""
        if self._instruments is None:
            return
        self.reloaded(None)
        for kind in ("chat", "turn", "channel"):
            self._instruments.watch("live_actors", lambda kind=kind: awake().get(kind, 0), kind)  # type: ignore[misc]
        self._instruments.watch("ingress_depth_max", longest)

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
