"""GET /metrics for hosts without an exporter of their own, on `metrics.addr`.

prometheus_client's server does the serving: plain HTTP, a daemon thread of its own and one for each open
connection, and no question who asks. Bind it where only the scraper reaches it.
"""

from __future__ import annotations

from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from prometheus_client import CollectorRegistry, start_http_server

from turnkeeper.engine.config import host_port
from turnkeeper.engine.errors import ConfigError

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

__all__ = ["Exporter"]


class Exporter:
    """Serves one registry over HTTP until it is stopped; `with` starts and stops it.

    Args:
        registry: what is served: everything in it, not turnkeeper's metrics alone.
        addr: `metrics.addr`, `host:port`; an IPv6 host in brackets. Port 0: any free one, see `port`.

    Raises:
        ConfigError: at once, if the address cannot be read; from `start`, if nobody can listen there.

    """

    def __init__(self, registry: CollectorRegistry, addr: str) -> None:
        try:
            self._host, self._port = host_port(addr)
        except ValueError as error:
            raise ConfigError(f"metrics.addr is {addr!r}; {error}") from error
        self._registry = registry
        self._addr = addr
        self._serving: tuple[WSGIServer, Thread] | None = None

    @property
    def port(self) -> int:
        """The port that is listened on; before `start` and after `stop` the one asked for."""
        return self._port if self._serving is None else self._serving[0].server_port

    def start(self) -> None:
        """Listen and serve. A second start is none.

        Raises:
            ConfigError: the port is taken, or the host is no address of this machine.

        """
        if self._serving is not None:
            return
        try:
            self._serving = start_http_server(self._port, self._host, self._registry)
        except OSError as error:
            raise ConfigError(
                f"metrics.addr is {self._addr!r}; nobody can listen there ({error.strerror or error}); "
                "expected an address of this machine and a free port (0: any)"
            ) from error

    def stop(self) -> None:
        """Stop listening; a scrape that is being answered is answered. A second stop is none."""
        if self._serving is None:
            return
        server, thread = self._serving
        self._serving = None
        server.shutdown()
        thread.join()
        server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
