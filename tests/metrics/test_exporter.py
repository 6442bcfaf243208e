"""Over real HTTP: the host's own exporter, and ours for hosts without one."""

import socket
from urllib.request import Request, urlopen

import pytest
from prometheus_client import CollectorRegistry, Counter, start_http_server
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from tests.metrics.conftest import INCIDENT, Play
from turnkeeper.engine.errors import ConfigError
from turnkeeper.metrics.exporter import Exporter
from turnkeeper.metrics.instruments import Instruments


def get(port: int, accept: str = "text/plain") -> str:
    with urlopen(Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept}), timeout=10) as answer:
        assert answer.status == 200
        return str(answer.read().decode())


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def test_the_hosts_own_exporter_serves_the_incident(play: Play) -> None:
    """The host serves its registry as it always did; our counters stand beside its own."""
    ran = play(INCIDENT)
    registry = ran.probe.registry
    Counter("host_messages", "The host's own.", registry=registry).inc(3)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    try:
        found = samples(get(server.server_port))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert found["host_messages_total", ()] == 3
    assert found["turnkeeper_fold_replies_attributed_total", (("source", "autosteer"),)] == 1
    assert found["turnkeeper_turns_settled_total", (("outcome", "final-reply"),)] == 1
    assert found["turnkeeper_late_then_rescued_total", (("source", "autosteer"),)] == 0
    assert found["turnkeeper_stop_texts_total", (("result", "suppressed-different"),)] == 1
    assert found["turnkeeper_turn_seconds_count", ()] == 1


def test_an_exporter_for_hosts_without_one(play: Play) -> None:
    ran = play(INCIDENT)
    with Exporter(ran.probe.registry, "127.0.0.1:0") as exporter:
        assert exporter.port != 0
        exporter.start()  # again: nothing
        text = get(exporter.port)
        port = exporter.port
        assert "# TYPE turnkeeper_turn_seconds histogram" in text
        found = samples(text)
    assert found["turnkeeper_rescues_total", (("kind", "consumed-rescue"),)] == 0
    exporter.stop()  # again: nothing
    with pytest.raises(OSError, match="refused"):
        get(port)


def test_both_formats_can_be_parsed(play: Play) -> None:
    with Exporter(play(INCIDENT).probe.registry, "127.0.0.1:0") as exporter:
        text = get(exporter.port, "application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    names = {family.name for family in openmetrics(text)}  # type: ignore[no-untyped-call]  # it has no types
    assert names >= {"turnkeeper_events", "turnkeeper_event_seconds"}


def test_it_can_be_started_again_where_it_was() -> None:
    registry = CollectorRegistry()
    Instruments.on(registry)
    with Exporter(registry, "127.0.0.1:0") as exporter:
        port = exporter.port
    with Exporter(registry, f"127.0.0.1:{port}"):
        assert "turnkeeper_open_turns 0.0" in get(port)


@pytest.mark.parametrize(
    "addr", ["", "9464", ":9464", "localhost", "localhost:", "localhost:http", "localhost:65536", "::1:9464", "h:-1"]
)
def test_an_address_that_cannot_be_read(addr: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Exporter(CollectorRegistry(), addr)
    assert str(caught.value) == (
        f'metrics.addr is {addr!r}; expected host:port with a port from 0 to 65535, as "127.0.0.1:9464" or "[::1]:9464"'
    )


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        addr = f"127.0.0.1:{taken.getsockname()[1]}"
        exporter = Exporter(CollectorRegistry(), addr)
        with pytest.raises(ConfigError) as caught:
            exporter.start()
    assert f"metrics.addr is '{addr}'; nobody can listen there (Address already in use)" in str(caught.value)
    assert "expected an address of this machine and a free port (0: any)" in str(caught.value)
