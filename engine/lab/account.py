"""What a run came to, as its users and its operator see it: answers, owners, what was held back, how turns ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine.chat.tables import ATTRIBUTION, Owner
from turnkeeper.engine.commands import Ack, Send, Settleable, TurnSettled
from turnkeeper.engine.events import Reply, Settled, Stopped
from turnkeeper.engine.ids import MessageId, delivery_key
from turnkeeper.engine.signals import StopTextSuppressed
from turnkeeper.engine.turn.tables import DELIVERY, FINAL

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.journal import Record
    from turnkeeper.engine.table import Decision

__all__ = ["Account", "Answer", "Ended", "HeldBack", "Owned", "Ruling", "Witness", "account_of"]

SPOKEN = ("fallback", "rescue")
"""Purposes of what the engine sends at a turn's end, for no reply call."""


class Witness:
    """Keeps every live run of a scenario: a `Probe` that counts nothing."""

    def __init__(self) -> None:
        self.seen: list[tuple[Record, Run]] = []

    def observe(self, record: Record, run: Run, /) -> None:
        """Take in a live run."""
        self.seen.append((record, run))

    def sample(self, written: str, /) -> float:
        """Return 0: nothing is counted."""
        return 0.0


class Ruling(msgspec.Struct, frozen=True):
    """The row that decided something."""

    table: str
    row: str
    why: str


class Answer(msgspec.Struct, frozen=True):
    """A message that the users saw, or that may have arrived."""

    text: str
    purpose: str
    channel: str
    quote: MessageId | None
    message: MessageId | None
    """Its own id; None: unknown."""
    turn_id: str | None
    files: tuple[str, ...] = ()
    instead_of_preview: bool = False
    sure: bool = True
    """False: nobody knows whether it arrived."""


class Owned(msgspec.Struct, frozen=True):
    """Whose a reply call was."""

    call_id: str
    owner: str
    decided: Ruling | None
    error: str | None = None
    """Why the call was refused or failed."""


class HeldBack(msgspec.Struct, frozen=True):
    """Last words of the agent that were not sent."""

    turn_id: str | None
    text: str
    decided: Ruling


class Rescued(msgspec.Struct, frozen=True):
    """Something sent at a turn's end that was no reply call."""

    turn_id: str | None
    text: str
    purpose: str
    decided: Ruling | None


class Ended(msgspec.Struct, frozen=True):
    """How a turn ended."""

    turn_id: str
    outcome: str
    replies: int
    delivered: str
    decided: Ruling | None


class Account(msgspec.Struct, frozen=True):
    """Everything of one run that a summary says."""

    answers: tuple[Answer, ...]
    owned: tuple[Owned, ...]
    held_back: tuple[HeldBack, ...]
    rescued: tuple[Rescued, ...]
    ended: tuple[Ended, ...]


def account_of(witness: Witness, visible: Iterable[tuple[str, Settleable]]) -> Account:
    """Sum up a run.

    Args:
        witness: saw it live.
        visible: `Platform.visible`: what users saw, in order.

    """
    runs = [run for _, run in witness.seen]
    rulings = _rulings(runs)
    return Account(
        answers=tuple(_answers(witness, visible)),
        owned=tuple(
            _owned(record.body.event, run, runs) for record, run in witness.seen if isinstance(record.body.event, Reply)
        ),
        held_back=tuple(_held_back(witness)),
        rescued=tuple(
            Rescued(sent.turn_id, sent.text, sent.purpose, rulings.get((sent.chat, sent.turn_id)))
            for run in runs
            for sent in run.commands
            if isinstance(sent, Send) and sent.purpose in SPOKEN and sent.attempt == 1
        ),
        ended=tuple(
            Ended(
                told.turn_id,
                told.outcome,
                told.replies,
                told.delivered,
                rulings.get((told.chat, told.turn_id)),
            )
            for run in runs
            for told in run.commands
            if isinstance(told, TurnSettled)
        ),
    )


def _ruling(decision: Decision[object]) -> Ruling:
    return Ruling(decision.table, decision.row, decision.why)


def _answers(witness: Witness, visible: Iterable[tuple[str, Settleable]]) -> Iterable[Answer]:
    ids = {
        event.delivery: event.messages[0]
        for event in (record.body.event for record, _ in witness.seen)
        if isinstance(event, Settled) and event.outcome == "sent" and event.messages
    }
    for what, sent in visible:
        if isinstance(sent, Send):
            yield Answer(
                sent.text,
                sent.purpose,
                str(sent.channel),
                sent.quote,
                ids.get(sent.delivery),
                sent.turn_id,
                sent.files,
                instead_of_preview=sent.replaces_preview,
                sure=what == "sent",
            )


def _owned(event: Reply, run: Run, runs: list[Run]) -> Owned:
    """Say whose a reply is: by the row that decided, and by the send that it became."""
    decided = next((row for row in run.rows if row.table == ATTRIBUTION.name), None)
    key = delivery_key("reply", event.chat, event.call_id)
    commands = [command for each in runs for command in each.commands]
    turn = next((one.turn_id for one in commands if isinstance(one, Send) and one.delivery == key), None)
    error = next((one.error for one in commands if isinstance(one, Ack) and one.call_id == event.call_id), None)
    if decided is None:
        return Owned(event.call_id, "nobody's: the call was not taken up", None, error)
    match decided.verdict:
        case Owner.LATE:
            owner = "no turn's: a late answer" + (f" to input {turn}" if turn else "")
        case Owner.NOBODY:
            owner = "no turn's"
        case _:
            owner = f"turn {turn}'s" if turn else str(decided.verdict)
    return Owned(event.call_id, owner, _ruling(decided), error)


def _held_back(witness: Witness) -> Iterable[HeldBack]:
    last: dict[str, str] = {}
    for record, run in witness.seen:
        event = record.body.event
        if isinstance(event, Stopped):
            last[event.chat] = event.text
        for signal in run.signals:
            if isinstance(signal, StopTextSuppressed):
                ruling = Ruling(signal.table, signal.row, signal.why)
                yield HeldBack(signal.turn_id, last.get(signal.chat, ""), ruling)


def _rulings(runs: list[Run]) -> dict[tuple[str, str | None], Ruling]:
    """Find the row that ended each turn: the one, in the run that ended it, whose verdict its outcome is."""
    outcomes: dict[tuple[str, str | None], str] = {
        (told.chat, told.turn_id): told.outcome
        for run in runs
        for told in run.commands
        if isinstance(told, TurnSettled)
    }
    found: dict[tuple[str, str | None], Ruling] = {}
    for run in runs:
        rows = [row for row in run.rows if row.table == DELIVERY.name]
        beside = {row.row: row for row in run.rows if row.table == FINAL.name and row.row != "equal"}
        for key in _ended_by(run):
            same = [row for row in rows if str(row.verdict) == outcomes.get(key)] or rows[:1]
            if same and key not in found:
                rows.remove(same[0])
                found[key] = _ruling(beside.get("different", same[0]))
    return found


def _ended_by(run: Run) -> list[tuple[str, str | None]]:
    """List the turns that a run ended, or for which it sent what ends them."""
    return [
        (command.chat, command.turn_id)
        for command in run.commands
        if isinstance(command, TurnSettled) or (isinstance(command, Send) and command.purpose in SPOKEN)
    ]
