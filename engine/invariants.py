"""What must hold after every event, as named predicates (checked live; in tests and simulations always).

A predicate sees what one run touched: the owners with their states before and after, and the commands. It
reads, never decides, and looks only at what changed, so it is cheap enough to stay on in production. What a
whole chat must agree on is `audit`, for simulations and tests. What the owners' states alone cannot show (what
users saw, what the host was told) is the business of the simulator's oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnkeeper.engine.channel.state import ChannelState
from turnkeeper.engine.chat.state import ChatState, Input
from turnkeeper.engine.commands import Command, Edit, Preview, Send, TurnSettled
from turnkeeper.engine.ids import chat_at, turn_at
from turnkeeper.engine.protocol import Quote
from turnkeeper.engine.turn.state import TurnState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from turnkeeper.engine.ids import Address

__all__ = ["PREDICATES", "After", "audit", "violations"]

OPEN_INPUT = frozenset({"written", "seen", "answering"})
OVERTAKES = frozenset({"interrupted", "lost"})
"""Ends that do not wait for what is in flight."""


class After:
    """One run, seen from behind: what it touched, what it commanded, and who else there is."""

    __slots__ = ("commands", "fired", "now_ms", "owners", "touched")

    def __init__(
        self, touched: Mapping[Any, Any], commands: Sequence[Command], owners: Mapping[Address, Any], now_ms: int
    ) -> None:
        self.touched = touched
        """Owner → its state before."""
        self.commands = commands
        self.owners = owners
        self.now_ms = now_ms
        self.fired: Address | None = None
        """Whose deadline the run was."""

    def state(self, address: Address) -> Any:  # noqa: ANN401 - one of three state types
        """Return an owner's state now, or None."""
        owner = self.owners.get(address)
        return None if owner is None else owner.state

    def pairs(self, kind: str) -> Iterator[tuple[Any, Any]]:
        """Yield the touched owners of a kind with their states before."""
        return ((owner, before) for owner, before in self.touched.items() if owner.address.kind == kind)

    def terminals(self) -> Iterator[tuple[TurnSettled, TurnState | None, ChatState]]:
        """Yield every terminal with its turn's state before and its chat's state now."""
        for command in self.commands:
            if isinstance(command, TurnSettled):
                address = turn_at(command.chat, command.turn_id)
                before = next((seen for owner, seen in self.touched.items() if owner.address == address), None)
                yield command, before, self.state(chat_at(command.chat))


def violations(
    touched: Mapping[Any, Any],
    commands: Sequence[Command],
    owners: Mapping[Address, Any],
    now_ms: int,
    *,
    fired: Address | None = None,
) -> list[str]:
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
    return [name for name, holds in PREDICATES.items() if not holds(after)]


def one_terminal(after: After) -> bool:
    """A turn tells its terminal once."""
    told: set[tuple[str, str]] = set()
    for command, before, _ in after.terminals():
        key = (command.chat, command.turn_id)
        if key in told or (before is not None and before.phase == "settled"):
            return False
        told.add(key)
    return True


def terminal_waits(after: After) -> bool:
    """No terminal is told while a reply is in flight for the turn; an interrupt and a loss do not wait."""
    for command, _, chat in after.terminals():
        if command.outcome in OVERTAKES:
            continue
        outs = (out for _, out in chat.outbound.items())
        for out in outs:
            mine = out.turn_id == command.turn_id or command.turn_id in out.consumers
            if mine and out.outcome == "in flight" and out.kind != "edit":
                return False
    return True


def quote_once(after: After) -> bool:
    """A bubble quotes only if its input's one quote is reserved for it; a final may repeat that of its preview."""
    for command in after.commands:
        if not isinstance(command, Send | Preview) or command.quote is None or command.turn_id is None:
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
    state: ChatState | None = after.state(chat_at(chat))
    entry = state.ledger.get(turn_id) if state is not None else None
    return None if entry is None else entry.quote


