"""What the simulated people and machines know: the chats, their inputs and turns, the agent's calls.

A model's next move is drawn from this and from the seed, never from the engine's state: what is known here was
posted by the models themselves, or came back as a command.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from turnkeeper.engine.commands import Redeliver, Rewind, Send, TurnSettled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.lab.simulation.player import Player, Raw

__all__ = ["CHANNELS", "Chat", "Dice", "Input", "World"]

T = TypeVar("T")
CHANNELS = ("tg/100", "dc/C2", "tg/100#7", "wa/9@s")
"""The places of a simulated world."""


class Input:
    """A message that was handed to the agent."""

    __slots__ = ("channel", "into", "message", "source", "turn_id")

    def __init__(self, turn_id: str, source: str, channel: str | None, message: int | None, into: str | None) -> None:
        self.turn_id = turn_id
        self.source = source
        self.channel = channel
        self.message = message
        self.into = into


class Chat:
    """One chat as its users, agent and host know it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: dict[str, Input] = {}
        self.turns: dict[str, bool] = {}
        """Turn → it is open, as far as the host was told."""
        self.calls: list[Raw] = []
        """The agent's reply calls, as it made them."""
        self.bubbles: list[tuple[str, int | str]] = []
        self.questions: list[str] = []
        self.again: list[str] = []
        """Inputs that the engine asked to hand over again."""
        self.rewinds: list[str] = []
        """Turns whose exchange is to be removed."""
        self.unaccepted: list[tuple[str, str]] = []
        self.quiet = False
        self.habit: Iterator[Raw] | None = None
        """What it is about to do, step by step."""

    def open_turns(self) -> list[str]:
        """List the open turns."""
        return [turn_id for turn_id, is_open in self.turns.items() if is_open]

    def folds(self) -> list[Input]:
        """List the follow-ups."""
        return [entry for entry in self.inputs.values() if entry.turn_id not in self.turns]


class Dice:
    """Every choice of a run, drawn from one seed."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def chance(self, percent: int) -> bool:
        """Say yes so often in a hundred times."""
        return self.rng.randrange(100) < percent

    def pick(self, options: Sequence[T]) -> T:
        """Choose one."""
        return options[self.rng.randrange(len(options))]

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        """Choose one by weight."""
        at = self.rng.randrange(sum(weight for weight, _ in options))
        for weight, option in options:
            at -= weight
            if at < 0:
                return option
        raise AssertionError("weights add up")


class World(Dice):
    """Everything that is simulated around the engine.

    Args:
        rng: the seeded source of every choice.
        player: what the steps are played on.
        chats: how many chats there are.

    """

    def __init__(self, rng: Random, player: Player, chats: int) -> None:
        super().__init__(rng)
        self.player = player
        self.chats = [Chat(f"c{number + 1}") for number in range(chats)]
        self.made = 0
        self.forgetful = False
        """The agent never names a follow-up, though it knows how to."""
        self.poisoned = False
        """The history is such that the model refuses or fails nearly every turn, and an operator forces it on."""
        self.crammed = False
        """The engine remembers few calls and deliveries, and the host repeats old calls."""
        self.answers_rewinds = False
        """The host answers `rewind` when it comes to it; else the platform does at once."""
        self._performed = 0

    def number(self) -> int:
        """Return a number that was not used before."""
        self.made += 1
        return self.made

    def text(self) -> str:
        """Make words that nobody else says."""
        return f"words {self.number()}"

    def event(self, chat: Chat, kind: str, /, **fields: Any) -> Raw:
        """Write an event as a step."""
        given = {name: value for name, value in fields.items() if value is not None}
        return {kind: given if chat.name == "c1" else {"chat": chat.name, **given}}

    def learn(self) -> None:
        """Take in what was commanded since the last time."""
        performed = self.player.platform.performed
        for command in performed[self._performed :]:
            self._learn(command)
        self._performed = len(performed)

    def _learn(self, command: Command) -> None:
        chat = next((one for one in self.chats if one.name == command.chat), None)
        if chat is None:
            return
        if isinstance(command, TurnSettled):
            chat.turns[command.turn_id] = False
        elif isinstance(command, Redeliver):
            chat.again.append(command.turn_id)
        elif isinstance(command, Rewind) and self.answers_rewinds:
            chat.rewinds.append(command.turn_id)
        elif isinstance(command, Send):
            operation = self.player.oracle.seen(chat.name).operations.get(command.delivery)
            if operation is not None and operation.messages:
                chat.bubbles.append((str(command.channel), operation.messages[0]))
