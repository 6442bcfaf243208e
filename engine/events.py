"""What the host tells the engine: facts in the past tense (PROTOCOL "Events").

Every event names one chat. A field that a model wrote (`Untrusted`) takes any JSON value; the rules say
what counts. A channel may be given as a `ChannelRef` or, when decoding, in its written form `server/id`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from turnkeeper.engine.ids import ChannelRef, Int64, MessageId, OptionalPlace, Place

__all__ = [
    "PLACES",
    "Accepted",
    "Activity",
    "ChannelRegistered",
    "ChatOpened",
    "Edit",
    "Event",
    "EventBase",
    "Failed",
    "Inbound",
    "InboundKind",
    "InputFolded",
    "InputSeen",
    "Interrupted",
    "Lost",
    "Preview",
    "QuestionAnswered",
    "QuestionOpened",
    "Quiesced",
    "Refused",
    "Reply",
    "Resumed",
    "Rewound",
    "ServerRemoved",
    "Settled",
    "SpeechMoved",
    "Stopped",
    "TurnContinued",
    "TurnOpened",
    "Unstick",
    "Untrusted",
    "Wake",
    "nesting",
]

if TYPE_CHECKING:
    Untrusted = object
else:
    Untrusted = Any
    """Written by a model: any JSON value is accepted, and the rules decide what it means."""

InboundKind = Literal["message", "edit", "reaction", "reaction_removed", "deletion", "notice"]
"""What came in."""
PLACES = frozenset({"channel", "home", "reply_in", "report_to"})
"""The fields that hold a channel."""
NESTING_MAX = 64
"""No value of a model is kept deeper than this, whatever `limits.json_depth` allows."""


class EventBase(msgspec.Struct, frozen=True, gc=False, tag_field="type", omit_defaults=True):
    """What every event carries."""

    chat: str
    """The agent conversation it belongs to, named by the host."""

    def __post_init__(self) -> None:
        """Bring what came in into its one form: written channels parsed, model values made immutable."""
        for name in _PLACES[type(self)]:
            value: object = getattr(self, name)
            if isinstance(value, str):
                msgspec.structs.force_setattr(self, name, _place(name, value))
        for name in _UNTRUSTED[type(self)]:
            value = getattr(self, name)
            if value.__class__ is not str:
                msgspec.structs.force_setattr(self, name, _immutable(value))


class ChatOpened(EventBase, frozen=True, gc=False, tag="chat_opened"):
    """A chat exists. Optional: a chat is made on first use."""

    home: OptionalPlace = None
    """A fork's channel: only its messages drive this chat, and its speech lands there."""
    ephemeral: bool = False
    """A subagent: it receives no chat deliveries and answers no chat message."""


class ChannelRegistered(EventBase, frozen=True, gc=False, tag="channel_registered"):
    """The host knows this channel; a push registers one lazily, closed."""

    channel: Place
    open: bool = True
    inbound_only: bool = False
    note: str | None = None
    """Follows the notice text of an inbound-only channel."""


class ServerRemoved(EventBase, frozen=True, gc=False, tag="server_removed"):
    """A platform adapter is gone, its channels with it."""

    server: str


class Inbound(EventBase, frozen=True, gc=False, tag="inbound"):
    """Something was delivered into the agent's history."""

    channel: OptionalPlace = None
    """None: a local surface (console, API)."""
    message: MessageId | None = None
    """None: it names no message. A marker's message is its target, not what was said."""
    kind: InboundKind = "message"
    lane: Literal["channel", "push"] = "channel"
    addressed: bool = False
    wakes: bool = True
    participant: str | None = None
    first_view: bool = False
    """An edit that replaces a create the agent has not read: it counts as the message."""
    event_id: str | None = None
    """Present: coalesced; its acceptance comes later as `accepted`. Never a message id."""
    delivery: Literal["live", "debounced", "assembled"] = "live"
    text: str | None = None


class Accepted(EventBase, frozen=True, gc=False, tag="accepted"):
    """The acknowledgement of a coalesced occurrence succeeded, or failed."""

    server: str
    event_id: str
    ok: bool = True


class Wake(EventBase, frozen=True, gc=False, tag="wake"):
    """A demand to run that is for no message: timer, batch, render, notice, module."""

    reason: str
    channel: OptionalPlace = None
    addressed: bool = False


class TurnOpened(EventBase, frozen=True, gc=False, tag="turn_opened"):
    """The agent starts a new turn; with channel or message the pair is given, else merged from wakes."""

    turn_id: str
    source: Literal["primary", "system", "subagent"] = "primary"
    channel: OptionalPlace = None
    message: MessageId | None = None
    participant: str | None = None


class TurnContinued(EventBase, frozen=True, gc=False, tag="turn_continued"):
    """Another physical start of the same turn: provider_wait, budget, guard, tool_result."""

    turn_id: str
    cause: str


class InputFolded(EventBase, frozen=True, gc=False, tag="input_folded"):
    """A follow-up was injected into the running turn."""

    turn_id: str
    source: Literal["autosteer", "edit-fold", "inject", "system"]
    into: str | None = None
    """The turn it was folded into; None: the open turn last started."""
    channel: OptionalPlace = None
    message: MessageId | None = None
    participant: str | None = None


class InputSeen(EventBase, frozen=True, gc=False, tag="input_seen"):
    """The agent provably read this input."""

    turn_id: str


class SpeechMoved(EventBase, frozen=True, gc=False, tag="speech_moved"):
    """A re-pin or channel_open moved where the turn's plain speech lands."""

    turn_id: str
    channel: Place
    cause: str


