"""What the engine asks the host to do: imperatives (PROTOCOL "Commands").

Every command carries `id = <seq>.<n>`, the same in a replay: the host may use it to perform once.
`perform` returning confirms it; `send`, `edit`, `preview` and `react` are settled by a `settled` event.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from turnkeeper.engine.ids import ChannelRef, MessageId

__all__ = [
    "Ack",
    "Command",
    "CommandBase",
    "Edit",
    "Notice",
    "Outcome",
    "Preview",
    "Purpose",
    "React",
    "Reconcile",
    "Record",
    "Redeliver",
    "Rewind",
    "RewindCause",
    "Send",
    "Settleable",
    "TurnSettled",
    "Wake",
]

Purpose = Literal["reply", "fallback", "rescue", "report"]
"""Why something is sent: the agent's call, its words at the end, an answer that would be lost, an operator's report."""
RewindCause = Literal["auto_rewind", "unstick", "poison_breaker"]
"""What asked for a rewind."""
Outcome = Literal[
    "final-reply",
    "fallback",
    "consumed",
    "consumed-rescue",
    "interim-rescue",
    "interim-noop",
    "reply-rescue",
    "undelivered",
    "silent",
    "refused",
    "failed",
    "interrupted",
    "lost",
    "expired",
]
"""How a turn ended; docs/REPLIES.md explains each."""


class CommandBase(msgspec.Struct, frozen=True, gc=False, tag_field="type", omit_defaults=True, kw_only=True):
    """What every command carries."""

    chat: str
    id: str = ""
    """`<seq>.<n>`: stamped by the cell before anyone sees the command."""


class Send(CommandBase, frozen=True, gc=False, tag="send", kw_only=True):
    """Send a message; the host settles it."""

    delivery: str
    channel: ChannelRef
    text: str
    purpose: Purpose
    attempt: int = 1
    files: tuple[str, ...] = ()
    turn_id: str | None = None
    source: MessageId | None = None
    """The effective owner's message, present even when the quote is spent."""
    quote: MessageId | None = None
    participant: str | None = None
    """Rides with the quote, absent without it."""
    interim: bool = False
    format: Literal["rich", "plain"] = "rich"
    replaces_preview: bool = False
    resume_part: int | None = None
    """Send from this part on; the parts before it arrived."""


class Edit(CommandBase, frozen=True, gc=False, tag="edit", kw_only=True):
    """Change the text of a bubble."""

    delivery: str
    channel: ChannelRef
    message: MessageId
    text: str
    attempt: int = 1
    format: Literal["rich", "plain"] = "rich"


class Preview(CommandBase, frozen=True, gc=False, tag="preview", kw_only=True):
    """Show a snapshot: the first sends a bubble, later ones edit it."""

    delivery: str
    channel: ChannelRef
    turn_id: str
    text: str
    attempt: int = 1
    quote: MessageId | None = None
    participant: str | None = None


class React(CommandBase, frozen=True, gc=False, tag="react", kw_only=True):
    """Put the refusal mark on a message."""

    delivery: str
    channel: ChannelRef
    message: MessageId
    mark: str
    attempt: int = 1


class Record(CommandBase, frozen=True, gc=False, tag="record", kw_only=True):
    """Write the durable failure record."""

    kind: Literal["refusal", "failure"]
    turn_id: str
    locus: ChannelRef | None = None
    category: str | None = None
    streak: int = 1


class Wake(CommandBase, frozen=True, gc=False, tag="wake", kw_only=True):
    """Run the agent again, for this pair."""

    cause: RewindCause
    attempt: int
    channel: ChannelRef | None = None
    message: MessageId | None = None
    addressed: bool = False


class Rewind(CommandBase, frozen=True, gc=False, tag="rewind", kw_only=True):
    """Remove the newest exchange, leave the episode's one marker, answer with `rewound`."""

    turn_id: str
    cause: RewindCause
    attempt: int
    episode: int


class Notice(CommandBase, frozen=True, gc=False, tag="notice", kw_only=True):
    """The agent must read where its plain speech now lands."""

    turn_id: str
    kind: Literal["lands", "conversation", "none"]
    text: str
    channel: ChannelRef | None = None


class Reconcile(CommandBase, frozen=True, gc=False, tag="reconcile", kw_only=True):
    """Did this arrive? Answered by `settled` (failed with reason `not_sent`: it did not)."""

    delivery: str
    attempt: int
    channel: ChannelRef


class Redeliver(CommandBase, frozen=True, gc=False, tag="redeliver", kw_only=True):
    """Hand an input that the agent never picked up over again, once."""

    turn_id: str
    channel: ChannelRef | None = None
    message: MessageId | None = None


class Ack(CommandBase, frozen=True, gc=False, tag="ack", kw_only=True):
    """The result of the agent's tool call."""

    call_id: str
    ok: bool
    message: MessageId | None = None
    delivery: Literal["sent", "replayed"] | None = None
    replay_of: str | None = None
    """A call id; for a fallback or rescue its delivery."""
    error: str | None = None


class TurnSettled(CommandBase, frozen=True, gc=False, tag="turn_settled", kw_only=True):
    """The one terminal of a turn."""

    turn_id: str
    outcome: Outcome
    replies: int
    interim_replies: int
    delivered: Literal["yes", "no", "unknown"]


Command = Send | Edit | Preview | React | Record | Wake | Rewind | Notice | Reconcile | Redeliver | Ack | TurnSettled
"""Whatever `perform` is given."""
Settleable = Send | Edit | Preview | React
"""The commands that are handed over under a verdict, and settled by an event."""
