"""The face: names, settings while it runs, broadcasts, looking in, metrics, and a clock that is real."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import urllib.request
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import turnkeeper
from tests.actors.hosts import PATIENCE_S, QUICK, Async, Plain, activity, opened, reply
from turnkeeper import ConfigError, Engine, MemoryJournal, commands, errors, events
from turnkeeper.actors.clock import WallClock
from turnkeeper.engine.invariants import violations
from turnkeeper.engine.journal import decode_frame
from turnkeeper.engine.lab.clock import VirtualClock


def test_every_name_of_the_face_is_there() -> None:
    for name in turnkeeper.__all__:
        assert getattr(turnkeeper, name) is not None
    assert turnkeeper.events is events
    assert set(errors.__all__) <= set(turnkeeper.__all__)
    assert set(turnkeeper.__all__) <= set(dir(turnkeeper))
    with pytest.raises(AttributeError, match="module 'turnkeeper' has no attribute 'Engin'"):
        turnkeeper.Engin  # noqa: B018


def test_the_engine_loads_neither_pykka_nor_prometheus() -> None:
    code = "import sys, turnkeeper.engine, turnkeeper; turnkeeper.events; turnkeeper.load_config({}); print(list(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert not {"pykka", "prometheus_client", "sqlite3"} & set(eval(out))  # noqa: S307 - a list that we printed


def test_an_engine_without_a_registry_loads_no_prometheus() -> None:
    code = (
        "import sys; from turnkeeper import Engine, events\n"
        "class G:\n    def perform(self, command): return None\n"
        "with Engine({}, G()) as e: e.post(events.Activity('c', 'x')).wait(10)\n"
        "print('prometheus_client' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"


# ---------------------------------------------------------------- settings


def test_reload_acts_between_two_events_and_an_open_turn_keeps_its_policy() -> None:
    journal, clock, gateway = MemoryJournal(), VirtualClock(), Plain()
    with Engine({"timers": {"stop_grace_ms": 5000}}, gateway, journal=journal, clock=clock) as engine:
        engine.post(opened("c1", "P"))
        engine.reload({"timers": {"stop_grace_ms": 100}}).wait(PATIENCE_S)
        assert engine.config.timers.stop_grace_ms == 100
        engine.post(opened("c2", "Q"))
        for chat, turn in (("c1", "P"), ("c2", "Q")):
            engine.post(events.Stopped(chat, "text", turn_id=turn))
        engine.idle(PATIENCE_S)
        clock.advance_to(100)
        engine.idle(PATIENCE_S)
        assert [command.turn_id for command in gateway.of(commands.Send)] == ["Q"]
        clock.advance_to(5000)
        engine.idle(PATIENCE_S)
        assert [command.turn_id for command in gateway.of(commands.Send)] == ["Q", "P"]
    graces = [
        record.body.configured.timers.stop_grace_ms
        for frame in journal.frames
        for record in decode_frame(frame)
        if record.body.configured is not None
    ]
    assert graces == [5000, 100]


def test_a_bad_configuration_keeps_the_old_one_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    with Engine({}, Plain(), registry=registry) as engine:
        before = engine.config
        assert registry.get_sample_value("turnkeeper_config_last_reload_successful") == 1
        with pytest.raises(ConfigError, match=r"timers\.stop_grace_ms is -1"):
            engine.reload({"timers": {"stop_grace_ms": -1}})
        assert registry.get_sample_value("turnkeeper_config_last_reload_successful") == 0
        assert engine.config is before
        engine.reload({}).wait(PATIENCE_S)
        assert registry.get_sample_value("turnkeeper_config_last_reload_successful") == 1
    assert "the configuration stays as it was" in caplog.text


def test_concurrency_is_reloaded_too() -> None:
    with Engine({"delivery": {"concurrency": 1}}, Plain()) as engine:
        engine.reload({"delivery": {"concurrency": 9}}).wait(PATIENCE_S)
        assert engine.look(lambda _: engine._shard.performer._slots()) == 9


@pytest.mark.parametrize("live", [True, False])
def test_invariants_are_checked_live_or_not_and_a_reload_says_so_too(live: bool) -> None:
    def checks(engine: Engine) -> bool:
        return engine.look(lambda cell: cell.judge is violations)

    with Engine({"invariants": {"live": live}}, Plain()) as engine:
        engine.post(opened("c1", "P")).wait(PATIENCE_S)
        assert checks(engine) is live
        engine.reload({"invariants": {"live": not live}}).wait(PATIENCE_S)
        assert checks(engine) is not live


# ---------------------------------------------------------------- chats


def test_a_broadcast_reaches_every_known_chat_above_the_watermark_too() -> None:
    seen: list[str] = []

    def observer(record: Any, _: Any) -> None:
        if isinstance(record.body.event, events.ServerRemoved):
            seen.append(record.body.event.chat)

    with Engine({"limits": {"ingress_high": 5, "ingress_low": 1}}, Plain(), observer=observer) as engine:
        for n in range(20):
            engine.post(opened(f"c{n}")).wait(PATIENCE_S)
        admissions = engine.broadcast(events.ServerRemoved("", "tg"))
        assert [admission.wait(PATIENCE_S).outcome for admission in admissions] == ["ok"] * 20
    assert sorted(seen) == sorted(f"c{n}" for n in range(20))


def test_inspect_is_plain_and_without_texts() -> None:
    with Engine({}, Plain()) as engine:
        engine.post(opened("c1"))
        engine.call(reply("c1", "k1", text="a secret text"), PATIENCE_S)
        found = engine.inspect("c1")
    assert found["turns"]["P"]["replies"] == 1
    assert "secret" not in json.dumps(found)
    assert engine.inspect("nobody") == {}


async def test_looking_in_from_the_loop_while_everybody_posts() -> None:
    async with Engine({}, Async()) as engine:

        async def post() -> None:
            for _ in range(200):
                await engine.post(activity("c1"))

        posting = [asyncio.ensure_future(post()) for _ in range(4)]
        for _ in range(50):
            assert set(engine.inspect("c1")) <= {"chat", "home", "ephemeral", "quiesced", "anchor", "wakes"} | {
                "turns",
                "inputs",
                "channels",
                "receipts",
            }
            await asyncio.sleep(0)
        await asyncio.gather(*posting)


# ---------------------------------------------------------------- metrics, logging, time


def test_metrics_of_a_running_engine_over_http() -> None:
    config = QUICK | {"metrics": {"addr": "127.0.0.1:0"}}
    registry = CollectorRegistry()
    with Engine(config, Plain(), registry=registry) as engine:
        engine.post(opened("c1"))
        engine.call(reply("c1", "k1"), PATIENCE_S)
        engine.post(events.Stopped("c1", "answer of k1"))
        engine.idle(PATIENCE_S)
        with urllib.request.urlopen(f"http://127.0.0.1:{engine.metrics_port}/metrics", timeout=PATIENCE_S) as answer:
            text = answer.read().decode()
    for line in (
        'turnkeeper_events_total{type="reply"} 1.0',
        'turnkeeper_turns_settled_total{outcome="final-reply"} 1.0',
        'turnkeeper_deliveries_total{outcome="sent",purpose="reply"} 1.0',
        'turnkeeper_live_actors{kind="chat"} 1.0',
        'turnkeeper_live_actors{kind="channel"} 1.0',
    ):
        assert line in text, line
    assert registry.get_sample_value("turnkeeper_event_seconds_count") >= 4  # type: ignore[operator]


def test_an_address_that_is_taken_stops_the_start() -> None:
    config = {"metrics": {"addr": "127.0.0.1:0"}}
    with Engine(config, Plain()) as first:
        taken = {"metrics": {"addr": f"127.0.0.1:{first.metrics_port}"}}
        with pytest.raises(ConfigError, match="nobody can listen there"):
            Engine(taken, Plain()).start()


def test_a_reload_moves_what_is_served() -> None:
    def scraped(engine: Engine) -> str:
        url = f"http://127.0.0.1:{engine.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    with Engine({}, Plain()) as engine:
        assert engine.metrics_port is None
        engine.reload({"metrics": {"addr": "127.0.0.1:0"}}).wait(PATIENCE_S)
        first = engine.metrics_port
        engine.post(activity("c1")).wait(PATIENCE_S)
        assert 'turnkeeper_events_total{type="activity"} 1.0' in scraped(engine)
        with pytest.raises(ConfigError, match="nobody can listen there"):
            engine.reload({"metrics": {"addr": "203.0.113.9:1"}})
        assert engine.metrics_port == first
        assert "turnkeeper_config_last_reload_successful 0.0" in scraped(engine)
        engine.reload({}).wait(PATIENCE_S)
        assert engine.metrics_port is None


def test_nothing_is_logged_unless_the_host_listens_and_never_a_text(caplog: pytest.LogCaptureFixture) -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("turnkeeper").handlers)
    caplog.set_level(logging.DEBUG)

    def fail(command: commands.Command) -> None:
        raise ValueError(f"could not send {getattr(command, 'text', '')}")

    with Engine({"delivery": {"retries": 0}}, Plain(fail)) as engine:
        engine.post(opened("c1"))
        engine.call(reply("c1", "k1", text="token-9f3a"), PATIENCE_S)
        engine.idle(PATIENCE_S)
    assert "token-9f3a" not in caplog.text
    (told,) = [r for r in caplog.records if r.__dict__.get("command") == "3.0"]
    assert (told.__dict__["chat"], told.__dict__["error"]) == ("c1", "ValueError")


async def test_a_deadline_of_the_real_clock() -> None:
    config = {"timers": {"stop_grace_ms": 20}}
    async with Engine(config, Async()) as engine:
        await engine.post(opened("c1"))
        await engine.post(events.Stopped("c1", "text", turn_id="P"))
        ended = await asyncio.wait_for(engine.turn_settled("c1", "P"), PATIENCE_S)
    assert ended.outcome == "fallback"


def test_the_wall_clock_goes_on_and_never_back() -> None:
    clock = WallClock()
    clock.on_change(lambda: None)
    times = [clock.now_ms() for _ in range(1000)]
    assert times == sorted(times)
    assert times[0] > 1_700_000_000_000
    assert clock.timeout_s(clock.now_ms() - 5) == 0
    assert (clock.timeout_s(clock.now_ms() + 60_000) or 0) > 59


def test_the_engine_never_stamps_before_what_it_journaled() -> None:
    """The wall was set back between two lives."""
    journal = MemoryJournal()
    with Engine({}, Plain(), journal=journal, clock=VirtualClock(100_000)) as engine:
        engine.post(activity("c1")).wait(PATIENCE_S)
    with Engine({}, Plain(), journal=MemoryJournal(journal.frames), clock=VirtualClock(5)) as engine:
        assert engine.post(activity("c1")).wait(PATIENCE_S).at_ms == 100_000
