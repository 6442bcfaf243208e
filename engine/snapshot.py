"""Pictures of chats: what a restart begins from, so that it need not replay everything since the beginning.

A picture holds every owner of one chat with its deadline, and the commands of that chat that await
confirmation. It is written with the same codec as records and read with the same strictness; a field that a
later version added is absent in an older picture and takes its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.channel.state import ChannelState
from turnkeeper.engine.chat.state import ChatState
from turnkeeper.engine.commands import Command
from turnkeeper.engine.ids import Address, chat_at
from turnkeeper.engine.turn.state import TurnState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from turnkeeper.engine.cell import Cell

    Captured = tuple[Address, Any, int | None]

__all__ = ["ChatPicture", "Still", "load_pictures", "pictures_of"]

KINDS = ("chat", "turn", "channel")


class ChatPicture(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One chat, whole."""

    state: ChatState
    turns: dict[str, TurnState] = {}
    channels: dict[str, ChannelState] = {}
    dues: dict[str, int] = {}
    """Deadlines by owner: `chat`, `turn:<id>`, `channel:<ref>`."""
    pending: tuple[Command, ...] = ()


class Still:
    """A cell at one instant, as far as pictures need it. States never change, so this collects references.

    Args:
        cell: what to capture, between two events.
        chats: these alone; all by default.

    """

    def __init__(self, cell: Cell, chats: Collection[str] | None = None) -> None:
        owners = cell.owners.items()
        self.chats = chats
        self.owners = [
            (address, owner.state, owner.due_ms) for address, owner in owners if chats is None or address.chat in chats
        ]
        self.pending = [command for command in cell.pending.values() if chats is None or command.chat in chats]

    def pictures(self) -> Iterator[tuple[str, bytes]]:
        """Yield (chat, encoded picture); an empty picture is of a chat that is no more. On any thread."""
        groups: dict[str, list[Captured]] = {}
        for captured in self.owners:
            groups.setdefault(captured[0].chat, []).append(captured)
        self.owners.clear()
        pending: dict[str, list[Command]] = {}
        for command in self.pending:
            pending.setdefault(command.chat, []).append(command)
        for chat in () if self.chats is None else self.chats:
            if chat not in groups:
                yield chat, b""
        while groups:
            chat, owners = groups.popitem()
            yield chat, codec.encode(_picture(owners, tuple(pending.get(chat, ()))))


def pictures_of(cell: Cell, chats: Collection[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield (chat, encoded picture) of these chats, or of all, as they are now."""
    return Still(cell, chats).pictures()


def _picture(owners: list[Captured], pending: tuple[Command, ...]) -> ChatPicture:
    """Draw one chat; it has exactly one owner of kind chat."""
    states: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    dues: dict[str, int] = {}
    for address, state, due_ms in owners:
        states[address.kind][address.key] = state
        if due_ms is not None:
            dues[str(address)] = due_ms
    return ChatPicture(states["chat"][""], states["turn"], states["channel"], dues, pending)


def load_pictures(cell: Cell, pictures: Iterable[bytes]) -> int:
    """Take pictures into an empty cell; returns how many.

    Raises:
        DecodeError: a picture is damaged, or of another shape.

    """
    waiting: list[Command] = []
    count = 0
    for data in pictures:
        picture = codec.decode(data, ChatPicture)
        chat = picture.state.chat
        owners: list[tuple[Address, ChatState | TurnState | ChannelState]] = [(chat_at(chat), picture.state)]
        owners += [(Address("turn", chat, key), turn) for key, turn in picture.turns.items()]
        owners += [(Address("channel", chat, key), channel) for key, channel in picture.channels.items()]
        for address, state in owners:
            cell.adopt(address, state, picture.dues.get(str(address)))
        waiting += picture.pending
        count += 1
    for command in sorted(waiting, key=_emitted):
        cell.expect_confirmation(command)
    return count


def _emitted(command: Command) -> tuple[int, int]:
    seq, _, n = command.id.partition(".")
    return int(seq), int(n)
