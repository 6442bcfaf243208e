"""Playing scenarios without their expectations, so that what was seen can be compared between two runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from turnkeeper.engine.codec import EVENT_TYPES
from turnkeeper.engine.commands import Send
from turnkeeper.engine.lab.scenario import is_transcript, lines_of
from turnkeeper.engine.lab.simulation.player import Player, Raw

__all__ = ["SCENARIOS", "Story", "has_a_send", "play_story", "shown", "stories"]

SCENARIOS = Path(__file__).parents[1] / "scenarios"
PLAYED = {"advance", "settle", "deliver", "crash", "reload", *EVENT_TYPES}


class Story:
    """A scenario's settings and the steps that do something."""

    def __init__(self, file: Path) -> None:
        lines = lines_of(file)
        self.name = file.stem
        self.config: Raw = lines[0][1].get("config", {})
        self.steps: list[Raw] = [raw for _, raw in lines[1:] if next(iter(raw)) in PLAYED]


@cache
def stories() -> tuple[Story, ...]:
    """Read every scenario that is about turns."""
    files = sorted(SCENARIOS.glob("*.jsonl"))
    return tuple(Story(file) for file in files if not is_transcript(lines_of(file)))


def play_story(story: Story, player: Player | None = None) -> Player:
    """Play a story to its end."""
    player = player or Player(story.config)
    for raw in story.steps:
        player.play(raw)
    return player


@cache
def has_a_send(story: Story) -> bool:
    """Say whether anything is sent in it."""
    return bool(shown(play_story(story)))


def shown(player: Player, chat: str = "c1") -> dict[str, list[Any]]:
    """Return every send that arrived or may have, by delivery: its attempts."""
    operations = player.oracle.seen(chat).operations
    return {
        key: [attempt for attempt in operation.attempts if attempt.visible]
        for key, operation in operations.items()
        if isinstance(operation.command, Send) and operation.visible
    }
