"""After the commit: who is told what became of a record. Used on the shard's thread only.

An ack goes to its waiter if there is one, else to the gateway like every other command. A `turn_settled` goes
to the gateway and to whoever waits for it. What was set aside becomes a dead letter. Observers see every
record with its run, in the order of the journal; one that raises is logged and stops nothing.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from turnkeeper.actors.log import log
from turnkeeper.engine.commands import Ack, Command, TurnSettled
from turnkeeper.engine.errors import EngineError, SetAside
from turnkeeper.engine.events import Edit, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.actors.measures import Measures
    from turnkeeper.actors.performer import Performer
    from turnkeeper.actors.sequencer import Entry
    from turnkeeper.actors.waiting import Waiter
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.events import Event
    from turnkeeper.engine.journal import Record

__all__ = ["DeadLetter", "Observer", "Release", "Sequenced"]

CALLS = (Reply, Edit)
SETTLED_KEPT = 4096
"""Terminals kept for a `turn_settled` that is asked for after the end."""

if TYPE_CHECKING:
    Observer = Callable[[Record, Run], None]


class DeadLetter(NamedTuple):
    """An event that was journaled and never applied, because a step raised."""

    seq: int
    at_ms: int
    chat: str
    event: Event | None
    """None: it was a deadline or a hand-over."""
    error: str
    """The type of what was raised; empty for one of before a restart."""


class Sequenced(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An entry that was run, and waits for its commit."""

    entry: Entry
    record: Record
    run: Run
    spent_ns: int
    """How long the run took."""


class Release:
    """Answers everybody who waits, and hands the commands on."""

    def __init__(self, performer: Performer, measures: Measures, dead_letters_max: int) -> None:
        self.dead_letters: deque[DeadLetter] = deque(maxlen=dead_letters_max)
        self.observer: Observer | None = None
        """Sees every committed record with its run."""
        self._performer = performer
        self._measures = measures
        self._asking: dict[tuple[str, str], deque[Waiter[Ack]]] = {}
        self._awaiting: dict[tuple[str, str], list[Waiter[TurnSettled]]] = {}
        self._settled: OrderedDict[tuple[str, str], TurnSettled] = OrderedDict()

    def set_dead_letters_max(self, limit: int) -> None:
        """Apply another limit; the newest stay."""
        if limit != self.dead_letters.maxlen:
            self.dead_letters = deque(self.dead_letters, maxlen=limit)

    def release(self, done: Sequenced) -> None:
        """Tell everybody what became of one committed record."""
        entry, record, run = done.entry, done.record, done.run
        self._observe(done)
        if run.error is not None:
            self._set_aside(entry, record, entry.chat, run.error)
        for chat, error in run.failed:
            self._set_aside(entry, record, chat, error)
        for command in entry.again:
            self._performer.take(command, again=True)
        self._hand_on(entry, run.commands)
        if entry.job is not None:
            self._performer.verdict(entry.job, record.at_ms, go=run.go)
        if entry.admission is not None:
            entry.admission.admit(record.seq, record.at_ms, record.outcome)

    def _observe(self, done: Sequenced) -> None:
        """Let metrics and observer see the run; neither can stop the engine."""
        try:
            self._measures.observe(done.record, done.run, done.spent_ns)
            if self.observer is not None:
                self.observer(done.record, done.run)
        except Exception as error:  # noqa: BLE001 - whatever an observer raises
            name = type(error).__name__
            log.error("an observer raised %s", name, extra={"seq": done.record.seq, "error": name})
        for name in done.run.violated:
            log.error("invariant %s does not hold", name, extra={"seq": done.record.seq, "invariant": name})

    def _set_aside(self, entry: Entry, record: Record, chat: str, error: BaseException) -> None:
        name = type(error).__name__
        extra = {"seq": record.seq, "chat": chat, "error": name}
        log.error("record %d of chat %s was set aside: %s", record.seq, chat, name, extra=extra)
        if len(self.dead_letters) == self.dead_letters.maxlen:
            self._measures.limit("dead_letters")
        self.dead_letters.append(DeadLetter(record.seq, record.at_ms, chat, entry.body.event, name))
        if entry.answer is not None:
            entry.answer.fail(
                SetAside(
                    f"event {record.seq} of chat {chat} was journaled but not applied: a step raised {name}; "
                    "it is in Engine.dead_letters(): send the call again with another call_id"
                )
            )

    def _hand_on(self, entry: Entry, commands: tuple[Command, ...]) -> None:
        """Hand commands on in order; then answer who is left of an answered call, and let this entry's caller wait."""
        if not commands and entry.answer is None:
            return
        answered: dict[tuple[str, str], Ack] = {}
        for command in commands:
            if isinstance(command, Ack):
                self._answer(entry, command, answered)
                continue
            if isinstance(command, TurnSettled):
                self._terminal(command)
            self._performer.take(command)
        for key, ack in answered.items():
            for left in self._asking.pop(key, ()):
                left.resolve(ack)
        event, waiter = entry.body.event, entry.answer
        if waiter is not None and not waiter.done and isinstance(event, CALLS):
            self._asking.setdefault((entry.chat, event.call_id), deque()).append(waiter)

    def _answer(self, entry: Entry, ack: Ack, answered: dict[tuple[str, str], Ack]) -> None:
        """An ack made by the call's own event is that event's; others go to who waits longest for that call."""
        event, key = entry.body.event, (ack.chat, ack.call_id)
        if isinstance(event, CALLS) and ack.call_id == event.call_id:
            taker = entry.answer
        else:
            answered[key] = ack
            taker = self._next_asking(key)
        if taker is None or taker.done:
            self._performer.take(ack)
        else:
            taker.resolve(ack)

    def _terminal(self, settled: TurnSettled) -> None:
        key = (settled.chat, settled.turn_id)
        self._settled[key] = settled
        if len(self._settled) > SETTLED_KEPT:
            self._settled.popitem(last=False)
        for waiter in self._awaiting.pop(key, ()):
            waiter.resolve(settled)

    # ------------------------------------------------------------ who waits

    def _next_asking(self, key: tuple[str, str]) -> Waiter[Ack] | None:
        waiters = self._asking.get(key)
        if not waiters:
            return None
        waiter = waiters.popleft()
        if not waiters:
            del self._asking[key]
        return waiter

    def forget_asking(self, chat: str, call_id: str, waiter: Waiter[Ack]) -> None:
        """A caller gave up: the ack will go to the gateway."""
        waiters = self._asking.get((chat, call_id))
        if waiters is not None and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._asking[chat, call_id]

    def await_turn(self, chat: str, turn_id: str, waiter: Waiter[TurnSettled]) -> bool:
        """Answer with the turn's terminal; True: at once, it is known."""
        known = self._settled.get((chat, turn_id))
        if known is not None:
            waiter.resolve(known)
        else:
            self._awaiting.setdefault((chat, turn_id), []).append(waiter)
        return known is not None

    def forget_turn(self, chat: str, turn_id: str, waiter: Waiter[TurnSettled]) -> None:
        """A caller gave up."""
        waiters = self._awaiting.get((chat, turn_id), [])
        if waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._awaiting[chat, turn_id]

    def answer_all(self, error: Callable[[], EngineError]) -> list[Waiter[Any]]:
        """Answer every waiter that is left, and return them: there will be no other answer."""
        left: list[Waiter[Any]] = [waiter for waiters in self._asking.values() for waiter in waiters]
        left += [waiter for waiters in self._awaiting.values() for waiter in waiters]
        self._asking.clear()
        self._awaiting.clear()
        for waiter in left:
            waiter.fail(error())
        return left