def final_is_final(after: After) -> bool:
    """A delivered final reply is never followed by a fallback or rescue of its turn, but by policy."""
    for command in after.commands:
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
    for command, before, _ in after.terminals():
        stop = before.stop if before is not None else None
        if before is None or stop is None or not stop.text.strip() or before.policy.speech.prose != "locus":
            continue
        if command.outcome == "expired" or (command.outcome == "silent" and stop.attributed):
            return False
    return True


def inputs_kept(after: After) -> bool:
    """No open input is forgotten: one that leaves the ledger leaves a tombstone behind."""
    for owner, before in after.pairs("chat"):
        now: ChatState = owner.state
        if before is None or now.ledger is before.ledger or len(now.ledger) > len(before.ledger):
            continue
        limit = owner.cell.at.policy.limits.tombstones
        for key in before.ledger.keys() - now.ledger.keys():
            if limit and before.ledger[key].state in OPEN_INPUT and key not in now.tombstones:
                return False
    return True


def folds_judged(after: After) -> bool:
    """When a turn ends, every fold into it that nobody confirmed has its drop check before it."""
    return not any(
        _unjudged(entry) and entry.into == command.turn_id
        for command, _, chat in after.terminals()
        for entry in chat.ledger.values()
    )


def _unjudged(entry: Input) -> bool:
    return entry.state == "written" and not entry.is_turn and entry.check_ms is None


def in_order(after: After) -> bool:
    """What waits in a channel keeps its order, and only what is at its front is commanded."""
    for owner, before in after.pairs("channel"):
        now: ChannelState = owner.state
        if before is None or (now.queue is before.queue and now.out is before.out):
            continue
        left = [item.delivery for item in now.queue]
        waited = [item.delivery for item in before.queue]
        if before.out is not None and before.out.delivery in left:
            return False
        old = [delivery for delivery in left if delivery in waited]
        if left[: len(old)] != old or old != [delivery for delivery in waited if delivery in left]:
            return False
    return _only_the_front(after)


def _only_the_front(after: After) -> bool:
    """Compare each channel's last command with what is at its front now."""
    last: dict[str, Send | Edit] = {}
    for command in after.commands:
        if isinstance(command, Send | Edit):
            last[str(command.channel)] = command
    for owner, _ in after.pairs("channel"):
        newest = last.get(owner.address.key)
        if newest is None or newest.chat != owner.address.chat:
            continue
        out = owner.state.out
        if out is None or (out.delivery, out.attempt) != (newest.delivery, newest.attempt):
            return False
    return True


def counters_agree(after: After) -> bool:
    """A chat knows of each turn what the turn knows of itself; what a turn waits for is in flight."""
    for owner, _ in after.pairs("turn"):
        chat: ChatState | None = after.state(chat_at(owner.address.chat))
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
        outs = [chat.outbound.get(delivery) for delivery in turn.flights]
        if any(out is None or out.outcome != "in flight" for out in outs):
            return False
        if entry.in_flight != sum(flight.own for flight in turn.flights.values()):
            return False
    return True


def deliveries_agree(after: After) -> bool:
    """What is at a channel's front, and what came last behind it, is in flight for its chat."""
    for owner, before in after.pairs("channel"):
        now: ChannelState = owner.state
        if now is before:
            continue
        chat: ChatState | None = after.state(chat_at(owner.address.chat))
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


PREDICATES: dict[str, Callable[[After], bool]] = {
    check.__name__: check
    for check in (
        one_terminal,
        terminal_waits,
        quote_once,
        final_is_final,
        stop_text_kept,
        inputs_kept,
        folds_judged,
        in_order,
        counters_agree,
        deliveries_agree,
        deadlines_pass,
    )
}


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
        host = chat.turns.get(entry.into or "")
        if _unjudged(entry) and (host is None or host.status == "settled"):
            found.append(f"fold {entry.turn_id} waits for a drop check that never comes")
        if entry.state == "answering" and not known.issuperset(entry.answering):
            found.append(f"input {entry.turn_id} is being answered by a delivery that ended")
    return found
