"""The door of the engine: what a host may post and ask, checked before it is let in. Any thread, never waits.

An event is read back from its own encoding at the door, so that what runs live is what a replay will read, and
what cannot be written is refused to whoever posted it, not found by the shard.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from turnkeeper.actors.misuse import Misuse
from turnkeeper.actors.sequencer import BYPASS, Entry, Sequencer
from turnkeeper.actors.waiting import Admission, EngineFuture, Waiter
from turnkeeper.engine import codec
from turnkeeper.engine.errors import DecodeError, Overloaded, SetAside
from turnkeeper.engine.events import Edit, Event, EventBase, Reply
from turnkeeper.engine.ids import chat_at
from turnkeeper.engine.journal import Body

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykka._envelope import Envelope

    from turnkeeper.actors.release import Release
    from turnkeeper.actors.shard import Shard
    from turnkeeper.engine.cell import OwnerLike
    from turnkeeper.engine.commands import Ack, TurnSettled
    from turnkeeper.engine.ids import Address

__all__ = ["Reception", "checked"]


KNOWN = frozenset(codec.EVENT_TYPES.values())


def checked(event: object) -> Event:
    """Return an event as its record will be read.

    Raises:
        DecodeError: it is no event, or a field is of another type or cannot be written.

    """
    kind: Any = type(event)
    if kind not in KNOWN:
        raise DecodeError(
            f"{kind.__module__}.{kind.__qualname__} is no event; "
            f"post one of turnkeeper.events: {', '.join(sorted(codec.EVENT_TYPES))}"
        )
    try:
        read: Event = codec.decode(codec.encode(event), kind)
        return read
    except DecodeError as error:
        raise DecodeError(f"{kind.__struct_config__.tag}: {error}") from error
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        tag = kind.__struct_config__.tag
        raise DecodeError(f"{tag}: a field holds what cannot be written ({error}); give plain values") from error


class Seats:
    """How many callers may wait at once."""

    def __init__(self, limit: int, refused: Callable[[], None]) -> None:
        self.limit = limit
        self._refused = refused
        self._taken = 0
        self._lock = threading.Lock()

    def seat(self, waiter: Waiter[Any]) -> None:
        """Let a caller wait.

        Raises:
            Overloaded: `limits.waiters` wait already.

        """
        with self._lock:
            taken = self._taken
            if taken < self.limit:
                self._taken += 1
        if taken >= self.limit:
            self._refused()
            raise Overloaded(
                f"{taken} callers wait for an outcome, limits.waiters is {self.limit}; "
                "nothing was posted: ask again later, or post and look at the gateway's acks"
            )
        waiter.when_done(self._leave)

    def _leave(self) -> None:
        with self._lock:
            self._taken -= 1


class Reception:
    """Takes events and questions."""

    def __init__(self, sequencer: Sequencer, shard: Shard, desk: Release, seats: Seats) -> None:
        self._sequencer = sequencer
        self._shard = shard
        self._desk = desk
        self._seats = seats

    def post(self, event: Event, *, bypass: bool = False) -> Admission:
        """Take an event."""
        event = checked(event)
        admission = Admission()
        entry = Entry(event.chat, Body(event=event), admission)
        self._sequencer.put(entry, bypass=bypass or isinstance(event, BYPASS))
        return admission

    def ask(self, event: Reply | Edit) -> Waiter[Ack]:
        """Take a call of the agent's, and return what its ack will resolve."""
        event = self._call(event)
        waiter: Waiter[Ack] = Waiter()
        entry = Entry(event.chat, Body(event=event))
        entry.answer = waiter
        forget = partial(self._desk.forget_asking, event.chat, event.call_id, waiter)
        waiter.gave_up = partial(self._give_up, waiter, forget)
        self._seats.seat(waiter)
        try:
            self._sequencer.put(entry)
        except BaseException as error:
            waiter.fail(error)
            raise
        return waiter

    def await_turn(self, chat: str, turn_id: str) -> Waiter[TurnSettled]:
        """Return what the turn's terminal will resolve."""
        waiter: Waiter[TurnSettled] = Waiter()
        waiter.gave_up = partial(self._give_up, waiter, partial(self._desk.forget_turn, chat, turn_id, waiter))
        self._seats.seat(waiter)
        if not self._sequencer.notice(partial(self._await_turn, chat, turn_id, waiter)):
            waiter.fail(self._shard.why_not())
        return waiter

    def admit(self, address: Address, envelope: Envelope[Any]) -> None:
        """Take what was told through a pykka reference, from outside of a run."""
        event = envelope.message
        if address.kind != "chat" or not isinstance(event, EventBase) or event.chat != address.chat:
            found = f"an event of chat {event.chat}" if isinstance(event, EventBase) else type(event).__name__
            raise DecodeError(
                f"{address} of chat {address.chat} was told {found}; from outside a chat takes its own events only: "
                "tell Engine.chat(name) an event of that chat, and stop owners with Engine.stop()"
            )
        admission = self.post(event)  # type: ignore[arg-type]  # checked again there
        reply_to = envelope.reply_to
        if isinstance(reply_to, EngineFuture):
            admission.when_done(partial(_reply, admission, reply_to))

    def _call(self, event: object) -> Reply | Edit:
        known = checked(event)
        if not isinstance(known, Reply | Edit):
            tag = type(known).__struct_config__.tag
            raise DecodeError(f"ask was given {tag}; only reply and edit are answered by an ack: post the others")
        return known

    def _give_up(self, waiter: Waiter[Any], forget: partial[None]) -> None:
        waiter.fail(TimeoutError("nobody waits any more; the event goes on: ask again with the same call_id"))
        self._sequencer.notice(forget)

    def _await_turn(self, chat: str, turn_id: str, waiter: Waiter[TurnSettled]) -> None:
        """On the shard's thread: a turn that settled so long ago that nobody remembers how is told as that."""
        if waiter.done:
            return
        if self._desk.await_turn(chat, turn_id, waiter):
            return
        self._shard.cell.wake(chat)
        owner: OwnerLike | None = self._shard.cell.owners.get(chat_at(chat))
        turn = owner.state.turns.get(turn_id) if owner is not None else None
        if turn is not None and turn.status == "settled":
            self._shard.commits.after(partial(self._too_late, chat, turn_id, waiter))

    def _too_late(self, chat: str, turn_id: str, waiter: Waiter[TurnSettled]) -> None:
        if not waiter.done:
            waiter.fail(
                Misuse(
                    f"turn {turn_id} of chat {chat} settled before this engine started; look with Engine.inspect(chat)"
                )
            )
            self._desk.forget_turn(chat, turn_id, waiter)


def _reply(admission: Admission, future: EngineFuture) -> None:
    try:
        admitted = admission.result()
    except Exception as error:  # noqa: BLE001 - goes to whoever asked
        future.waiter.fail(error)
        return
    if admitted.outcome == "set_aside":
        future.waiter.fail(SetAside(f"event {admitted.seq} was set aside; see Engine.dead_letters()"))
    else:
        future.waiter.resolve(admitted)
