"""Complaints about what a turn is for: a wrong place or message, a mark on another's message, a retry for nothing.

What a turn is for is known to its host from what came in (`Arrivals`). Compared with it are what leaves for users
(where replies and plain speech go, which message they answer, where the mark is) and what the host is told (the
failure record, the retry's wake, the signals about the latest message).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine import commands, events, signals
from turnkeeper.engine.ids import ChannelRef
from turnkeeper.engine.lab.simulation.arrivals import Arrivals, Came, Pair, Woken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.lab.simulation.judge import Judge
    from turnkeeper.engine.lab.simulation.seen import Seen

__all__ = ["Pairs"]

COMPLETED = frozenset(
    {
        "final-reply",
        "fallback",
        "consumed",
        "consumed-rescue",
        "interim-rescue",
        "reply-rescue",
        "interim-noop",
        "silent",
        "undelivered",
    }
)
"""Outcomes after which the count of refusals and failures in a row begins anew; written here again on purpose: an
oracle that read the engine's list would agree with whatever is wrong in it."""
POISON = frozenset({400, 422, None})
"""The statuses of a history that is rejected itself."""
NOBODYS = Pair()


class Pairs:
    """Watches what the turns of one chat are for."""

    def __init__(self, oracle: Judge, log: Seen) -> None:
        self._oracle = oracle
        self._log = log
        self.came = Arrivals()
        self._of: dict[str, Pair] = {}
        self._speech: dict[str, set[ChannelRef | None]] = {}
        """Where plain speech of a turn may land: a move may come too late for what has left. Empty: nobody can say."""
        self._subagents: set[str] = set()
        self._inputs: dict[str, set[str | None]] = {}
        """The messages that a follow-up of this id was."""
        self._shed: dict[str, Pair] = {}
        """Turns whose exchange is being removed."""
        self._refused: Pair | None = None
        """What the last refused turn was for, until another turn opens."""
        self._refusals = 0
        self._failures = 0

    def _complain(self, complaint: str) -> None:
        self._oracle.complain(complaint)

    # ------------------------------------------------------------ what happens

    def ran(self, event: events.Event, run: Run, now_ms: int) -> None:
        """Take in an event that was not refused, and judge what was said of it."""
        came = self.came.take(event, now_ms, self._oracle.config.inbound.receipt_window_ms)
        match event:
            case events.TurnOpened():
                self._opened(event)
            case events.InputFolded():
                self._inputs.setdefault(event.turn_id, set()).add(_text(event.message))
            case events.TurnContinued():
                self._went_on(event.turn_id)
            case events.SpeechMoved() if self._speech.get(event.turn_id) and event.turn_id not in self._subagents:
                self._speech[event.turn_id].add(event.channel)
            case _:
                pass
        if self._oracle.roomy_inbound:
            self._told_of_latest(run, came)
            self._told(event, run)
        for command in run.commands:
            self.after(command)
        if isinstance(event, events.Rewound):
            self._shed.pop(event.turn_id, None)

    def _opened(self, event: events.TurnOpened) -> None:
        """Decide what a new turn is for, once; a subagent's is for nothing, and takes nothing."""
        turn_id = event.turn_id
        if event.source == "subagent" or self.came.ephemeral:
            self._subagents.add(turn_id)
            self._log.turns[turn_id].subagent = True
            self._of[turn_id], self._speech[turn_id] = NOBODYS, {None}
            return
        channel, message = event.channel, _text(event.message)
        entry = self._log.inputs.get(turn_id)
        if channel is None and message is None and entry is not None:
            # A follow-up that is handed over again is for what it was for.
            channel, message = entry.event.channel, _text(entry.event.message)
        pair = self.came.opened(channel, message)
        self._of[turn_id], self._speech[turn_id] = pair, self._lands(pair)
        self._refused = None

    def _lands(self, pair: Pair) -> set[ChannelRef | None]:
        """Return where plain speech lands: at home, where it was woken, at the configured place, by policy at the latest."""
        speech = self._oracle.config.speech
        if self.came.home is not None:
            return {self.came.home}
        if pair.vague:
            return set()
        if pair.channel is not None:
            return {pair.channel}
        if speech.home is not None:
            return {ChannelRef.parse(speech.home)}
        if speech.fallback == "latest-inbound":
            latest = self.came.latest
            return ({None} if latest is None else {latest.channel}) if self.came.sure else set()
        return {None}

    def _went_on(self, turn_id: str) -> None:
        turn = self._log.turns.get(turn_id)
        if turn is None or turn.ended is not None or turn_id in self._subagents:
            return
        # One that was stopped, or whose reply failed, may have ended without a word so far.
        failed = any(not ack.ok for call in self._log.calls.values() for ack in call.acks)
        self.came.went_on(surely=not (turn.first_stop or turn.over or failed or self._oracle.torn))

    # ------------------------------------------------------------ what is told

    def _told_of_latest(self, run: Run, came: Came) -> None:
        """Compare the signals about arrivals with the host's account."""
        moved = [(one.channel, str(one.message)) for one in run.signals if isinstance(one, signals.AnchorMoved)]
        if self.came.sure and moved != ([] if came.moved is None else [came.moved]):
            self._complain(f"latest message: told {_named(moved)}, it is {_named([came.moved] if came.moved else [])}")
        again = any(isinstance(one, signals.DuplicateInbound) for one in run.signals)
        if again != came.again:
            self._complain(f"arrival: {'known, taken as new' if came.again else 'new, taken as known'}")
        late = any(isinstance(one, signals.AnchorCommitLate) for one in run.signals)
        if self.came.sure and late != came.late:
            self._complain(f"acceptance: {'late, taken as new' if came.late else 'taken as late'}")

    def _told(self, event: events.Event, run: Run) -> None:
        """Judge records, marks and retries by what the turn was for."""
        for command in run.commands:
            if isinstance(command, commands.Record):
                self._record(command)
                if isinstance(event, events.Refused):
                    self._marked(event.turn_id, run)
            elif isinstance(command, commands.Wake):
                self._wake(event, command)
        told = {type(command) for command in run.commands}
        if isinstance(event, events.Failed) and commands.Rewind in told and not _is_poison(event):
            self._complain(f"no poison, and removed: {event.turn_id}")
        if isinstance(event, events.Rewound) and commands.Wake not in told:
            self._not_woken(event)

    def _not_woken(self, event: events.Rewound) -> None:
        if event.removed >= 1 and event.turn_id in self._shed:
            self._complain(f"wake lost: {event.turn_id} was removed, and not run again")

    def _record(self, record: commands.Record) -> None:
        """The failure record names the pair's place, and how many there were in a row."""
        pair = self._of.get(record.turn_id)
        turn = self._log.turns.get(record.turn_id)
        if pair is None or turn is None:
            return
        known = pair.channel if pair.channel is not None and pair.channel.server is not None else None
        locus = known if record.kind == "refusal" else None
        if not pair.vague and record.locus != locus:
            self._complain(f"record: {record.turn_id} was for {locus}, not {record.locus}")
        before = self._refusals if record.kind == "refusal" else self._failures
        counts = not turn.interrupted
        streak = 1 if record.turn_id in self._subagents else before + counts
        if record.streak != streak:
            self._complain(f"record: {record.turn_id} is number {streak} in a row, not {record.streak}")

    def _marked(self, turn_id: str, run: Run) -> None:
        """A refusal is marked on the message that the turn was for, unless it is run again."""
        pair, turn = self._of.get(turn_id), self._log.turns.get(turn_id)
        if pair is None or turn is None or pair.vague:
            return
        again = any(isinstance(command, commands.Rewind) for command in run.commands)
        marks = pair.message is not None and pair.channel is not None and not again and not turn.interrupted
        marked = any(isinstance(one, signals.RefusalMarked) for one in run.signals)
        if marks != marked:
            self._complain(f"mark: {turn_id} {'is not marked' if marks else 'is marked'}")

    def _wake(self, event: events.Event, wake: commands.Wake) -> None:
        """A retry is for what the removed turn was for; a forced one, for the last refused."""
        if isinstance(event, events.Rewound):
            pair = self._shed.get(event.turn_id)
        elif isinstance(event, events.Unstick):
            pair = self._refused or NOBODYS
        else:
            return
        if pair is None:
            self._complain("woken for a removal that nobody asked for")
        elif not pair.vague and (wake.channel, _text(wake.message), wake.addressed) != pair[:3]:
            self._complain(f"retry: for {pair.message}@{pair.channel}, not {wake.message}@{wake.channel}")

    def after(self, command: commands.Command) -> None:
        """Keep account of what the host was asked to do."""
        if isinstance(command, commands.TurnSettled) and command.turn_id in self._log.turns:
            self._log.turns[command.turn_id].over = True
        match command:
            case commands.Record():
                self._count(command)
            case commands.Rewind():
                self._shed[command.turn_id] = self._of.get(command.turn_id, Pair(vague=True))
            case commands.Wake():
                self.came.queue(Woken(command.cause, command.channel, _text(command.message), command.addressed))
            case commands.TurnSettled() if command.outcome in COMPLETED and command.turn_id not in self._subagents:
                self._refusals = self._failures = 0
            case _:
                pass

    def _count(self, record: commands.Record) -> None:
        turn = self._log.turns.get(record.turn_id)
        if turn is None or turn.interrupted:
            return
        turn.over = True
        if record.turn_id in self._subagents:
            return
        if record.kind == "refusal":
            self._refusals += 1
            self._refused = self._of.get(record.turn_id)
        else:
            self._failures += 1

    # ------------------------------------------------------------ what users see

    def shown(self, command: commands.Command) -> None:
        """Judge where something is shown, and for which message."""
        if not self._oracle.roomy_inbound:
            return
        if isinstance(command, commands.React):
            self._mark(command)
        elif isinstance(command, commands.Send) and command.turn_id is not None:
            if command.purpose == "reply":
                self._reply(command, command.turn_id)
            elif command.purpose in {"fallback", "rescue"}:
                self._spoken(command, command.turn_id)

    def _mark(self, mark: commands.React) -> None:
        turn_id = mark.delivery.rpartition(":")[2]
        pair = self._of.get(turn_id)
        if pair is None or pair.vague:
            return
        if (mark.channel, str(mark.message)) != pair[:2]:
            self._complain(
                f"marked: {mark.message}@{mark.channel}, but {turn_id} was for {pair.message}@{pair.channel}"
            )

    def _reply(self, reply: commands.Send, turn_id: str) -> None:
        pair = self._of.get(turn_id)
        messages = set(self._inputs.get(turn_id, ()))
        if pair is not None:
            messages.add(pair.message)
        vague = pair is not None and pair.vague
        if messages and not vague and _text(reply.source) not in messages:
            self._complain(f"for another: {reply.delivery} answers {reply.source}, {turn_id} was {_sorted(messages)}")
        place = pair.channel if pair is not None and turn_id not in self._inputs else None
        if place is not None and place.server is not None and not vague and reply.channel != place:
            self._complain(f"elsewhere: {reply.delivery} went to {reply.channel}, {turn_id} was for {place}")

    def _spoken(self, speech: commands.Send, turn_id: str) -> None:
        """Plain speech goes where the turn's speech lands, or where its words say; a reply sent again, where that went."""
        turn, places = self._log.turns.get(turn_id), self._speech.get(turn_id)
        again = any(
            isinstance(operation.command, commands.Send) and operation.command.purpose == "reply"
            for operation in (self._log.operations[key] for key in self._log.by_text.get(speech.text, ()))
        )
        if turn is None or not places or again or turn.prefixed or turn.config.speech.prose != "locus":
            return
        if speech.channel not in places:
            self._complain(f"elsewhere: {speech.delivery} went to {speech.channel}, not {_sorted(places)}")


def _is_poison(event: events.Failed) -> bool:
    return event.error == "invalid_request" and event.status in POISON


def _sorted(values: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, values)))


def _named(places: list[tuple[ChannelRef, str]]) -> str:
    return ", ".join(f"{message}@{channel}" for channel, message in places) or "nothing"


def _text(message: int | str | None) -> str | None:
    return None if message is None else str(message)
