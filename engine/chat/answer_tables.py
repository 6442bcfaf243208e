"""The chat's decisions about what comes in and what a turn answers, as tables (RULES-answers a, b, c, g, h)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from turnkeeper.engine.table import ANY, DecisionTable, Row

__all__ = [
    "ANCHOR",
    "COMMIT",
    "LOCUS",
    "MERGE_CHANNEL",
    "MERGE_MESSAGE",
    "NOTICE",
    "OCCURRENCE",
    "WAKE",
    "AnchorFacts",
    "Anchored",
    "Carries",
    "Commit",
    "CommitFacts",
    "From",
    "Locus",
    "LocusFacts",
    "MergeChannelFacts",
    "MergeMessageFacts",
    "NoticeFacts",
    "Noticed",
    "OccurrenceFacts",
    "Occurs",
    "Said",
    "WakeFacts",
]


class Said(StrEnum):
    """What an inbound delivery is."""

    MESSAGE = "a message"
    FIRST_VIEW = "an edit that is the first view"
    MARKER = "a marker: edit, reaction, deletion, notice"


class Occurs(StrEnum):
    """What an inbound delivery is to what came before."""

    NEW = "new"
    DUPLICATE = "a duplicate: no effect at all"
    RETRACTION = "takes back an unread create"


class OccurrenceFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of OCCURRENCE."""

    known: bool
    """The same (server, event id), or for a message without one the same (channel, message), inside the window."""
    retracts: bool
    """A deletion that repeats the event id of a delivery that is none, for the first time."""
    unread: bool
    """No turn was started since, or a wake of that occurrence is still pending."""


# fmt: off
OCCURRENCE: DecisionTable[Occurs] = DecisionTable("occurrence", OccurrenceFacts, [
    Row("retraction", (True,  True,  True),  Occurs.RETRACTION, "the create was not read yet: its wake is withdrawn (H10)"),
    Row("deletion",   (True,  True,  False), Occurs.NEW,        "a marker about something already read (H1)"),
    Row("duplicate",  (True,  False, ANY),   Occurs.DUPLICATE,  "a resend, also of a deletion: no second message, wake or place in the sequence (H2, H7)"),
    Row("new",        (False, ANY,   ANY),   Occurs.NEW,        "not seen inside the window (H5)"),
], source="RULES-answers h")
# fmt: on


class Anchored(StrEnum):
    """What a delivery does to the latest-inbound anchor."""

    SET = "set now"
    PARK = "parked until accepted"
    KEEP = "unchanged"


class AnchorFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of ANCHOR."""

    said: Said
    names_message: bool
    """A message id in a channel."""
    assembled: bool
    coalesced: bool
    """An event id: its acceptance comes later."""
    ephemeral: bool


# fmt: off
ANCHOR: DecisionTable[Anchored] = DecisionTable("anchor", AnchorFacts, [
    #                     said                              names  assembled coalesced ephemeral
    Row("A14-subagent",  (ANY,                             ANY,   ANY,      ANY,      True),  Anchored.KEEP, "a subagent has no anchor"),
    Row("A7-marker",     (Said.MARKER,                     ANY,   ANY,      ANY,      False), Anchored.KEEP, "a marker reports on something already said"),
    Row("A5-nameless",   ((Said.MESSAGE, Said.FIRST_VIEW), False, ANY,      ANY,      False), Anchored.KEEP, "it names no message"),
    Row("A6-assembled",  ((Said.MESSAGE, Said.FIRST_VIEW), True,  True,     ANY,      False), Anchored.KEEP, "content rendered into a request is no arrival"),
    Row("A2-parked",     (Said.MESSAGE,                    True,  False,    True,     False), Anchored.PARK, "the acceptance has not committed yet"),
    Row("A8-first-view", (Said.FIRST_VIEW,                 True,  False,    True,     False), Anchored.PARK, "it is the message; on acceptance"),
    Row("A1-message",    ((Said.MESSAGE, Said.FIRST_VIEW), True,  False,    False,    False), Anchored.SET,  "delivery counts, waking does not"),
], source="RULES-answers a")
# fmt: on


class Commit(StrEnum):
    """What an acceptance does to the anchor."""

    MOVED = "moved"
    LATE = "late"
    NOTHING = "nothing parked"


class CommitFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of COMMIT."""

    ok: bool
    parked: bool
    newer_anchor: bool
    """The anchor's place in the delivery sequence is after the parked one."""


# fmt: off
COMMIT: DecisionTable[Commit] = DecisionTable("commit", CommitFacts, [
    Row("failed",   (False, ANY,   ANY),   Commit.NOTHING, "a failed acknowledgement commits nothing; its resend may"),
    Row("unparked", (True,  False, ANY),   Commit.NOTHING, "nothing waits, or it was committed before"),
    Row("A10-late", (True,  True,  True),  Commit.LATE,    "a newer message came: it stays"),
    Row("A10",      (True,  True,  False), Commit.MOVED,   "accepted, with its original place in the sequence"),
], source="RULES-answers a, A10")
# fmt: on


class Carries(StrEnum):
    """What the wake of a delivery carries."""

    PAIR = "channel and message"
    CHANNEL = "channel, no message"
    NOTHING = "no wake"


class WakeFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of WAKE."""

    wakes: bool
    live: bool
    """Neither debounced nor assembled."""
    ephemeral: bool
    said: Said
    names_message: bool


# fmt: off
WAKE: DecisionTable[Carries] = DecisionTable("wake", WakeFacts, [
    #                   wakes  live   ephemeral said         names
    Row("A14-subagent", (ANY,   ANY,   True,  ANY,           ANY),   Carries.NOTHING, "a subagent receives no chat deliveries"),
    Row("gate",         (False, ANY,   False, ANY,           ANY),   Carries.NOTHING, "the host's gate said no"),
    Row("B13b",         (True,  False, False, ANY,           ANY),   Carries.NOTHING, "a debounced or assembled delivery has its own batch or render wake"),
    Row("B7-marker",    (True,  True,  False, Said.MARKER,   ANY),   Carries.CHANNEL, "a marker's message is its target, not what to answer"),
    Row("B5-nameless",  (True,  True,  False, (Said.MESSAGE, Said.FIRST_VIEW), False), Carries.CHANNEL, "an event id never becomes a message id"),
    Row("B3-first-view", (True, True,  False, Said.FIRST_VIEW, True), Carries.PAIR,   "the edit is the message that the agent sees"),
    Row("B1-message",   (True,  True,  False, Said.MESSAGE,  True),  Carries.PAIR,    "the message that woke it"),
], source="RULES-answers b")
# fmt: on


class From(StrEnum):
    """Which of the merged wakes gives a value."""

    ADDRESSED = "the newest addressed wake with a channel"
    NEWEST = "the newest wake with a channel"
    ALL = "the message they all name"
    NONE = "none"


class MergeChannelFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of MERGE_CHANNEL."""

    addressed_with_channel: bool
    any_with_channel: bool


# fmt: off
MERGE_CHANNEL: DecisionTable[From] = DecisionTable("merge: channel", MergeChannelFacts, [
    Row("M1-addressed", (True,  ANY),   From.ADDRESSED, "somebody spoke to the agent there"),
    Row("M1-newest",    (False, True),  From.NEWEST,    "the newest place"),
    Row("M1-none",      (False, False), From.NONE,      "no wake names a place"),
], source="RULES-answers c, M1")
# fmt: on


class MergeMessageFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of MERGE_MESSAGE."""

    all_named: bool
    """Every merged wake names a message (and there is one)."""
    all_equal: bool
    """Of one (server, channel, id)."""


# fmt: off
MERGE_MESSAGE: DecisionTable[From] = DecisionTable("merge: message", MergeMessageFacts, [
    Row("M2",           (True,  True),  From.ALL,  "the turn is for this message alone"),
    Row("M3-different", (True,  False), From.NONE, "several messages: a mark on any of them would be wrong"),
    Row("M3-mixed",     (False, ANY),   From.NONE, "something else woke it too"),
], source="RULES-answers c, M2, M3, M5")
# fmt: on


class Locus(StrEnum):
    """Where plain speech of a new turn lands."""

    HOME = "the chat's home"
    TRIGGER = "the channel it was woken from"
    CONFIGURED = "speech.home"
    ANCHOR = "the anchor's channel"
    NONE = "nowhere"


class LocusFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of LOCUS."""

    subagent: bool
    home: bool
    trigger: bool
    configured: bool
    latest_inbound: bool
    """`speech.fallback` is latest-inbound, and there is an anchor."""


# fmt: off
LOCUS: DecisionTable[Locus] = DecisionTable("locus", LocusFacts, [
    #                 subagent home  trigger configured latest
    Row("subagent",   (True,  ANY,   ANY,   ANY,   ANY),   Locus.NONE,       "a subagent owns no chat route"),
    Row("home",       (False, True,  ANY,   ANY,   ANY),   Locus.HOME,       "a fork speaks at home (F13)"),
    Row("trigger",    (False, False, True,  ANY,   ANY),   Locus.TRIGGER,    "where the turn was woken from"),
    Row("configured", (False, False, False, True,  ANY),   Locus.CONFIGURED, "the place for turns with no trigger"),
    Row("latest",     (False, False, False, False, True),  Locus.ANCHOR,     "by configuration: where the newest message came from"),
    Row("none",       (False, False, False, False, False), Locus.NONE,       "never the last one used"),
], source="RULES-answers g, locus order")
# fmt: on


class Noticed(StrEnum):
    """What the agent is told about where its speech lands."""

    SILENT = "nothing"
    RECORD = "nothing, but it counts as announced"
    LANDS = "lands"
    CONVERSATION = "conversation"
    NO_CHANNEL = "none"


class NoticeFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of NOTICE."""

    plain: bool
    """Plain text leaves through the locus (prose locus or hybrid), and it is no subagent's turn."""
    announced: bool
    """Something was announced before, or the speech moves while the turn is open (G7)."""
    same: bool
    """The locus is the one last announced."""
    somewhere: bool
    inbound_only: bool


# fmt: off
NOTICE: DecisionTable[Noticed] = DecisionTable("notice", NoticeFacts, [
    #                      plain  announced same  somewhere inbound_only
    Row("G6",             (False, ANY,   ANY,   ANY,   ANY),   Noticed.SILENT,       "plain text has no locus here"),
    Row("G4-G5",          (True,  False, ANY,   ANY,   ANY),   Noticed.RECORD,       "nothing has changed for the agent"),
    Row("G1",             (True,  True,  True,  ANY,   ANY),   Noticed.SILENT,       "it lands where it did"),
    Row("G3",             (True,  True,  False, False, ANY),   Noticed.NO_CHANNEL,   "it lands nowhere now"),
    Row("G2-conversation", (True, True,  False, True,  True),  Noticed.CONVERSATION, "it moved to a channel that only receives"),
    Row("G2",             (True,  True,  False, True,  False), Noticed.LANDS,        "it moved"),
], source="RULES-answers g")
# fmt: on
