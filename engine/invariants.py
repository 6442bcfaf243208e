"""What must hold after every event, as named predicates (checked live; in tests and simulations always).

A predicate sees what one run touched: the owners with their states before and after, and the commands. It
reads, never decides, and looks only at what changed, so it is cheap enough to stay on in production. What a
whole chat must agree on is `audit`, for simulations and tests. What the owners' states alone cannot show (what
users saw, what the host was told) is the business of the simulator's oracle.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from turnkeeper.engine.channel.state import ChannelState
from turnkeeper.engine.chat.state import ChatState, Input, Outbound
from turnkeeper.engine.commands import Command, Edit, Preview, Send, TurnSettled
from turnkeeper.engine.ids import chat_at, turn_at
from turnkeeper.engine.protocol import Quote
from turnkeeper.engine.turn.state import TurnState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnkeeper.engine.ids import Address

__all__ = ["PREDICATES", "After", "audit", "unjudged", "violations"]

OPEN_INPUT = frozenset({"written", "seen", "answering"})
OVERTAKES = frozenset({"interrupted", "lost"})
"""Ends that do not wait for what is in flight."""
SENT = frozenset({Send, Edit, Preview})
Touched = tuple[Any, Any]
"""An owner, and its state before."""


class After:
    """One run, seen from behind: what it touched, what it commanded, and who else there is."""

    __slots__ = ("channels", "chats", "fired", "now_ms", "owners", "sends", "terminals", "touched", "turns")

    def __init__(
        self, touched: Mapping[Any, Any], commands: Sequence[Any], owners: Mapping[Address, Any], now_ms: int
    ) -> None:
        self.touched = touched
        """Owner → its state before."""
        self.owners = owners
        self.now_ms = now_ms
        self.fired: Address | None = None
        """Whose deadline the run was."""
        self.chats: list[Touched] = []
        self.turns: list[Touched] = []
        self.channels: list[Touched] = []
        for pair in touched.items():
            kind = pair[0].address.kind
            if kind == "turn":
                self.turns.append(pair)
            elif kind == "chat":
                self.chats.append(pair)
            elif pair[0].state is not None:
                self.channels.append(pair)
        self.terminals: list[TurnSettled] = []
        self.sends: list[Send | Edit | Preview] = []
        for command in commands:
            made: type = command.__class__
            if made is TurnSettled:
                self.terminals.append(command)
            elif made in SENT:
                self.sends.append(command)

    def state(self, address: Address) -> Any:  # noqa: ANN401 - one of three state types
        """Return an owner's state now, or None."""
        owner = self.owners.get(address)
        return None if owner is None else owner.state

    def chat(self, name: str) -> ChatState | None:
        """Return a chat's state now; nearly always the run touched it."""
        for owner, _ in self.chats:
            if owner.address.chat == name:
                return owner.state  # type: ignore[no-any-return]
        return self.state(chat_at(name))  # type: ignore[no-any-return]

    def before(self, terminal: TurnSettled) -> TurnState | None:
        """Return the state that a turn was in before it told its terminal."""
        for owner, seen in self.turns:
            if owner.address.key == terminal.turn_id and owner.address.chat == terminal.chat:
                return seen  # type: ignore[no-any-return]
        return None


def violations(
    touched: Mapping[Any, Any],
    commands: Sequence[Command],
    owners: Mapping[Address, Any],
    now_ms: int,
    *,
    fired: Address | None = None,
) -> tuple[str, ...]:
    """Return the names of the predicates that a run broke.

    Args:
        touched: owner → its state before the run.
        commands: what the run commanded.
        owners: every owner by address.
        now_ms: when it ran.
        fired: whose deadline it was, if it was one.

    """
    after = After(touched, commands, owners, now_ms)
    after.fired = fired
    broken: tuple[str, ...] = ()
    for needs, checks in CHECKS:
        if needs(after):
            for check in checks:
                if not check(after):
                    broken += (check.__name__,)
    return broken


def unjudged(*_: object, **__: object) -> tuple[str, ...]:
    """Stand in for `violations` where nothing is checked: in a replay, and with `invariants.live` off."""
    return ()


def one_terminal(after: After) -> bool:
    """A turn tells its terminal once."""
    told: set[tuple[str, str]] = set()
    for command in after.terminals:
        key = (command.chat, command.turn_id)
        before = after.before(command)
        if key in told or (before is not None and before.phase == "settled"):
            return False
        told.add(key)
    return True


