"""The names of things: chats, channels, messages, turns, deliveries, and the addresses of owners.

Ids come from platforms and from models, so they are opaque. Two rules hold everywhere: a message id
means something only inside its channel, and a channel id only inside its server (PROTOCOL "Identities").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote, unquote

import msgspec

__all__ = [
    "Address",
    "ChannelRef",
    "Int64",
    "Kind",
    "MessageId",
    "OptionalPlace",
    "Place",
    "channel_at",
    "chat_at",
    "delivery_key",
    "same_message",
    "turn_at",
]

Kind = Literal["chat", "turn", "channel"]
"""The three kinds of owner."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
"""A number that every codec can carry; decoding refuses what is larger, naming the field."""
MessageId = Int64 | str
"""A platform's message id, opaque. `6406` and `"6406"` are the same id; `"007"` and `7` are not."""


class ChannelRef(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A place on a platform; ids are unique only inside a server.

    Written `server/id#thread` in JSON and TOML; a part that holds `%`, `/` or `#` is %-escaped.
    `server` None: an id whose server nobody named yet (`?/id`).
    """

    server: str | None
    id: str
    thread: str | None = None

    def __str__(self) -> str:
        """Return the written form, `server/id#thread`."""
        server = "?" if self.server is None else "%3F" if self.server == "?" else _escaped(self.server)
        text = f"{server}/{_escaped(self.id)}"
        return text if self.thread is None else f"{text}#{_escaped(self.thread)}"

    @classmethod
    def parse(cls, text: str) -> ChannelRef:
        """Read the written form.

        Raises:
            ValueError: the text has no `/`, or the id is empty; the message shows the form.

        """
        server, slash, rest = text.partition("/")
        if not slash:
            raise ValueError(f"{text!r} is no channel; write server/id or server/id#thread (?/id without a server)")
        ident, hash_, thread = rest.rpartition("#") if "#" in rest else (rest, "", "")
        if not ident:
            raise ValueError(f"{text!r} names no channel id; write server/id or server/id#thread")
        return cls(None if server == "?" else unquote(server), unquote(ident), unquote(thread) if hash_ else None)


def _escaped(part: str) -> str:
    """Escape the three characters that carry meaning; everything else stays readable."""
    if "%" in part or "/" in part or "#" in part:
        return "".join(quote(c, safe="") if c in "%/#" else c for c in part)
    return part


if TYPE_CHECKING:
    Place = ChannelRef
    """A channel; decoding takes its written form too."""
    OptionalPlace = ChannelRef | None
    """A channel, or none."""
else:
    # Decoding also takes the written form; `settle_places` in events.py turns it into a ChannelRef.
    Place = ChannelRef | str
    OptionalPlace = ChannelRef | str | None


class Address(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Who owns a fact: a chat, one of its turns, or one of its channels."""

    kind: Kind
    chat: str
    key: str = ""
    """The turn's id, or the channel's written form; empty for a chat."""

    def __str__(self) -> str:
        """Return the name used in journal records and logs: `chat`, `turn:<id>` or `channel:<ref>`."""
        return self.kind if self.kind == "chat" else f"{self.kind}:{self.key}"

    @classmethod
    def parse(cls, chat: str, owner: str) -> Address:
        """Read what `str` wrote, inside `chat`."""
        kind, _, key = owner.partition(":")
        if kind == "turn":
            return cls("turn", chat, key)
        if kind == "channel":
            return cls("channel", chat, key)
        return cls("chat", chat)


def chat_at(chat: str) -> Address:
    """Return the address of a chat's owner."""
    return Address("chat", chat)


def turn_at(chat: str, turn_id: str) -> Address:
    """Return the address of a turn's owner."""
    return Address("turn", chat, turn_id)


def channel_at(chat: str, channel: ChannelRef) -> Address:
    """Return the address of a channel's owner inside a chat."""
    return Address("channel", chat, str(channel))


def same_message(one: int | str | None, other: int | str | None) -> bool:
    """Decide whether two ids name one message of the same channel (`6406` is `"6406"`)."""
    return one is not None and other is not None and str(one) == str(other)


def delivery_key(form: str, chat: str, *parts: str | int) -> str:
    """Build a delivery's idempotency key, `form:chat:part…` (RULES-replies A8 lists the forms).

    `%` and `:` inside a part are escaped, so two different identities never make one key.
    """
    return ":".join([form, *(str(part).replace("%", "%25").replace(":", "%3A") for part in (chat, *parts))])
