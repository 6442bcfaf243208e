"""The picture of one chat: every owner with its deadline, and the commands that await confirmation.

Snapshots are made of pictures, and a chat that nothing is going on in sleeps as one. A sleeping picture is packed:
compressed with a dictionary that knows the names of the fields, so that little is left but ids and times.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.channel.state import ChannelState
from turnkeeper.engine.chat.state import ChatState
from turnkeeper.engine.commands import Command
from turnkeeper.engine.ids import Address, chat_at
from turnkeeper.engine.turn.state import TurnState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Captured = tuple[Address, Any, int | None]
    """An owner's address, its state and its deadline."""

__all__ = ["ChatPicture", "draw", "owners_in", "pack", "rests", "unpack"]

KINDS = ("chat", "turn", "channel")


class ChatPicture(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One chat, whole."""

    state: ChatState
    turns: dict[str, TurnState] = {}
    channels: dict[str, ChannelState] = {}
    dues: dict[str, int] = {}
    """Deadlines by owner: `chat`, `turn:<id>`, `channel:<ref>`."""
    pending: tuple[Command, ...] = ()


def draw(owners: Iterable[Captured], pending: tuple[Command, ...] = ()) -> ChatPicture:
    """Draw one chat; it has exactly one owner of kind chat."""
    states: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    dues: dict[str, int] = {}
    for address, state, due_ms in owners:
        states[address.kind][address.key] = state
        if due_ms is not None:
            dues[str(address)] = due_ms
    return ChatPicture(states["chat"][""], states["turn"], states["channel"], dues, pending)


def owners_in(picture: ChatPicture) -> Iterator[Captured]:
    """Yield the owners of a picture."""
    chat, dues = picture.state.chat, picture.dues
    yield chat_at(chat), picture.state, dues.get("chat")
    for key, turn in picture.turns.items():
        address = Address("turn", chat, key)
        yield address, turn, dues.get(str(address))
    for key, channel in picture.channels.items():
        address = Address("channel", chat, key)
        yield address, channel, dues.get(str(address))


def rests(picture: ChatPicture) -> bool:
    """Say whether nothing is going on: no turn that runs, no deadline, nothing out, waiting or shown.

    A settled turn that stays because nobody knows whether its answer arrived rests: only a settlement wakes it.
    """
    if picture.dues or picture.pending or any(turn.phase != "settled" for turn in picture.turns.values()):
        return False
    return not any(
        channel.out or channel.queue or channel.loose or channel.preview for channel in picture.channels.values()
    )


# ---------------------------------------------------------------- packed

LEVEL, WINDOW_BITS, MEMORY = 6, -12, 3
"""A window of 4 KiB, without header and checksum: what sleeps never leaves the process."""
HERE, SAID, CALL, MS = {"server": "telegram", "id": "-100"}, "reply:c:toolu_", "toolu_", 1_700_000_000_000
SAMPLE = {
    "state": {
        "chat": "",
        "home": HERE,
        "tick": 6,
        "ledger": {
            "t": {
                "turn_id": "t",
                "source": "autosteer",
                "written_ms": MS,
                "tick": 2,
                "channel": HERE,
                "message": 376,
                "participant": "u",
                "into": "t",
                "state": "resolved",
                "seen": True,
                "merged": "t",
                "quote": {"state": "spent", "by": SAID},
                "is_turn": True,
            },
            "": {"source": "primary", "state": "superseded", "cancelled": True},
        },
        "tombstones": {"chunks": [{"t": {"source": "autosteer", "channel": HERE, "is_turn": True, "quoted": True}}]},
        "turns": {
            "t": {
                "turn_id": "t",
                "source": "primary",
                "tick": 2,
                "status": "settled",
                "answers": {"channel": HERE, "message": 376, "participant": "u"},
                "speech": HERE,
                "addressed": True,
                "replies": 1,
                "outcome": "interim-rescue",
                "speaks": "fallback:c:t",
            },
            "": {"outcome": "fallback", "addressed": True, "replies": 1, "outcome ": "final-reply"},
        },
        "calls": {
            "chunks": [{CALL: {"digest": "0", "delivery": SAID, "message": 382, "outcome": "sent"}}],
            "size": 1,
        },
        "outbound": {
            "chunks": [
                {
                    "fallback:c:t": {"channel": HERE, "tick": 4, "kind": "speech", "turn_id": "t"},
                    SAID: {
                        "channel": HERE,
                        "tick": 4,
                        "calls": [CALL],
                        "turn_id": "t",
                        "echoed": "t",
                        "row": "echoed-open",
                        "inputs": ["t"],
                        "interim": True,
                        "outcome": "sent",
                        "messages": [382],
                        "ended_ms": MS,
                    },
                }
            ],
            "size": 1,
        },
        "contents": {"chunks": [{"0": SAID}], "size": 1},
        "contract_tick": 4,
        "seen_primary_tick": 2,
        "tokens": 19000,
        "tokens_ms": MS,
        "stop_id": 1,
        "channels": {"telegram/-100": {"ref": HERE, "lazy": True}},
        "places": {"telegram/-100": True},
        "anchor": {"channel": HERE, "message": 376, "seq": 1},
        "delivered": 1,
        "occurrences": {
            "chunks": [{"message:telegram/-100:376": {"at_ms": MS, "message": 376, "channel": HERE, "tick": 1}}],
            "size": 1,
        },
        "read_tick": 2,
        "announced": HERE,
        "ever_announced": True,
    },
    "channels": {
        "telegram/-100": {
            "chat": "c",
            "ref": HERE,
            "receipts": {
                "chunks": [{SAID: {"outcome": "sent", "at_ms": MS, "messages": [382], "text_digest": "0"}}],
                "size": 1,
            },
        }
    },
}
"""What most pictures look like; a field that is missing here is packed all the same, a little longer."""
DICTIONARY = codec.encode(SAMPLE)


def pack(encoded: bytes) -> bytes:
    """Compress an encoded picture."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOW_BITS, MEMORY, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
    return packer.compress(encoded) + packer.flush()


def unpack(packed: bytes) -> bytes:
    """Return the encoded picture."""
    return zlib.decompressobj(WINDOW_BITS, DICTIONARY).decompress(packed)
