"""Records in words that a newcomer reads: the name of the event, then what it says."""

from __future__ import annotations

from turnkeeper.cli.screen import quoted
from turnkeeper.engine.events import Event, InputFolded, InputSeen, Preview, Reply, Settled, Stopped, TurnOpened
from turnkeeper.engine.ids import ChannelRef, MessageId
from turnkeeper.engine.journal import Body
from turnkeeper.engine.lab.trace import Moment

__all__ = ["headline"]


def headline(body: Body, moment: Moment) -> str:
    """Say what came in; what has no words of its own is written with its fields."""
    if body.due is not None:
        kind, _, key = body.due.owner.partition(":")
        return f"due: a deadline of {kind} {key or body.due.chat}"
    return moment.title if body.event is None else _said(body.event) or moment.title


def _said(event: Event) -> str:
    match event:
        case TurnOpened(turn_id=turn, channel=channel, message=message):
            return f"turn_opened: turn {turn} begins{_about(', for', message, channel)}"
        case InputFolded(turn_id=turn, source=source, into=into, channel=channel, message=message):
            joined = f"turn {into}" if into else "the running turn"
            return f"input_folded: input {turn} joins {joined}{_about(', it is', message, channel)} ({source})"
        case InputSeen(turn_id=turn):
            return f"input_seen: the agent has read {turn}"
        case Preview(text=text):
            return f"preview: the answer being written reads {quoted(text)}"
        case Stopped(text=text):
            return f"stopped: the agent ends with {quoted(text)}" if text else "stopped: the agent ends without a word"
        case Reply() as reply:
            return _reply(reply)
        case Settled() as settled:
            return _settled(settled)
        case _:
            return ""


def _about(word: str, message: MessageId | None, channel: ChannelRef | None) -> str:
    said = [] if message is None else [f"message {message}"]
    said += [] if channel is None else [f"in {channel}"]
    return f"{word} {' '.join(said)}" if said else ""


def _reply(reply: Reply) -> str:
    text = reply.text if isinstance(reply.text, str) else repr(reply.text)
    named = "names no turn" if reply.turn_id is None else f"names {reply.turn_id}"
    used = reply.consumed_turn_ids
    consumed = f", consumed {', '.join(map(str, used))}" if isinstance(used, tuple | list) and used else ""
    return f"reply {reply.call_id}: {quoted(text)}; it {named}{consumed}"


def _settled(settled: Settled) -> str:
    if settled.outcome == "sent":
        made = f"arrived as message {settled.messages[0]}" if settled.messages else "is done"
        return f"settled: {settled.delivery} {made}"
    why = f" ({settled.reason})" if settled.reason else ""
    known = "failed" if settled.outcome == "failed" else "may have arrived, nobody knows"
    return f"settled: {settled.delivery} {known}{why}"
