"""Owners, and one event run through them to the end, all or nothing.

The cell holds the owners of many chats, one FIFO between them, their deadlines, and the commands that await
confirmation. A chat that nothing is going on in falls asleep as a packed picture, and wakes at its next event: that
changes no state and no decision. The cell takes `spawn(address, state, cell)`, which makes an owner: a plain one
here, an actor in the running system; they differ in nothing but how `tell` travels. `receive` is the only caller
of a step.
"""

from __future__ import annotations

from collections import deque
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import force_setattr

from turnkeeper.engine import codec
from turnkeeper.engine.channel.state import open_channel
from turnkeeper.engine.channel.step import due_ms as channel_due_ms
from turnkeeper.engine.channel.step import step as channel_step
from turnkeeper.engine.chat.state import open_chat
from turnkeeper.engine.chat.step import step as chat_step
from turnkeeper.engine.commands import Command, Edit, Preview, React, Send
from turnkeeper.engine.config import Policy
from turnkeeper.engine.confirmations import Confirmations
from turnkeeper.engine.deadlines import Deadlines
from turnkeeper.engine.errors import InvariantViolated
from turnkeeper.engine.ids import Address, channel_at, chat_at
from turnkeeper.engine.invariants import violations
from turnkeeper.engine.journal import Body, DueBody, HandedBody
from turnkeeper.engine.picture import ChatPicture, draw, owners_in, pack, rests, unpack
from turnkeeper.engine.protocol import (
    At,
    Deliver,
    Due,
    Handed,
    Message,
    Opened,
    Recover,
    ShowMark,
    ShowPreview,
    Transition,
)
from turnkeeper.engine.running import Group, OwnerLike, Run, place, set_aside, watched
from turnkeeper.engine.signals import LimitReached
from turnkeeper.engine.turn.state import open_turn
from turnkeeper.engine.turn.step import step as turn_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.events import Event

__all__ = ["Cell", "Owner", "OwnerLike", "Run", "plain_owner", "receive"]

STEPS: dict[str, Callable[[Any, Message, At], Transition[Any]]] = {
    "chat": chat_step,
    "turn": turn_step,
    "channel": channel_step,
}
STEPS_MAX = 100_000
"""No event takes more; a run that does is a bug of ours, and is set aside."""
OPENS_CHANNEL = (Deliver, ShowPreview, ShowMark)
SETTLED = (Send, Edit, Preview, React)
AWAKE_CHATS = 4096
"""Chats that are kept awake though nothing is going on in them: waking one costs as much as an event."""


def receive(owner: OwnerLike, message: Message) -> Transition[Any]:
    """Run the step of an owner, keep its state, and tell what it tells."""
    cell = owner.cell
    done = STEPS[owner.address.kind](owner.state, message, cell.at)
    owner.state = done.state
    owner.due_ms = done.due_ms
    for to, told in done.tells:
        target = cell.owners.get(to)
        if target is None or target.state is None:
            target = cell.owner(to, told)
            if target is None:
                continue
        target.tell(told)
    return done


class Owner:
    """A plain owner: its `tell` puts straight into the FIFO."""

    __slots__ = ("address", "cell", "due_ms", "state")

    def __init__(self, address: Address, state: Any, cell: Cell) -> None:  # noqa: ANN401 - one of three state types
        self.address = address
        self.state = state
        self.cell = cell
        self.due_ms: int | None = None

    def tell(self, message: Message) -> None:
        """Put the message into the cell's FIFO."""
        self.cell.fifo.append((self, message))

    def on_receive(self, message: Message) -> Transition[Any]:
        """Handle a message."""
        return receive(self, message)


def plain_owner(address: Address, state: Any, cell: Cell) -> OwnerLike:  # noqa: ANN401 - one of three state types
    """Make an owner without an actor, for scenarios, replay and the simulator."""
    return Owner(address, state, cell)


