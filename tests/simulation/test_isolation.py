"""Chats are strangers: whatever another chat does, the first one's commands, signals and states stay the same."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.simulation.playing import Story, stories
from turnkeeper.engine import codec
from turnkeeper.engine.commands import Command, Settleable
from turnkeeper.engine.ids import MessageId
from turnkeeper.engine.lab.simulation.platform import WatchedPlatform
from turnkeeper.engine.lab.simulation.player import Player, Raw

NOISE: tuple[Raw, ...] = (
    {"turn_opened": {"turn_id": "P", "channel": "tg/100", "message": 6406}},
    {"input_folded": {"turn_id": "F", "source": "autosteer", "channel": "tg/100", "message": 6407}},
    {"reply": {"call_id": "c1", "turn_id": "F", "consumed_turn_ids": ["P", "F"], "text": "Combined"}},
    {"preview": {"text": "snapshot"}},
    {"stopped": {"text": "Recap"}, "deliver": "hold"},
    {"interrupted": {}},
    {"wake": {"reason": "timer"}},
    {"lost": {"reason": "gone"}},
)
"""What a noisy neighbour does: the same ids, calls, channel and messages."""


class Apart(WatchedPlatform):
    """Gives each chat message ids of its own."""

    def _made_by(self, command: Settleable) -> tuple[MessageId, ...]:
        mine = self.__dict__.setdefault("apart", {}).setdefault(command.chat, {"next": 9001, "bubbles": {}})
        self._next, self._bubbles = mine["next"], mine["bubbles"]
        made = super()._made_by(command)
        mine["next"] = self._next
        return made


class Watcher(Player):
    """Remembers what one chat was told and commanded."""

    def __init__(self, story: Story) -> None:
        self.told: list[Any] = []
        super().__init__(story.config)
        self.platform.__class__ = Apart

    def _observe(self, record: Any, run: Any) -> None:
        super()._observe(record, run)
        mine = [signal for signal in run.signals if signal.chat in {"c1", "c2"}]
        self.told += [msgspec.to_builtins(signal) for signal in mine]
        self.told += [_anonymous(command) for command in run.commands if command.chat in {"c1", "c2"}]


def _anonymous(command: Command) -> Any:
    return {**msgspec.to_builtins(command), "id": ""}


def _states(player: Player) -> dict[str, bytes]:
    owners = player.plain.cell.owners
    return {f"{at.chat}{at}": codec.encode(one.state) for at, one in owners.items() if at.chat in {"c1", "c2"}}


SHARED = {
    *("r-limits-chats", "q-call-of-a-chat-too-many", "r-z-drop-check-before", "r-z-silence-restarts"),
    "q-crash-within-a-step",
}
"""What the whole cell shares: the number of chats; how long the process was down, counted from any last record; its death."""


@pytest.mark.parametrize("story", [one for one in stories() if one.name not in SHARED], ids=lambda story: story.name)
def test_a_neighbour_changes_nothing(story: Story) -> None:
    alone, beside = Watcher(story), Watcher(story)
    for index, raw in enumerate(story.steps):
        kind = next(iter(NOISE[index % len(NOISE)]))
        noise = NOISE[index % len(NOISE)]
        beside.play({**noise, kind: {"chat": "neighbour", **noise[kind]}})
        alone.play(raw)
        beside.play(raw)
    assert beside.told == alone.told
    assert _states(beside) == _states(alone)
