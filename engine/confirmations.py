"""Commands that await confirmation: handed over, or performed. After a crash they are emitted again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine.commands import Ack

if TYPE_CHECKING:
    from turnkeeper.engine.commands import Command

__all__ = ["Confirmations"]


class Confirmations:
    """The commands of a cell that nobody confirmed yet."""

    def __init__(self) -> None:
        self.pending: dict[str, Command] = {}
        """By id, oldest first."""
        self._count: dict[str, int] = {}

    def awaited(self, chat: str) -> bool:
        """Say whether a command of this chat waits."""
        return chat in self._count

    def expect(self, command: Command) -> None:
        """Keep a command until it is confirmed."""
        self.pending[command.id] = command
        self._count[command.chat] = self._count.get(command.chat, 0) + 1

    def admit(self, command: Command, limit: int) -> bool:
        """Keep a new command, but an ack: its caller is gone after a crash. True: an older one had to leave."""
        if command.__class__ is Ack:
            return False
        full = self._count.get(command.chat, 0) >= limit
        if full:
            self.confirm(next(key for key, kept in self.pending.items() if kept.chat == command.chat))
        self.expect(command)
        return full

    def confirm(self, command_id: str) -> None:
        """A command was handed over, or `perform` returned for it."""
        command = self.pending.pop(command_id, None)
        if command is not None:
            left = self._count[command.chat] - 1
            if left:
                self._count[command.chat] = left
            else:
                del self._count[command.chat]
