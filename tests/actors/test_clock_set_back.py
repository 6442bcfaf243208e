"""A clock that was set back between two runs does not stop the engine's time."""

from __future__ import annotations

from tests.actors.hosts import PATIENCE_S, Plain, opened
from turnkeeper import Engine, MemoryJournal, commands, events
from turnkeeper.engine.lab.clock import VirtualClock

HOUR_MS = 3_600_000


def test_time_goes_on_from_the_journals_end() -> None:
    """It stood still until the clock had caught up: no grace, no retry and no bound came to its end for an hour."""
    journal, gateway = MemoryJournal(), Plain()
    with Engine({}, Plain(), journal=journal, clock=VirtualClock(HOUR_MS)) as engine:
        engine.post(opened("c1")).wait(PATIENCE_S)
    clock = VirtualClock()
    with Engine({}, gateway, journal=MemoryJournal(journal.frames), clock=clock) as engine:
        stopped = engine.post(events.Stopped("c1", text="T", turn_id="P")).wait(PATIENCE_S)
        assert stopped.at_ms == HOUR_MS
        clock.advance_to(1_999)
        engine.idle(PATIENCE_S)
        assert not gateway.of(commands.Send)
        clock.advance_to(2_000)
        engine.idle(PATIENCE_S)
        assert [send.text for send in gateway.of(commands.Send)] == ["T"]
