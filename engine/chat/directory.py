"""The channels a chat knows: open, closed, inbound only, gone (RULES-answers, glossary; E22b, E23, A15).

A push registers a channel lazily and closed; sending may use a closed channel, nothing here opens one. A bare
id is resolved once, when a turn opens: to the one registered channel that answers to it, or not at all.
"""

from __future__ import annotations

from turnkeeper.engine.chat.state import ChatState, Registered
from turnkeeper.engine.events import ChannelRegistered, ServerRemoved
from turnkeeper.engine.ids import ChannelRef, channel_at
from turnkeeper.engine.protocol import Draft, Retire
from turnkeeper.engine.signals import LimitReached

__all__ = ["known_place", "lookup", "on_registered", "on_server_removed", "register_lazily", "resolved", "usable"]

ChatDraft = Draft[ChatState]


def on_registered(draft: ChatDraft, event: ChannelRegistered) -> None:
    """Take in what the host knows of a channel; the newest word counts."""
    if not usable(draft, event.channel):
        return
    entry = Registered(event.channel, event.open, event.inbound_only, event.note or "")
    draft.set(channels={**draft.state.channels, str(event.channel): entry})


def register_lazily(draft: ChatDraft, channel: ChannelRef, *, open_: bool) -> None:
    """Register a channel that something came from; a known one stays as it is."""
    if channel.server is not None and str(channel) not in draft.state.channels and usable(draft, channel):
        entry = Registered(channel, open_, lazy=True)
        draft.set(channels={**draft.state.channels, str(channel): entry})


def usable(draft: ChatDraft, channel: ChannelRef) -> bool:
    """Say whether the chat can send there, and remember the place: its server must be known.

    Above `limits.channels_per_chat` the place that was used first and is not in use leaves, and that is told;
    only where every one of them is in use is there no room.
    """
    name = str(channel)
    if channel.server is None:
        return False
    state = draft.state
    if name not in state.places and name not in state.channels and not _has_room(draft):
        draft.signal(LimitReached(chat=state.chat, limit="channels_per_chat"))
        if not _make_room(draft):
            return False
    if name not in draft.state.places:
        draft.set(places={**draft.state.places, name: True})
    return True


def _has_room(draft: ChatDraft) -> bool:
    known = draft.state.places.keys() | draft.state.channels.keys()
    return len(known) < draft.at.policy.limits.channels_per_chat


def _make_room(draft: ChatDraft) -> bool:
    """Forget the oldest place that is not in use; what the host registered itself leaves last."""
    state = draft.state
    used = _in_use(state)
    idle = [name for name in dict.fromkeys([*state.places, *state.channels]) if name not in used]
    lazy = [name for name in idle if name not in state.channels or state.channels[name].lazy]
    if not idle:
        return False
    gone = (lazy or idle)[0]
    draft.set(
        places={name: True for name in state.places if name != gone},
        channels={name: entry for name, entry in state.channels.items() if name != gone},
    )
    draft.tell(channel_at(state.chat, ChannelRef.parse(gone)), Retire())
    return True


def _in_use(state: ChatState) -> set[str]:
    """Name the places that something of this chat still needs."""
    refs = [state.home]
    for turn in state.turns.values():
        if turn.status != "settled":
            refs += [turn.answers.channel, turn.speech, turn.preview]
    refs += [known.channel for _, known in state.outbound.items() if known.outcome in {"in flight", "unknown"}]
    return {str(ref) for ref in refs if ref is not None}


def lookup(state: ChatState, channel: ChannelRef | None) -> Registered | None:
    """Return what is known of a channel; a thread that the host did not register itself counts as its channel."""
    if channel is None:
        return None
    own = state.channels.get(str(channel))
    if own is not None and not own.lazy:
        return own
    return state.channels.get(str(ChannelRef(channel.server, channel.id))) or own


def resolved(state: ChatState, channel: ChannelRef | None) -> ChannelRef | None:
    """Resolve a bare id to the one registered channel that answers to it; else leave it bare.

    Ids are unique inside a server, threads and all: a thread is a place in the channel, not another channel.
    """
    if channel is None or channel.server is not None:
        return channel
    servers = dict.fromkeys(entry.ref.server for entry in state.channels.values() if entry.ref.id == channel.id)
    return ChannelRef(next(iter(servers)), channel.id, channel.thread) if len(servers) == 1 else channel


def known_place(state: ChatState, channel: ChannelRef | None) -> ChannelRef | None:
    """Return the channel if its server is known, or can be; nothing is ever sent to a bare id."""
    found = resolved(state, channel)
    return found if found is not None and found.server is not None else None


def on_server_removed(draft: ChatDraft, event: ServerRemoved) -> None:
    """Forget a server: its channels, an anchor and parked anchors there (A15).

    Wakes keep what they are for: an adapter that comes back still gets its answers.
    """
    state = draft.state
    gone = event.server
    parked = state.parked
    for key, held in state.parked.items():
        if held.anchor.channel.server == gone:
            parked = parked.drop(key)
    kept = {name: entry for name, entry in state.channels.items() if entry.ref.server != gone}
    anchor = None if state.anchor is not None and state.anchor.channel.server == gone else state.anchor
    draft.set(channels=kept, anchor=anchor, parked=parked)