class Reply(EventBase, frozen=True, gc=False, tag="reply"):
    """The agent called its reply tool. All but `call_id` and `reply_in` is what the model wrote."""

    call_id: str
    turn_id: Untrusted = None
    consumed_turn_ids: Untrusted = None
    """Absent and null are one: the field was not used."""
    text: Untrusted = ""
    files: Untrusted = ()
    interim: Untrusted = False
    """Interim only if it is JSON true."""
    chat_id: Untrusted = None
    reply_in: OptionalPlace = None
    """Given by the host, for a reply that no turn owns."""


class Edit(EventBase, frozen=True, gc=False, tag="edit"):
    """The agent edits a bubble it sent."""

    call_id: str
    message: MessageId
    text: Untrusted
    turn_id: Untrusted = None
    consumed_turn_ids: Untrusted = None
    chat_id: Untrusted = None


class Preview(EventBase, frozen=True, gc=False, tag="preview"):
    """A snapshot of the answer being written."""

    text: str
    turn_id: str | None = None


class QuestionOpened(EventBase, frozen=True, gc=False, tag="question_opened"):
    """The agent waits for the user; clocks that would end the turn stand still."""

    call_id: str
    turn_id: str | None = None


class QuestionAnswered(EventBase, frozen=True, gc=False, tag="question_answered"):
    """The user answered."""

    call_id: str
    turn_id: str | None = None


class Activity(EventBase, frozen=True, gc=False, tag="activity"):
    """Proof that the agent is working: a hook, a tool call."""

    cause: str


class Stopped(EventBase, frozen=True, gc=False, tag="stopped"):
    """The agent ended a cycle with this last message."""

    text: str = ""
    turn_id: str | None = None
    active: bool = False
    """A stop hook is already running: ignored."""
    channel: OptionalPlace = None
    """A destination that the host parsed from a prefix of plain speech."""


class Refused(EventBase, frozen=True, gc=False, tag="refused"):
    """The model ended the reply with a content-policy refusal."""

    turn_id: str
    category: str | None = None


class Failed(EventBase, frozen=True, gc=False, tag="failed"):
    """The turn failed (not a refusal). The breaker knows `invalid_request` and `configuration`."""

    turn_id: str
    error: str
    status: Int64 | None = None


class Interrupted(EventBase, frozen=True, gc=False, tag="interrupted"):
    """The user stopped the agent."""


class Lost(EventBase, frozen=True, gc=False, tag="lost"):
    """The agent process is gone."""

    reason: str


class Unstick(EventBase, frozen=True, gc=False, tag="unstick"):
    """An operator forces the rewind loop on an idle agent."""

    max_rewinds: Int64 | None = None
    report_to: OptionalPlace = None


class Quiesced(EventBase, frozen=True, gc=False, tag="quiesced"):
    """Maintenance begins: wakes park."""


class Resumed(EventBase, frozen=True, gc=False, tag="resumed"):
    """Maintenance ends: parked wakes merge into the next start."""


class Rewound(EventBase, frozen=True, gc=False, tag="rewound"):
    """How many exchanges a `rewind` removed; 0: nothing was left."""

    turn_id: str
    removed: Int64


class Settled(EventBase, frozen=True, gc=False, tag="settled"):
    """What became of a send, edit, preview or react."""

    delivery: str
    outcome: Literal["sent", "failed", "unknown"]
    channel: OptionalPlace = None
    attempt: Int64 | None = None
    """None: the attempt that is out."""
    messages: tuple[MessageId, ...] = ()
    """The platform ids of what is now visible; the first is the one an ack names."""
    reason: str | None = None
    """Known: format, quote_gone, not_modified, not_sent, rate_limited; anything else is told on."""
    retry_after_ms: Int64 | None = None
    permanent: bool = False
    parts_done: Int64 | None = None
    """Parts of a split message that arrived, counted from the first."""


Event = (
    ChatOpened
    | ChannelRegistered
    | ServerRemoved
    | Inbound
    | Accepted
    | Wake
    | TurnOpened
    | TurnContinued
    | InputFolded
    | InputSeen
    | SpeechMoved
    | Reply
    | Edit
    | Preview
    | QuestionOpened
    | QuestionAnswered
    | Activity
    | Stopped
    | Refused
    | Failed
    | Interrupted
    | Lost
    | Unstick
    | Quiesced
    | Resumed
    | Rewound
    | Settled
)
"""Whatever a host may post."""


def _place(name: str, text: str) -> ChannelRef:
    try:
        return ChannelRef.parse(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _immutable(value: object, depth: int = NESTING_MAX) -> object:
    """Copy a model's value into one that cannot change and that every codec can carry.

    An integer beyond 64 bits becomes its digits; what lies deeper than `NESTING_MAX`, or is no JSON, an empty map.
    """
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if depth and isinstance(value, list | tuple):
        return tuple(_immutable(item, depth - 1) for item in value)
    if depth and isinstance(value, dict):
        return {str(key): _immutable(item, depth - 1) for key, item in sorted(value.items(), key=_key)}
    return {}


def _key(item: tuple[object, object]) -> str:
    return str(item[0])


def nesting(value: object) -> int:
    """Count how deep a model's value nests; a plain value is 0."""
    if isinstance(value, tuple):
        return 1 + max(map(nesting, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(nesting, value.values()), default=0)
    return 0


_PLACES: dict[type, tuple[str, ...]] = {}
_UNTRUSTED: dict[type, tuple[str, ...]] = {}
for _type in Event.__args__:
    _PLACES[_type] = tuple(f for f in _type.__struct_fields__ if f in PLACES)
    _UNTRUSTED[_type] = ()
_UNTRUSTED[Reply] = ("turn_id", "consumed_turn_ids", "text", "files", "interim", "chat_id")
_UNTRUSTED[Edit] = ("text", "turn_id", "consumed_turn_ids", "chat_id")