class Cell:
    """The owners of many chats. One thread uses it; nothing in it knows of threads, clocks or disks.

    Args:
        spawn: makes an owner for a state; plain by default.
        paranoid: encode every state before and after each step and insist that no step changed it.
        awake_max: chats above this number fall asleep, the longest unused first, once nothing is going on in them.

    """

    def __init__(
        self,
        spawn: Callable[[Address, Any, Cell], OwnerLike] = plain_owner,
        *,
        paranoid: bool = False,
        awake_max: int = AWAKE_CHATS,
    ) -> None:
        self.at = At(0, Policy())
        self.owners: dict[Address, OwnerLike] = {}
        """Of the chats that are awake."""
        self.asleep: dict[str, bytes] = {}
        """Packed pictures, by chat."""
        self.fifo: deque[tuple[OwnerLike, Message]] = deque()
        self._confirmations = Confirmations()
        self.pending = self._confirmations.pending
        """Commands that await confirmation, by id, oldest first: they are emitted again after a crash."""
        self.chats = 0
        """Awake and asleep."""
        self._spawn = spawn
        self._paranoid = paranoid
        self.judge: Callable[..., tuple[str, ...]] = violations
        """Of what a run touched; a replay was judged when it was live."""
        self._opened: list[OwnerLike] = []
        self._restarting: tuple[OwnerLike, ...] = ()  # of one chat
        self.deadlines = Deadlines()
        self._awake_max = awake_max
        self._groups: dict[str, Group] = {}
        """By chat, the longest unused first."""

    # ------------------------------------------------------------ running

    def apply(self, body: Body, at_ms: int, seq: int) -> Run:
        """Run one record's body to quiescence; a step that raises undoes it.

        A `BaseException` (the host's interrupt, memory) undoes the run too, and is raised.
        """
        self.at = At(at_ms, self.at.policy)
        if body.configured is not None:
            self._configure(body.configured, at_ms)
            return Run()
        if body.done is not None:
            self.confirm(body.done.id)
            return Run()
        run = self._transact(body) if body.recovered is None else self._recover(body)
        if run.commands:
            self._issue(run, seq)
        if body.handed is not None and run.error is None:
            self.confirm(body.handed.id)
        return run

    def _issue(self, run: Run, seq: int) -> None:
        """Give the commands of a run their ids, and expect their confirmation."""
        limit = self.at.policy.limits.unconfirmed
        for n, command in enumerate(run.commands):
            # Made in this run, seen by nobody yet.
            force_setattr(command, "id", f"{seq}.{n}")
            if self._confirmations.admit(command, limit):
                run.signals += (LimitReached(chat=command.chat, limit="unconfirmed"),)

    def _configure(self, policy: Policy, at_ms: int) -> None:
        """Take another policy: `[delivery]` acts at once, and contents that a restart may need longer wake all."""
        old, self.at = self.at.policy, At(at_ms, policy)
        if policy.dedup.window_ms > old.dedup.window_ms:
            for chat in tuple(self.asleep):
                self.wake(chat)
        if policy.delivery != old.delivery:
            for owner in (one for one in self.owners.values() if one.address.kind == "channel"):
                owner.due_ms = channel_due_ms(owner.state, self.at)
                self.deadlines.put(owner.address, owner.due_ms)

    def _recover(self, body: Body) -> Run:
        """Tell a restart, chat by chat; one whose step raises stays as it was, the others recover."""
        run = Run()
        # In an order that does not depend on whether the owners came from a snapshot or from a replay.
        for chat, owners in groupby(sorted(self.owners.values(), key=place), key=lambda owner: owner.address.chat):
            self._restarting = tuple(owners)
            run.join(chat, self._transact(body))
        self._restarting = ()
        return run

    def _transact(self, body: Body) -> Run:
        before: dict[OwnerLike, Any] = {}
        run = Run()
        fifo, paranoid = self.fifo, self._paranoid
        try:
            fired = self._begin(body, run)
            while fifo:
                owner, message = fifo.popleft()
                if owner.state is None:
                    # It left while the message travelled: its chat takes it.
                    owner = self._chat_of(owner.address)
                if owner not in before:
                    before[owner] = owner.state
                run.add(watched(owner, message) if paranoid else owner.on_receive(message))
                if run.steps > STEPS_MAX:
                    raise InvariantViolated(f"more than {STEPS_MAX} steps; two owners answer each other for ever")
            run.violated = self.judge(before, run.commands, self.owners, self.at.now_ms, fired=fired)
        except Exception as error:  # noqa: BLE001 - whatever a step raises sets the event aside
            self._undo(before)
            return set_aside(body, error)
        except BaseException:
            self._undo(before)
            raise
        self._keep(before)
        return run

    def _begin(self, body: Body, run: Run) -> Address | None:
        """Put the first message of a run into the FIFO; returns whose deadline it is, if it is one."""
        if body.event is not None:
            self._begin_event(body.event, run)
        elif body.due is not None:
            self.wake(body.due.chat)
            address = Address.parse(body.due.chat, body.due.owner)
            if address in self.owners:
                self._tell(address, Due())
            return address
        elif body.handed is not None:
            self._begin_handed(body.handed)
        elif body.recovered is not None:
            for owner in self._restarting:
                owner.tell(Recover(body.recovered.down_ms))
        return None

    def _begin_event(self, event: Event, run: Run) -> None:
        self.wake(event.chat)
        address = chat_at(event.chat)
        known = self.owners.get(address)
        if known is not None:
            known.tell(event)
        elif self.chats < self.at.policy.limits.chats:
            self._tell(address, event)
        else:
            run.refuse_chat(event)

    def _begin_handed(self, handed: HandedBody) -> None:
        command = self.pending.get(handed.id)
        if isinstance(command, SETTLED):
            self._tell(channel_at(command.chat, command.channel), Handed(handed.delivery, handed.attempt))

    def _tell(self, address: Address, message: Message) -> None:
        owner = self.owner(address, message)
        if owner is not None:
            owner.tell(message)

    def _undo(self, before: dict[OwnerLike, Any]) -> None:
        """Give every touched owner its state back, and forget those that were opened."""
        self.fifo.clear()
        for owner, state in before.items():
            owner.state, owner.due_ms = state, self.deadlines.of(owner.address)
        for owner in self._opened:
            self._forget(owner)
        self._opened.clear()

    def _keep(self, before: dict[OwnerLike, Any]) -> None:
        """Take the new states as they are: deadlines in, owners that left out."""
        self._opened.clear()
        for owner in before:
            if owner.state is None:
                self._forget(owner)
            self.deadlines.put(owner.address, owner.due_ms, owner.state)
        if len(self._groups) > self._awake_max:
            self._rest()

    # ------------------------------------------------------------ owners

    def owner(self, to: Address, message: Message) -> OwnerLike | None:
        """Return who takes a message: the owner, one that the message opens, or the chat of a turn that is gone."""
        owner = self.owners.get(to)
        if owner is not None and owner.state is not None:
            return owner
        if to.kind == "turn" and isinstance(message, Opened):
            return self._open(to, open_turn(to, self.at.policy, self.at.now_ms))
        if to.kind == "channel":
            return self._open(to, open_channel(to)) if isinstance(message, OPENS_CHANNEL) else None
        return self._chat_of(to)

    def _chat_of(self, address: Address) -> OwnerLike:
        to = chat_at(address.chat)
        return self.owners.get(to) or self._open(to, open_chat(to))

    def _open(self, address: Address, state: Any) -> OwnerLike:  # noqa: ANN401 - one of three state types
        owner = self._spawn(address, state, self)
        self._enter(owner)
        self._opened.append(owner)
        self.chats += address.kind == "chat"
        return owner

    def _enter(self, owner: OwnerLike) -> None:
        address = owner.address
        self.owners[address] = owner
        self._groups.setdefault(address.chat, Group(self.at.now_ms)).addresses.append(address)

    def _forget(self, owner: OwnerLike) -> None:
        address = owner.address
        if self.owners.get(address) is not owner:
            return
        del self.owners[address]
        self.chats -= address.kind == "chat"
        group = self._groups[address.chat]
        group.addresses.remove(address)
        if not group.addresses:
            del self._groups[address.chat]

    def adopt(self, address: Address, state: Any, due_ms: int | None) -> None:  # noqa: ANN401 - one of three state types
        """Take in an owner with the state and deadline that it had, when a snapshot is loaded."""
        owner = self._open(address, state)
        self._opened.clear()
        owner.due_ms = due_ms
        self.deadlines.put(address, due_ms, state)

    def confirm(self, command_id: str) -> None:
        """A command was handed over, or `perform` returned for it."""
        self._confirmations.confirm(command_id)

    def expect_confirmation(self, command: Command) -> None:
        """Take in a command that awaits confirmation, when a snapshot is loaded; oldest first."""
        self._confirmations.expect(command)

    def put(self, owner: OwnerLike, message: Message) -> None:
        """Take a message into the FIFO."""
        self.fifo.append((owner, message))

    # ------------------------------------------------------------ sleep

    def wake(self, chat: str) -> None:
        """Wake a chat, if it sleeps, and note that it is used."""
        packed = self.asleep.pop(chat, None)
        if packed is not None:
            for address, state, _ in owners_in(codec.decode(unpack(packed), ChatPicture)):
                self._enter(self._spawn(address, state, self))
            return
        group = self._groups.pop(chat, None)
        if group is not None:
            group.used_ms = self.at.now_ms
            self._groups[chat] = group

    def group(self, chat: str) -> list[OwnerLike]:
        """List the owners of a chat that is awake."""
        group = self._groups.get(chat)
        return [] if group is None else [self.owners[address] for address in group.addresses]

    def lay_asleep(self, picture: ChatPicture, encoded: bytes) -> None:
        """Take in a chat that rests, when a snapshot is loaded."""
        self.asleep[picture.state.chat] = pack(encoded)
        self.chats += 1

    def _rest(self) -> None:
        """Let the longest unused chats fall asleep, if nothing is going on there and their content windows passed.

        A restart begins the window of what was just said anew; for what sleeps there is none to begin.
        """
        for chat, group in (*islice(self._groups.items(), 2),):
            if self.at.now_ms - group.used_ms <= self.at.policy.dedup.window_ms:
                return
            del self._groups[chat]
            owners = [self.owners[address] for address in group.addresses]
            picture = (
                None if self._confirmations.awaited(chat) else draw((o.address, o.state, o.due_ms) for o in owners)
            )
            if picture is None or not rests(picture):
                self._groups[chat] = group  # it is looked at again when its turn comes
                continue
            self.asleep[chat] = pack(codec.encode(picture))
            for address in group.addresses:
                del self.owners[address]

    # ------------------------------------------------------------ deadlines

    def next_due_ms(self) -> int | None:
        """Return the earliest deadline of all owners."""
        return self.deadlines.next_ms()

    def take_due(self, now_ms: int) -> Body | None:
        """Take the earliest deadline that came, as the body of a record; the owner checks it again."""
        address = self.deadlines.take(now_ms)
        return None if address is None else Body(due=DueBody(address.chat, str(address)))

    def forget_due(self, due: DueBody) -> None:
        """A replayed deadline came: it is not pending any more."""
        self.deadlines.put(Address.parse(due.chat, due.owner), None)
