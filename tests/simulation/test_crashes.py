"""The process dies before or after any record: users see one answer, never two, never none."""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

import pytest

from tests.simulation.playing import SCENARIOS, Story, has_a_send, play_story, shown, stories
from turnkeeper.engine.commands import Send
from turnkeeper.engine.lab.simulation.player import Player, Raw

EVERY = int(os.environ.get("CRASH_EVERY", "5"))
"""One record in so many is tried; `CRASH_EVERY=1` tries them all."""


class Honest(Player):
    """Plays a story whose platform can say of everything whether it arrived."""

    def crash_with_answers(self, cut: Raw | None, raw: Raw) -> None:
        """Play a step and die in it; the platform is asked afterwards, so its answers are made then."""
        if cut is not None:
            self.platform.reconcile = self._arrived  # type: ignore[method-assign]
            self.play({"crash": True, **cut, "reconcile": {}})
        self.play(raw)

    def _arrived(self, delivery: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
        operation = self.oracle.seen(delivery.split(":")[1]).operations.get(delivery)
        if operation is None or any(
            command.delivery == delivery for kind, command in self.platform.visible if kind == "failed"
        ):
            return "not_sent"
        if delivery in self.platform.held():
            return "unresolved"
        seen = [kind for kind, command in self.platform.visible if command.delivery == delivery]
        return "sent" if "sent" in seen else "unresolved" if "unknown" in seen else "not_sent"


def records_of(story: Story) -> list[int]:
    """Count the records that each step leads to."""
    player = Player(story.config)
    counts: list[int] = []
    for raw in story.steps:
        before = player.watcher.records
        player.play(raw)
        counts.append(player.watcher.records - before)
    return counts


def crashed(story: Story, step: int, record: int, *, before: bool) -> Player:
    """Play a story in which the process dies at a record of a step."""
    player = Honest(story.config)
    for index, raw in enumerate(story.steps):
        cut = {"during": {"records": record, "before": before}} if index == step else None
        player.crash_with_answers(cut, raw)
    return player


def twice(player: Player) -> list[str]:
    """List the sends that users see twice."""
    operations = player.oracle.seen("c1").operations
    return [
        key
        for key, attempts in shown(player).items()
        if sum(attempt.sure for attempt in attempts) > 1 and not operations[key].lied
    ]


def answers(player: Player) -> set[tuple[str, str | None]]:
    """What was said for which turn, as far as it is visible."""
    return {
        (operation.command.text, operation.command.turn_id)
        for operation in player.oracle.seen("c1").operations.values()
        if isinstance(operation.command, Send) and operation.visible
    }


def points(story: Story, every: int) -> list[tuple[int, int, bool]]:
    """List where the process dies: (step, record, before it)."""
    found = [
        (step, record, before)
        for step, count in enumerate(records_of(story))
        for record in range(1, count + 1)
        for before in (True, False)
    ]
    return [point for point in found if crc32(f"{story.name}{point}".encode()) % every == 0]


@pytest.mark.parametrize("name", ["a01-combined-final", "a05-edit-fold", "a07-failed-then-retried"])
def test_the_incident_survives_a_crash_at_every_record(name: str) -> None:
    """One combined answer, and only one, wherever the process dies."""
    story = Story(SCENARIOS / f"{name}.jsonl")
    expected = answers(play_story(story))
    for step, record, before in points(story, 1):
        player = crashed(story, step, record, before=before)
        where = f"{'before' if before else 'after'} record {record} of {story.steps[step]}"
        assert answers(player) == expected, where
        assert not twice(player), where
        assert not player.breaches, where


@pytest.mark.parametrize("story", [one for one in stories() if has_a_send(one)], ids=lambda story: story.name)
def test_no_answer_is_doubled_by_a_crash(story: Story) -> None:
    for step, record, before in points(story, EVERY):
        player = crashed(story, step, record, before=before)
        where = f"{'before' if before else 'after'} record {record} of {story.steps[step]}"
        assert not twice(player), where
        assert not player.breaches, f"{where}: {player.breaches}"


def test_there_are_stories_to_crash() -> None:
    assert sum(map(has_a_send, stories())) > 100
    assert Path(SCENARIOS).is_dir()