def terminal_waits(after: After) -> bool:
    """No terminal is told while a reply is in flight for the turn; an interrupt and a loss do not wait."""
    for command in after.terminals:
        if command.outcome in OVERTAKES:
            continue
        chat = after.chat(command.chat)
        for chunk in chat.outbound.chunks if chat is not None else ():
            for out in chunk.values():
                if out.outcome == "in flight" and out.kind != "edit" and _concerns(out, command.turn_id):
                    return False
    return True


def _concerns(out: Outbound, turn_id: str) -> bool:
    return out.turn_id == turn_id or turn_id in out.consumers


def quote_once(after: After) -> bool:
    """A bubble quotes only if its input's one quote is reserved for it; a final may repeat that of its preview."""
    for command in after.sends:
        if isinstance(command, Edit) or command.quote is None or command.turn_id is None:
            continue
        if isinstance(command, Send) and command.replaces_preview:
            continue
        quote = _quote_of(after, command.chat, command.turn_id)
        if quote is not None and quote.by != command.delivery:
            return False
    return True


def _quote_of(after: After, chat: str, turn_id: str) -> Quote | None:
    """Return the quote of an input, wherever it is kept; an input that left a full ledger has none."""
    turn: TurnState | None = after.state(turn_at(chat, turn_id))
    if turn is not None and turn.phase != "settled":
        return turn.quote
    state = after.chat(chat)
    entry = state.ledger.get(turn_id) if state is not None else None
    return None if entry is None else entry.quote


def final_is_final(after: After) -> bool:
    """A delivered final reply is never followed by a fallback or rescue of its turn, but by policy."""
    for command in after.sends:
        if not isinstance(command, Send) or command.purpose not in {"fallback", "rescue"} or command.turn_id is None:
            continue
        turn: TurnState | None = after.state(turn_at(command.chat, command.turn_id))
        if turn is None or turn.policy.finalize.final_reply == "rescue-different":
            continue
        if any(reply.known and not reply.flight.interim for reply in turn.replies):
            return False
    return True


def stop_text_kept(after: After) -> bool:
    """A Stop text is not lost when nothing else was delivered: with one, a turn is neither silent nor expired."""
    for command in after.terminals:
        before = after.before(command)
        stop = before.stop if before is not None else None
        if before is None or stop is None or not stop.text.strip() or before.policy.speech.prose != "locus":
            continue
        if command.outcome == "expired" or (command.outcome == "silent" and stop.attributed):
            return False
    return True


def inputs_kept(after: After) -> bool:
    """No open input is forgotten: one that leaves the ledger leaves a tombstone behind."""
    for owner, before in after.chats:
        now: ChatState = owner.state
        if before is None or now.ledger is before.ledger or len(now.ledger) > len(before.ledger):
            continue
        if now.ledger.keys() == before.ledger.keys():
            continue
        limit = owner.cell.at.policy.limits.tombstones
        for key in before.ledger.keys() - now.ledger.keys():
            if limit and before.ledger[key].state in OPEN_INPUT and key not in now.tombstones:
                return False
    return True


def folds_judged(after: After) -> bool:
    """When a turn ends, every fold into it that nobody confirmed has its drop check before it."""
    return not any(
        entry.into == command.turn_id and _unjudged(entry)
        for command in after.terminals
        for chat in (after.chat(command.chat),)
        for entry in (chat.ledger.values() if chat is not None else ())
    )


def _unjudged(entry: Input) -> bool:
    return entry.state == "written" and not entry.is_turn and entry.check_ms is None


def in_order(after: After) -> bool:
    """What waits in a channel keeps its order: what is new stands behind it."""
    for owner, before in after.channels:
        now: ChannelState = owner.state
        if before is None or now.queue is before.queue or not before.queue:
            continue
        left = [item.delivery for item in now.queue]
        waited = [item.delivery for item in before.queue]
        old = [delivery for delivery in left if delivery in waited]
        if left[: len(old)] != old or old != [delivery for delivery in waited if delivery in left]:
            return False
    return True


def front_commanded(after: After) -> bool:
    """Only what is at a channel's front is commanded: one operation is out at a time."""
    last: dict[tuple[str, str], Send | Edit] = {}
    for command in after.sends:
        if not isinstance(command, Preview):
            last[command.chat, str(command.channel)] = command
    for owner, _ in after.channels if last else ():
        newest = last.get((owner.address.chat, owner.address.key))
        out = owner.state.out
        if newest is not None and (out is None or (out.delivery, out.attempt) != (newest.delivery, newest.attempt)):
            return False
    return True


