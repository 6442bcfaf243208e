"""Through the running engine: actors, journal, commit, then the counters, read over HTTP."""

import asyncio
from urllib.request import urlopen

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from turnkeeper import ChannelRef, Engine, commands, events
from turnkeeper.engine.journal import MemoryJournal

ROOM = ChannelRef("tg", "100")


class Platform:
    """Takes everything; message ids count from 9001."""

    def __init__(self) -> None:
        self.sent: list[commands.Send] = []

    async def perform(self, command: commands.Command) -> events.Settled | None:
        if not isinstance(command, commands.Send):
            return None
        self.sent.append(command)
        return events.Settled(command.chat, command.delivery, "sent", messages=(9000 + len(self.sent),))


async def incident(engine: Engine) -> None:
    await engine.post(events.TurnOpened("c1", "P", channel=ROOM, message=6406))
    await engine.post(events.InputFolded("c1", "F", "autosteer", channel=ROOM, message=6407))
    reply = events.Reply("c1", "k1", turn_id="F", consumed_turn_ids=["P", "F"], text="Both are done.")
    assert (await engine.ask(reply)).ok
    await engine.post(events.Stopped("c1", "In short: done."))
    await engine.turn_settled("c1", "P")


def scrape(port: int) -> dict[tuple[str, tuple[str, ...]], float]:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {(s.name, tuple(s.labels.values())): s.value for family in families for s in family.samples}


SHORT = {"timers": {"stop_grace_ms": 10}}


async def test_the_hosts_registry_has_the_incident() -> None:
    registry = CollectorRegistry()
    server, thread = start_http_server(0, "127.0.0.1", registry)
    platform = Platform()
    async with Engine(SHORT, platform, registry=registry) as engine:
        await incident(engine)
        await asyncio.to_thread(engine.idle, 10)
        found = await asyncio.to_thread(scrape, server.server_port)
    server.shutdown()
    server.server_close()
    thread.join()
    assert [send.text for send in platform.sent] == ["Both are done."]
    assert found["turnkeeper_fold_replies_attributed_total", ("autosteer",)] == 1
    assert found["turnkeeper_turns_settled_total", ("final-reply",)] == 1
    assert found["turnkeeper_stop_texts_total", ("suppressed-different",)] == 1
    assert found["turnkeeper_late_then_rescued_total", ("autosteer",)] == 0
    assert found["turnkeeper_events_total", ("turn_opened",)] == 1
    assert found["turnkeeper_live_actors", ("chat",)] == 1
    assert found["turnkeeper_open_turns", ()] == 0
    assert found["turnkeeper_deliveries_in_flight", ()] == 0
    assert found["turnkeeper_ingress_depth_max", ()] == 0
    assert found["turnkeeper_config_last_reload_successful", ()] == 1
    assert found["turnkeeper_event_seconds_count", ()] > 5
    assert found["turnkeeper_delivery_seconds_count", ()] == 1
    assert found["turnkeeper_turn_seconds_count", ()] == 1


async def test_a_second_engine_goes_on_counting_and_a_replay_counts_nothing() -> None:
    """The same process, registry and journal: what the first counted stands, and is not counted again."""
    registry, journal = CollectorRegistry(), MemoryJournal()
    async with Engine(SHORT, Platform(), registry=registry, journal=journal) as engine:
        await incident(engine)
    async with Engine(SHORT, Platform(), registry=registry, journal=MemoryJournal(journal.frames)) as engine:
        await engine.post(events.Activity("c1", "hook"))
    assert registry.get_sample_value("turnkeeper_events_total", {"type": "turn_opened"}) == 1
    assert registry.get_sample_value("turnkeeper_events_total", {"type": "activity"}) == 1
    assert registry.get_sample_value("turnkeeper_turns_settled_total", {"outcome": "final-reply"}) == 1
    assert registry.get_sample_value("turnkeeper_open_turns") == 0
