"""Events from a server's push, `{origin: {messageId, threadId, channelId, guildId}, …}` (RULES-answers b).

A push is free-form; only its origin says where it belongs. The channel is an explicit composite id, else
built from source, guild (`dm` without one) and raw channel id, else there is none. The server is the
connection that the push came on, so a push always knows it. The message is `origin.messageId` alone: an event
id never becomes a message id. A push without a channel becomes a wake.

A channel's id here is the composite one; a host that also delivers on the channel lane uses the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.events import Event, Inbound, InboundKind, Wake
from turnkeeper.engine.ids import ChannelRef, MessageId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Origin", "Push", "batch_of", "channel_of", "events_of", "push_from"]


class Origin(msgspec.Struct, frozen=True, rename="camel"):
    """Where a push comes from; unknown fields are the server's own business."""

    message_id: MessageId | None = None
    thread_id: MessageId | None = None
    channel_id: MessageId | None = None
    guild_id: MessageId | None = None
    """None: a direct message."""
    composite_id: str | None = None
    """The channel's whole id, given by the server: wins over what is built from the parts."""
    source: str | None = None
    author_id: str | None = None


class Push(msgspec.Struct, frozen=True, rename="camel"):
    """A server-initiated event."""

    origin: Origin = Origin()
    kind: InboundKind = "message"
    source: str | None = None
    """The platform, as part of the composite id; absent: the connection's name."""
    event_id: str | None = None
    """Present: coalesced, its acceptance comes later."""
    mode: Literal["plain", "debounced", "deferred", "rendered"] = "plain"
    """deferred: a notice without content, its text is asked for at assembly · rendered: that text."""
    addressed: bool = False
    wakes: bool = True
    first_view: bool = False
    reason: str = "push"
    """Of the wake that a push without a channel, or without content, becomes."""


def push_from(raw: object) -> Push:
    """Read a push.

    Raises:
        DecodeError: a field that decides has a value that cannot be used; the text names it.

    """
    try:
        return msgspec.convert(raw, Push)
    except msgspec.ValidationError as error:
        raise DecodeError(f"push: {error}") from error


def channel_of(push: Push, server: str) -> ChannelRef | None:
    """Derive the channel: the explicit composite id, else source + guild + raw id, else none."""
    origin = push.origin
    thread = None if origin.thread_id is None else str(origin.thread_id)
    if origin.composite_id:
        return ChannelRef(server, origin.composite_id, thread)
    if origin.channel_id is None:
        return None
    guild = "dm" if origin.guild_id is None else str(origin.guild_id)
    parts = (push.source or origin.source or server, guild, str(origin.channel_id))
    return ChannelRef(server, ":".join(map(_escaped, parts)), thread)


def _escaped(part: str) -> str:
    """Keep the parts apart: `("a:b", "c")` is not `("a", "b:c")`."""
    return part.replace("%", "%25").replace(":", "%3A")


def events_of(raw: Mapping[str, object], *, server: str, chat: str) -> tuple[Event, ...]:
    """Return what a host posts for a push that came on the connection `server`, for one chat.

    Raises:
        DecodeError: what `push_from` raises.

    """
    push = push_from(raw)
    channel = channel_of(push, server)
    if push.mode == "deferred":
        # No content, nothing was said: its render is a delivery at assembly.
        return _wake(push, channel, chat)
    if channel is None:
        return _wake(push, None, chat) if push.mode == "plain" else ()
    return (
        Inbound(
            chat,
            channel=channel,
            message=push.origin.message_id,
            kind=push.kind,
            lane="push",
            addressed=push.addressed,
            wakes=push.wakes and push.mode == "plain",
            participant=push.origin.author_id,
            first_view=push.first_view,
            event_id=push.event_id,
            delivery={"debounced": "debounced", "rendered": "assembled"}.get(push.mode, "live"),  # type: ignore[arg-type]
        ),
    )


def _wake(push: Push, channel: ChannelRef | None, chat: str) -> tuple[Event, ...]:
    if not push.wakes:
        return ()
    reason = "notice" if push.mode == "deferred" else push.reason
    return (Wake(chat, reason, channel=channel, addressed=push.addressed),)


def batch_of(raws: Iterable[Mapping[str, object]], *, server: str, chat: str) -> Wake:
    """Return the wake of a debounced flush; it never names a message, even of one push (O4).

    Its channel is that of the newest addressed push (B8); if nobody was addressed, the one that all name (O3).
    """
    pushes = [push_from(raw) for raw in raws]
    places = [channel_of(push, server) for push in pushes]
    called = [place for push, place in zip(pushes, places, strict=True) if push.addressed and place is not None]
    shared = places[0] if len(set(map(str, places))) == 1 else None
    addressed = any(push.addressed for push in pushes)
    return Wake(chat, "batch", channel=called[-1] if called else shared, addressed=addressed)
