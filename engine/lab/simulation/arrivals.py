"""What came in for a chat, as its host could keep account of it: messages, the latest one, and what waits for a turn.

It is told of events alone. It follows RULES-answers a, b, c and h by itself, so that what a turn says it is for can
be compared with what really woke it. What an outsider cannot know is *vague* (a bare channel id, a turn that may
have ended already when it went on), and nothing is concluded from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from turnkeeper.engine import events

if TYPE_CHECKING:
    from turnkeeper.engine.ids import ChannelRef

__all__ = ["Arrivals", "Came", "Pair", "Woken"]

Key = tuple[str, ...]
DELIVERIES = frozenset({"message", "edit"})
"""Wakes that a delivery of a message made; those that the message's end takes away again."""


class Pair(NamedTuple):
    """What a turn is for."""

    channel: ChannelRef | None = None
    message: str | None = None
    addressed: bool = False
    vague: bool = False


class Woken(NamedTuple):
    """One reason to run the agent."""

    reason: str
    channel: ChannelRef | None = None
    message: str | None = None
    addressed: bool = False
    occurrence: Key = ()
    parked: bool = False
    vague: bool = False


class Occurred(NamedTuple):
    """Something that came in before, so that it is known when it comes again."""

    at_ms: int
    channel: ChannelRef | None
    message: str | None
    place: int
    deleted: bool = False


class Held(NamedTuple):
    """A message that counts from its acceptance on."""

    channel: ChannelRef
    message: str
    place: int
    at_ms: int


class Came(NamedTuple):
    """What an arrival should have led to."""

    again: bool = False
    """It was known already."""
    moved: tuple[ChannelRef, str] | None = None
    """The latest message is this one now."""
    late: bool = False
    """It was accepted after a newer one."""


