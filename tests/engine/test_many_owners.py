"""A restart tells every owner in one run: the bound of a run is not one of how many owners there are."""

from __future__ import annotations

import pytest

from turnkeeper.engine import cell as cells
from turnkeeper.engine import events
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.journal import Body, RecoveredBody


def test_a_restart_with_more_owners_than_a_run_may_take_steps_is_not_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound was 100,000 steps; with as many chats a restart told none of them that it was one."""
    monkeypatch.setattr(cells, "STEPS_MAX", 10)
    cell = Cell()
    for n in range(30):
        assert cell.apply(Body(event=events.ChatOpened(f"c{n}")), 0, n + 1).error is None
    run = cell.apply(Body(recovered=RecoveredBody(5)), 5, 31)
    assert run.error is None
    assert run.steps == 30
