"""A restart tells every owner in one record, chat by chat: no chat holds up another."""

from __future__ import annotations

from typing import Any

import pytest

from turnkeeper.engine import cell as cells
from turnkeeper.engine import events
from turnkeeper.engine.cell import Cell
from turnkeeper.engine.ids import chat_at
from turnkeeper.engine.journal import Body, RecoveredBody
from turnkeeper.engine.protocol import At, Message, Recover, Transition
from turnkeeper.engine.signals import SetAside


def test_a_restart_with_more_owners_than_a_run_may_take_steps_is_not_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound was 100,000 steps; with as many chats a restart told none of them that it was one."""
    monkeypatch.setattr(cells, "STEPS_MAX", 10)
    cell = Cell()
    for n in range(30):
        assert cell.apply(Body(event=events.ChatOpened(f"c{n}")), 0, n + 1).error is None
    run = cell.apply(Body(recovered=RecoveredBody(5)), 5, 31)
    assert run.error is None
    assert run.steps == 30


def test_a_chat_that_cannot_recover_stays_as_it_was_and_the_others_recover(monkeypatch: pytest.MonkeyPatch) -> None:
    real = cells.STEPS["turn"]

    def step(state: Any, message: Message, at: At) -> Transition[Any]:
        if isinstance(message, Recover) and state.chat == "c1":
            raise KeyError("a bug of ours")
        return real(state, message, at)

    monkeypatch.setitem(cells.STEPS, "turn", step)
    cell = Cell()
    for n in range(3):
        assert cell.apply(Body(event=events.TurnOpened(f"c{n}", "t")), 0, n + 1).error is None
    before = cell.owners[chat_at("c1")].state
    run = cell.apply(Body(recovered=RecoveredBody(5)), 50_000, 4)
    assert [(chat, type(error)) for chat, error in run.failed] == [("c1", KeyError)]
    assert [(one.chat, one.error) for one in run.signals if isinstance(one, SetAside)] == [("c1", "KeyError")]
    assert run.error is None
    assert cell.owners[chat_at("c1")].state is before
    turns = {owner.state.chat: owner.state.active_ms for at, owner in cell.owners.items() if at.kind == "turn"}
    assert turns == {"c0": 50_000, "c1": 0, "c2": 50_000}