class Arrivals:
    """The host's account of one chat."""

    def __init__(self) -> None:
        self.ephemeral = False
        self.home: ChannelRef | None = None
        self.latest: Held | None = None
        """The message that came last."""
        self.sure = True
        """The latest message is known; not after one whose server nobody named."""
        self.wakes: list[Woken] = []
        self.quiet = False
        self._known: dict[Key, Occurred] = {}
        self._held: dict[Key, Held] = {}
        self._lost_track = False
        self._place = 0
        self._read = self._perhaps_read = 0

    def take(self, event: events.Event, now_ms: int, window_ms: int) -> Came:
        """Take in an event; `window_ms`: so long something is known when it comes again."""
        match event:
            case events.Inbound():
                return self._inbound(event, now_ms, window_ms)
            case events.Accepted():
                return self._accepted(event, now_ms, window_ms)
            case events.InputFolded():
                self._folded(event)
            case events.Wake() if not self.ephemeral:
                self.queue(Woken(event.reason, event.channel, None, event.addressed))
            case _:
                self._settings(event)
        return Came()

    def _settings(self, event: events.Event) -> None:
        match event:
            case events.ChatOpened():
                self.home, self.ephemeral = event.home, event.ephemeral
            case events.ServerRemoved():
                self._removed(event.server)
            case events.Quiesced():
                self._quiesced()
            case events.Resumed():
                self.quiet = False
                self.wakes = [wake._replace(parked=False) for wake in self.wakes]
            case _:
                pass

    # ------------------------------------------------------------ coming in

    def _inbound(self, event: events.Inbound, now_ms: int, window_ms: int) -> Came:
        """Take in a delivery: once."""
        key = _identity(event)
        known = self._known.get(key) if key else None
        if known is not None and now_ms - known.at_ms >= window_ms:
            known = None
        if known is not None:
            if event.kind != "deletion" or known.deleted:
                return Came(again=True)
            self._known[key] = known._replace(deleted=True)
            if known.place > self._read or any(wake.occurrence == key for wake in self.wakes):
                self._withdraw(known.channel, known.message, key)
                if known.place <= self._perhaps_read:
                    # Or it is a marker about something read.
                    self.queue(Woken(event.kind, vague=True))
                return Came()
        elif key:
            deleted = event.kind == "deletion"
            self._known[key] = Occurred(now_ms, event.channel, _text(event.message), self._place + 1, deleted)
        self._place += 1
        came = self._latest(event, now_ms)
        self._wake(event, key if event.event_id else ())
        return came

    def _latest(self, event: events.Inbound, now_ms: int) -> Came:
        """A message moves the anchor, at once or when it is accepted."""
        message = _text(event.message)
        counts = _says(event) and not self.ephemeral and event.delivery != "assembled"
        if not counts or message is None or event.channel is None:
            return Came()
        if event.channel.server is None:
            self.sure = False
            self._lost_track = self._lost_track or event.event_id is not None
            return Came()
        held = Held(event.channel, message, self._place, now_ms)
        if event.event_id:
            self._held[_key(event.channel.server, event.event_id)] = held
            return Came()
        self.latest, self.sure = held, not self._lost_track
        return Came(moved=(held.channel, held.message))

    def _accepted(self, event: events.Accepted, now_ms: int, window_ms: int) -> Came:
        """An acceptance commits what it held back, unless a newer message came."""
        key = _key(event.server, event.event_id)
        held = self._held.get(key)
        if not event.ok or held is None or now_ms - held.at_ms >= window_ms:
            return Came()
        del self._held[key]
        if self.latest is not None and self.latest.place > held.place:
            return Came(late=True)
        self.latest = held
        return Came(moved=(held.channel, held.message))

    def _removed(self, server: str) -> None:
        """A server is gone, with what was latest or held there."""
        self._held = {key: held for key, held in self._held.items() if held.channel.server != server}
        if self.latest is not None and self.latest.channel.server == server:
            self.latest = None

    # ------------------------------------------------------------ waiting for a turn

    def _wake(self, event: events.Inbound, occurrence: Key) -> None:
        if not event.wakes or event.delivery != "live" or self.ephemeral:
            return
        message = _text(event.message) if _says(event) and event.channel is not None else None
        replaced: list[Woken] = []
        if event.kind == "edit" and message is not None:
            replaced = self._withdraw(event.channel, message)
        addressed = event.addressed or any(wake.addressed for wake in replaced)
        vague = any(wake.vague for wake in replaced)
        self.queue(Woken(event.kind, event.channel, message, addressed, occurrence, vague=vague))

    def queue(self, wake: Woken) -> None:
        """Queue a reason to run; in quiet times one for each thing."""
        vague = wake.vague or (wake.channel is not None and wake.channel.server is None)
        wake = wake._replace(parked=self.quiet, vague=vague)
        if self.quiet:
            self.wakes = [one for one in self.wakes if not (one.parked and _stands_for(one, wake))]
        self.wakes.append(wake)

    def _quiesced(self) -> None:
        """Maintenance begins: what waits goes on waiting."""
        self.quiet, waiting, self.wakes = True, self.wakes, []
        for wake in waiting:
            self.queue(wake)

    def _folded(self, event: events.InputFolded) -> None:
        """A follow-up went into a running turn: nothing has to wake it."""
        if not self.quiet:
            self._withdraw(event.channel, _text(event.message))

    def _withdraw(self, channel: ChannelRef | None, message: str | None, occurrence: Key = ()) -> list[Woken]:
        gone = [
            wake
            for wake in self.wakes
            if (occurrence and wake.occurrence == occurrence)
            or (
                wake.reason in DELIVERIES and message is not None and (wake.channel, wake.message) == (channel, message)
            )
        ]
        self.wakes = [wake for wake in self.wakes if wake not in gone]
        return gone

    def went_on(self, *, surely: bool) -> None:
        """A running turn read what waited; or had it ended already?"""
        if surely:
            self._read = self._place
            self.wakes = [wake for wake in self.wakes if wake.parked]
            return
        self._perhaps_read = self._place
        self.wakes = [wake if wake.parked else wake._replace(vague=True) for wake in self.wakes]

    def opened(self, channel: ChannelRef | None, message: str | None) -> Pair:
        """A turn takes all that waits; returns what it is for."""
        self._read = self._place
        taken = [wake for wake in self.wakes if not wake.parked]
        self.wakes = [wake for wake in self.wakes if wake.parked]
        vague = any(wake.vague for wake in taken)
        if channel is None and message is None:
            return _merged(taken)
        own = [wake for wake in taken if message is not None and (wake.channel, wake.message) == (channel, message)]
        bare = channel is not None and channel.server is None
        # Whether it was addressed rests on all of them; what it is for was given.
        return Pair(channel, message, any(wake.addressed for wake in own or taken), bare or (vague and not own))


def _merged(taken: list[Woken]) -> Pair:
    """The newest place, an addressed one before others; the message only if all name it."""
    if any(wake.vague for wake in taken):
        return Pair(vague=True)
    placed = [wake for wake in taken if wake.channel is not None]
    if not placed:
        return Pair()
    winner = ([wake for wake in placed if wake.addressed] or placed)[-1]
    named = {(wake.channel, wake.message) for wake in taken}
    message = winner.message if len(named) == 1 else None
    return Pair(winner.channel, message, winner.addressed)


def _says(event: events.Inbound) -> bool:
    """Say whether it is a message, or the first that is seen of one."""
    return event.kind == "message" or (event.kind == "edit" and event.first_view)


def _identity(event: events.Inbound) -> Key:
    if event.event_id:
        return _key(event.channel.server if event.channel is not None else None, event.event_id)
    if event.kind == "message" and event.message is not None and event.channel is not None:
        return ("message", str(event.channel), str(event.message))
    return ()


def _key(server: str | None, event_id: str) -> Key:
    return ("local", event_id) if server is None else ("event", server, event_id)


def _stands_for(one: Woken, other: Woken) -> bool:
    if (one.reason, one.addressed, one.channel) != (other.reason, other.addressed, other.channel):
        return False
    nameless = one.message is None and other.message is None
    return one.occurrence == other.occurrence if nameless else one.message == other.message


def _text(message: int | str | None) -> str | None:
    return None if message is None else str(message)