def counters_agree(after: After) -> bool:
    """A chat knows of each turn what the turn knows of itself; what a turn waits for is in flight."""
    for owner, _ in after.turns:
        chat = after.chat(owner.address.chat)
        entry = chat.turns.get(owner.address.key) if chat is not None else None
        turn: TurnState | None = owner.state
        if chat is None or (entry is None and turn is not None and turn.phase != "settled"):
            return False
        if entry is None:
            continue
        if entry.status != ("settled" if turn is None else turn.phase):
            return False
        if turn is None or turn.phase == "settled":
            continue
        if (entry.in_flight or turn.flights) and not _flights_agree(chat, entry.in_flight, turn):
            return False
    return True


def _flights_agree(chat: ChatState, in_flight: int, turn: TurnState) -> bool:
    for delivery, flight in turn.flights.items():
        out = chat.outbound.get(delivery)
        if out is None or out.outcome != "in flight":
            return False
        in_flight -= flight.own
    return not in_flight


def deliveries_agree(after: After) -> bool:
    """What is at a channel's front, and what came last behind it, is in flight for its chat."""
    for owner, before in after.channels:
        now: ChannelState = owner.state
        if now is before:
            continue
        chat = after.chat(owner.address.chat)
        for item in (now.out, now.queue[-1] if now.queue else None):
            out = chat.outbound.get(item.delivery) if chat is not None and item is not None else None
            if item is not None and (out is None or out.outcome != "in flight"):
                return False
    return True


def deadlines_pass(after: After) -> bool:
    """A deadline that came is dealt with: it does not stay in the past."""
    owner = None if after.fired is None else after.owners.get(after.fired)
    if owner is None or owner.due_ms is None or owner.due_ms > after.now_ms:
        return True
    return owner.state is not after.touched.get(owner)


PREDICATES: dict[str, tuple[Callable[[After], bool], ...]] = {
    "terminals": (one_terminal, terminal_waits, stop_text_kept, folds_judged),
    "sends": (quote_once, final_is_final, front_commanded),
    "chats": (inputs_kept,),
    "turns": (counters_agree,),
    "channels": (in_order, deliveries_agree),
    "fired": (deadlines_pass,),
}
"""By what a run must hold for them to say anything."""
CHECKS = tuple((attrgetter(needs), checks) for needs, checks in PREDICATES.items())


def audit(owners: Mapping[Address, Any]) -> list[str]:
    """Return what a whole cell does not agree on, between two events; for simulations and tests."""
    found: list[str] = []
    for address, owner in owners.items():
        if address.kind == "chat":
            found += _audit_chat(owner.state, owners)
        elif address.kind == "turn" and _waits_for_nothing(owner):
            found.append(f"{address} is open and nothing will ever end it")
    return found


def _waits_for_nothing(owner: Any) -> bool:  # noqa: ANN401 - an owner of a turn
    """Say whether an open turn has neither a deadline nor a delivery that will settle."""
    turn: TurnState = owner.state
    return turn.phase == "open" and owner.due_ms is None and not turn.flights


def _audit_chat(chat: ChatState, owners: Mapping[Address, Any]) -> list[str]:
    found: list[str] = []
    mine = [owner for address, owner in owners.items() if address.chat == chat.chat]
    channels: list[ChannelState] = [owner.state for owner in mine if owner.address.kind == "channel"]
    waiting = {item.delivery for one in channels for item in (one.out, *one.queue) if item is not None}
    known = {key for key, out in chat.outbound.items() if out.outcome == "in flight"}
    found += [f"{key} is in flight for its chat, and in no channel" for key in sorted(known - waiting)]
    found += [f"{key} is in a channel, and not in flight for its chat" for key in sorted(waiting - known)]
    alive = {owner.address.key for owner in mine if owner.address.kind == "turn" and owner.state.phase != "settled"}
    listed = {key for key, entry in chat.turns.items() if entry.status != "settled"}
    found += [f"turn {key} is known to its chat or to itself alone" for key in sorted(alive ^ listed)]
    for entry in chat.ledger.values():
        host = None if entry.into is None else chat.turns.get(entry.into)
        if _unjudged(entry) and (host is None or host.status == "settled"):
            found.append(f"fold {entry.turn_id} waits for a drop check that never comes")
        if entry.state == "answering" and not known.issuperset(entry.answering):
            found.append(f"input {entry.turn_id} is being answered by a delivery that ended")
    return found
