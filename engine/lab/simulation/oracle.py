"""The oracle: judges a run by what users, agent and host saw, never by what the engine remembers.

Each check is about one thing that somebody outside would complain of, and is named for the complaint. Where a
policy or a platform that lies makes a complaint unjust (`resend`, a limit too small to remember, a settlement
that contradicts an earlier one), the check looks away; everything else is a breach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine import events, signals
from turnkeeper.engine.commands import Ack, Command, Edit, Preview, React, Redeliver, Send, TurnSettled
from turnkeeper.engine.lab.simulation.calls import owner_of
from turnkeeper.engine.lab.simulation.ends import Ends
from turnkeeper.engine.lab.simulation.pairs import Pairs
from turnkeeper.engine.lab.simulation.rate import Rate
from turnkeeper.engine.lab.simulation.seen import FORGOTTEN, WORK, Seen
from turnkeeper.engine.lab.simulation.sends import Sends

if TYPE_CHECKING:
    from turnkeeper.engine.cell import Run
    from turnkeeper.engine.config import Config
    from turnkeeper.engine.journal import Body

__all__ = ["Oracle"]

ROOMY = {
    "ledger": 32,
    "tombstones": 32,
    "calls": 64,
    "contents": 64,
    "deliveries": 64,
    "receipts": 64,
    "unconfirmed": 256,
    "text_bytes": 1024,
}
"""Below these a run may forget what a complaint would rest on."""
ROOMY_INBOUND = {
    **ROOMY,
    "wakes": 64,
    "parked": 64,
    "occurrences": 64,
    "channels_per_chat": 16,
    "open_turns": 16,
    "settled_turns": 16,
}
INPUT_SIGNALS = (
    signals.InputAcked,
    signals.InputSeen,
    signals.InputDropped,
    signals.InputSuperseded,
    signals.InputUnconfirmed,
    signals.FoldSuspected,
    signals.InputCancelled,
)


class Oracle:
    """Watches a run and collects what it breached.

    Args:
        config: what the run starts with.
        breaches: where breaches are told.

    """

    def __init__(self, config: Config, breaches: list[str]) -> None:
        self.config = config
        self.breaches = breaches
        self._least = {name: getattr(config.limits, name) for name in ROOMY_INBOUND}
        """The narrowest that each limit ever was: one that was ever small stays small."""
        self._one_window = True
        self.roomy = self.remembers(*ROOMY)
        self.roomy_inbound = self.remembers(*ROOMY_INBOUND)
        self.now_ms = 0
        self.window_ms = config.dedup.window_ms
        """The shortest that ever counted: a call may be judged by one setting and leave under another."""
        self.resends = config.delivery.on_unknown == "resend"
        """What may have arrived could be sent again, at some time."""
        self.torn = False
        """The process died in the middle of something: what it was about to hand over, nobody saw."""
        self._chats: dict[str, Seen] = {}
        self._sends: dict[str, Sends] = {}
        self._ends: dict[str, Ends] = {}
        self._pairs: dict[str, Pairs] = {}
        self._rates: dict[str, Rate] = {}

    def seen(self, chat: str) -> Seen:
        """Return the log of a chat."""
        known = self._chats.get(chat)
        if known is None:
            known = self._chats[chat] = Seen(self.config)
            self._sends[chat] = Sends(self, known)
            self._ends[chat] = Ends(self, known)
            self._pairs[chat] = Pairs(self, known)
            self._rates[chat] = Rate(self.config.limits)
        return known

    def complain(self, complaint: str) -> None:
        """Take down a breach."""
        self.breaches.append(complaint)

    def reloaded(self, config: Config, now_ms: int) -> None:
        """Judge by another configuration from now on; a limit that was ever small stays small."""
        self.resends = self.resends or config.delivery.on_unknown == "resend"
        self.window_ms = min(self.window_ms, config.dedup.window_ms)
        timeout_ms = self.config.delivery.settle_timeout_ms
        self._one_window = self._one_window and self.config.inbound == config.inbound
        self.config = config
        for log in self._chats.values():
            log.timed_out(timeout_ms, now_ms)
            log.config = config
        for rate in self._rates.values():
            rate.reloaded(config.limits)
        self._least = {name: min(least, getattr(config.limits, name)) for name, least in self._least.items()}
        self.roomy = self.remembers(*ROOMY)
        self.roomy_inbound = self._one_window and self.remembers(*ROOMY_INBOUND)

    def remembers(self, *limits: str) -> bool:
        """Say whether these limits were wide enough all the time."""
        return all(self._least[name] >= ROOMY_INBOUND[name] for name in limits)

    def ran(self, body: Body, run: Run, now_ms: int) -> None:
        """Take in a record that was committed, with its signals."""
        self.now_ms = now_ms
        if body.recovered is not None:
            for log in self._chats.values():
                log.recovered(now_ms)
        event = body.event
        if event is not None and run.error is None:
            self._event(self.seen(event.chat), event, run)
        for signal in run.signals:
            self._signal(signal)
        for command in run.commands:
            log = self.seen(command.chat)
            if event is None:
                self._pairs[command.chat].after(command)
            if isinstance(command, Ack) and command.call_id in log.calls:
                log.calls[command.call_id].decided = True

    def _event(self, log: Seen, event: events.Event, run: Run) -> None:
        """Take in an event that had its effect."""
        if isinstance(event, events.Settled):
            log.settled(event, self.now_ms)
        elif not _refused(event, run):
            worked = _worked(log, event, run)
            log.event(event, self.now_ms, worked=worked)
            if isinstance(event, events.Reply | events.Edit):
                self._call(log, event, run)
                if worked and not self.torn:
                    log.calls[event.call_id].owner = owner_of(log, log.calls[event.call_id])
                if worked and not self._rates[event.chat].taken(log.calls[event.call_id], self.now_ms):
                    self.complain(f"too many: call {event.call_id} was taken")
            self._pairs[event.chat].ran(event, run, self.now_ms)
            return
        for command in run.commands:
            self._pairs[command.chat].after(command)

    def _call(self, log: Seen, event: events.Reply | events.Edit, run: Run) -> None:
        call = log.calls[event.call_id]
        for signal in run.signals:
            late = isinstance(signal, signals.LateReplyCorrelated) and not signal.ended
            if late or isinstance(signal, signals.OrphanReplyUnattributed):
                call.late = True
            elif isinstance(signal, signals.ReplyRejected):
                call.rejected = signal.reason
            elif isinstance(signal, signals.ReplyJoined | signals.ReplyReplayed):
                call.joined = True
        self._ends[event.chat].refused(call)

    def _signal(self, signal: signals.Signal) -> None:
        if isinstance(signal, signals.PreviewTurnMismatch):
            self._sends[signal.chat].outlived(signal.preview_turn_id)
        elif isinstance(signal, signals.StopUnattributed) and signal.candidates == 1:
            self.complain("untrue: a Stop that one turn could own was told as nobody's")
        if isinstance(signal, INPUT_SIGNALS) and signal.turn_id is not None:
            if isinstance(signal, signals.InputAcked):
                self._ends[signal.chat].acknowledged(signal.turn_id)
            entry = self.seen(signal.chat).inputs.get(signal.turn_id)
            if entry is not None:
                entry.told.append(str(type(signal).__struct_config__.tag))

    def performed(self, command: Command, now_ms: int) -> None:
        """Take in a command that was handed over."""
        self.now_ms = now_ms
        log = self.seen(command.chat)
        self._pairs[command.chat].shown(command)
        match command:
            case Send() | Edit() | Preview() | React():
                self._sends[command.chat].operation(command, now_ms)
            case TurnSettled():
                self._ends[command.chat].terminal(command)
            case Ack():
                log.other(command, now_ms)
                self._ends[command.chat].ack(command)
            case Redeliver():
                log.other(command, now_ms)
                self._ends[command.chat].redelivery(command)
            case _:
                pass

    def crashed(self, now_ms: int, *, answers_lost: bool) -> None:
        """The process is gone; where it died in the middle of something, answers may be lost with it."""
        self.torn = self.torn or answers_lost
        for log in self._chats.values():
            log.crashed(now_ms)
            for call in log.calls.values():
                if answers_lost and len(call.acks) < call.events:
                    call.resting = True

    def end(self) -> None:
        """Everything had time to end: whatever did not is a breach."""
        for ends in self._ends.values():
            ends.all_told()


def _worked(log: Seen, event: events.Event, run: Run) -> bool:
    """Say whether an event is activity: a call is, if it is new and passed the guard."""
    if not isinstance(event, events.Reply | events.Edit):
        return isinstance(event, WORK)
    known = log.calls.get(event.call_id)
    foreign = any(isinstance(one, signals.ReplyRejected) and one.reason == "chat_id mismatch" for one in run.signals)
    return not foreign and (known is None or known.rejected in FORGOTTEN)


def _refused(event: events.Event, run: Run) -> bool:
    """Say whether an opening or a fold was ignored: its id is known, or too many are open."""
    if not isinstance(event, events.TurnOpened | events.InputFolded):
        return False
    return any(
        isinstance(signal, signals.DuplicateTurn)
        or (isinstance(signal, signals.LimitReached) and signal.limit in {"open_turns", "chats"})
        for signal in run.signals
    )
