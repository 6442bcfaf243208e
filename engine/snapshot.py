"""Snapshots: pictures of many chats, so that a restart need not replay everything since the beginning.

A picture is written with the same codec as records and read with the same strictness; a field that a later
version added is absent in an older picture and takes its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.ids import Address
from turnkeeper.engine.picture import ChatPicture, draw, owners_in, rests, unpack

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from turnkeeper.engine.cell import Cell
    from turnkeeper.engine.chat.state import ChatState
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.picture import Captured

__all__ = ["ChatPicture", "Still", "load_pictures", "pictures_of"]


class Still:
    """A cell at one instant, as far as pictures need it. States never change, so this collects references.

    Args:
        cell: what to capture, between two events.
        chats: these alone; all by default.

    """

    def __init__(self, cell: Cell, chats: Collection[str] | None = None) -> None:
        self.chats = chats
        if chats is None:
            owners, self.asleep = iter(cell.owners.values()), dict(cell.asleep)
        else:
            owners = (owner for chat in chats for owner in cell.group(chat))
            self.asleep = {chat: cell.asleep[chat] for chat in chats if chat in cell.asleep}
        self.owners = [(owner.address, owner.state, owner.due_ms) for owner in owners]
        self.places = {at: cell.deadlines.place(at) for at, _, due_ms in self.owners if due_ms is not None}
        """In what order deadlines of one instant come."""
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
            if chat not in groups and chat not in self.asleep:
                yield chat, b""
        while self.asleep:
            chat, packed = self.asleep.popitem()
            yield chat, unpack(packed)
        while groups:
            chat, owners = groups.popitem()
            picture = draw(owners, tuple(pending.get(chat, ())))
            if len(picture.dues) > 1:
                picture = msgspec.structs.replace(picture, dues=self._in_order(chat, picture.dues))
            yield chat, codec.encode(picture)

    def _in_order(self, chat: str, dues: dict[str, int]) -> dict[str, int]:
        """Write the deadlines of a chat as they come where they are of one instant: a restart decides nothing."""
        return dict(sorted(dues.items(), key=lambda due: self.places[Address.parse(chat, due[0])]))


def pictures_of(cell: Cell, chats: Collection[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield (chat, encoded picture) of these chats, or of all, as they are now."""
    return Still(cell, chats).pictures()


def load_pictures(cell: Cell, pictures: Iterable[bytes]) -> int:
    """Take pictures into an empty cell; returns how many.

    Raises:
        DecodeError: a picture is damaged, or of another shape.

    """
    waiting: list[Command] = []
    count = 0
    for data in pictures:
        picture = codec.decode(data, ChatPicture)
        count += 1
        if rests(picture) and _windows_passed(cell, picture.state):
            cell.lay_asleep(picture, data)
            continue
        for address, state, due_ms in owners_in(picture):
            cell.adopt(address, state, due_ms)
        for owner, due_ms in picture.dues.items():
            address = Address.parse(picture.state.chat, owner)
            if address in cell.owners:
                cell.deadlines.put(address, None)
                cell.deadlines.put(address, due_ms, cell.owners[address].state)
        waiting += picture.pending
    for command in sorted(waiting, key=_emitted):
        cell.expect_confirmation(command)
    return count


def _windows_passed(cell: Cell, state: ChatState) -> bool:
    """Say whether nothing was said so shortly before that a restart would begin its window anew."""
    since_ms = cell.at.now_ms - cell.at.policy.dedup.window_ms
    return all(known.ended_ms < since_ms for _, known in state.outbound.items())


def _emitted(command: Command) -> tuple[int, int]:
    seq, _, n = command.id.partition(".")
    return int(seq), int(n)
