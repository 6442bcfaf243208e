"""Pictures of chats: what a restart begins from, so that it need not replay everything since the beginning.

A picture holds every owner of one chat with its deadline, and the commands of that chat that await
confirmation. It is written with the same codec as records and read with the same strictness; a field that a
later version added is absent in an older picture and takes its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.channel.state import ChannelState
from turnkeeper.engine.chat.state import ChatState
from turnkeeper.engine.commands import Command
from turnkeeper.engine.ids import Address, chat_at
from turnkeeper.engine.turn.state import TurnState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turnkeeper.engine.cell import Cell, OwnerLike

__all__ = ["ChatPicture", "load_pictures", "pictures_of"]

KINDS = ("chat", "turn", "channel")


class ChatPicture(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One chat, whole."""

    state: ChatState
    turns: dict[str, TurnState] = {}
    channels: dict[str, ChannelState] = {}
    dues: dict[str, int] = {}
    """Deadlines by owner: `chat`, `turn:<id>`, `channel:<ref>`."""
    pending: tuple[Command, ...] = ()


def pictures_of(cell: Cell, chats: Iterable[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield (chat, encoded picture) of these chats, or of all; in one pass over the owners."""
    wanted = None if chats is None else dict.fromkeys(chats)
    groups: dict[str, list[OwnerLike]] = {}
    for address, owner in cell.owners.items():
        if wanted is None or address.chat in wanted:
            groups.setdefault(address.chat, []).append(owner)
    pending: dict[str, list[Command]] = {}
    for command in cell.pending.values():
        pending.setdefault(command.chat, []).append(command)
    for chat, owners in groups.items():
        yield chat, codec.encode(_picture(owners, tuple(pending.get(chat, ()))))


def _picture(owners: list[OwnerLike], pending: tuple[Command, ...]) -> ChatPicture:
    """Draw one chat; it has exactly one owner of kind chat."""
    states = {kind: {o.address.key: o.state for o in owners if o.address.kind == kind} for kind in KINDS}
    dues = {str(owner.address): owner.due_ms for owner in owners if owner.due_ms is not None}
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
