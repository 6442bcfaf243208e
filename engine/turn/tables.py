"""The turn's decisions as tables (RULES-replies A7, RULES-answers e, f, g)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from turnkeeper.engine.table import ANY, DecisionTable, Row

__all__ = [
    "DELIVERY",
    "FINAL",
    "PROSE",
    "REFUSAL",
    "DeliveryFacts",
    "Failure",
    "FinalFacts",
    "Mark",
    "Prose",
    "ProseFacts",
    "RefusalFacts",
    "Resolution",
    "Stop",
    "Voice",
]


class Failure(StrEnum):
    """A failed final reply that the turn keeps."""

    NO = "no"
    TRANSIENT = "transient"
    PERMANENT = "permanent"


class Stop(StrEnum):
    """What the captured Stop text is, beside what was already said; trimmed texts are compared."""

    EMPTY = "empty"
    CONSUMING = "equals the consuming text"
    INTERIM = "equals an interim text or their join"
    DIFFERS = "differs"


class Resolution(StrEnum):
    """How a turn ends."""

    FINAL_REPLY = "final-reply"
    FALLBACK = "fallback"
    REPLY_RESCUE = "reply-rescue"
    UNDELIVERED = "undelivered"
    CONSUMED = "consumed"
    CONSUMED_RESCUE = "consumed-rescue"
    SILENT = "silent"
    INTERIM_NOOP = "interim-noop"
    INTERIM_RESCUE = "interim-rescue"


class DeliveryFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of DELIVERY."""

    finals: bool
    """A final reply is recorded."""
    interims: bool
    """An interim reply is recorded."""
    consumed: bool
    """A delivered non-interim reply of another owner names the turn."""
    failed: Failure
    stop: Stop


COVERED = (Stop.EMPTY, Stop.CONSUMING, Stop.INTERIM)
PRESENT = (Stop.CONSUMING, Stop.INTERIM, Stop.DIFFERS)
R = Resolution

# fmt: off
DELIVERY: DecisionTable[Resolution] = DecisionTable("delivery", DeliveryFacts, [
    #                            finals  interims consumed failed             stop
    Row("final-reply",          (True,  ANY,     ANY,     ANY,               ANY),           R.FINAL_REPLY,     "a delivered non-interim reply is authoritative, whatever Stop says"),
    Row("fallback",             (False, False,   False,   Failure.NO,        PRESENT),       R.FALLBACK,        "the answer is only in the Stop text"),
    Row("fallback-after-failure", (False, False, False,   (Failure.TRANSIENT, Failure.PERMANENT), PRESENT), R.FALLBACK, "the reply failed; the Stop text is the agent's own new text"),
    Row("reply-rescue",         (False, False,   False,   Failure.TRANSIENT, Stop.EMPTY),    R.REPLY_RESCUE,    "nothing else was said: the failed reply again"),
    Row("undelivered",          (False, False,   False,   Failure.PERMANENT, Stop.EMPTY),    R.UNDELIVERED,     "it will never be accepted: told, not sent again"),
    Row("consumed",             (False, False,   True,    ANY,               (Stop.EMPTY, Stop.CONSUMING)), R.CONSUMED, "another reply answered it"),
    Row("consumed-rescue",      (False, False,   True,    ANY,               (Stop.INTERIM, Stop.DIFFERS)), R.CONSUMED_RESCUE, "the consuming reply said something else"),
    Row("silent",               (False, False,   False,   Failure.NO,        Stop.EMPTY),    R.SILENT,          "nothing was said"),
    Row("interim-noop",         (False, True,    ANY,     Failure.NO,        COVERED),       R.INTERIM_NOOP,    "Stop adds nothing to what was shown"),
    Row("interim-undelivered",  (False, True,    ANY,     Failure.PERMANENT, COVERED),       R.UNDELIVERED,     "the final will never be accepted: told, not sent again"),
    Row("interim-reply-rescue", (False, True,    ANY,     Failure.TRANSIENT, COVERED),       R.REPLY_RESCUE,    "only interim replies arrived: the failed final again"),
    Row("interim-rescue",       (False, True,    ANY,     ANY,               Stop.DIFFERS),  R.INTERIM_RESCUE,  "only interim replies arrived, and Stop says more"),
], source="RULES-replies A7, the delivery table")
# fmt: on


class Voice(StrEnum):
    """What becomes of a Stop text beside a delivered final reply."""

    NOTHING = "nothing to send"
    SUPPRESS = "suppressed"
    RESCUE = "sent (rescue kind final-different)"


class FinalFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of FINAL."""

    policy: Literal["authoritative", "rescue-different"]
    """`finalize.final_reply`."""
    differs: bool
    """The Stop text is there and equals no recorded reply."""


# fmt: off
FINAL: DecisionTable[Voice] = DecisionTable("final", FinalFacts, [
    Row("equal",      (ANY,                False), Voice.NOTHING,  "Stop repeats the reply, or says nothing"),
    Row("suppressed", ("authoritative",    True),  Voice.SUPPRESS, "the reply is the answer; the closing words are not"),
    Row("different",  ("rescue-different", True),  Voice.RESCUE,   "the conservative policy sends what differs"),
], source="RULES-replies A7, first row; finalize.final_reply")
# fmt: on


class Prose(StrEnum):
    """Where a turn's plain speech goes."""

    LOCUS = "the locus"
    PREFIX = "the prefix's channel"
    ARCHIVE = "the archive"


class ProseFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of PROSE."""

    mode: Literal["locus", "hybrid", "explicit", "disabled"]
    """`speech.prose`."""
    prefixed: bool
    """The host parsed a destination from the text's prefix."""


# fmt: off
PROSE: DecisionTable[Prose] = DecisionTable("prose", ProseFacts, [
    Row("locus",           ("locus",    ANY),   Prose.LOCUS,   "plain text goes to the locus"),
    Row("hybrid-prefixed", ("hybrid",   True),  Prose.PREFIX,  "the prefix names the destination"),
    Row("hybrid",          ("hybrid",   False), Prose.LOCUS,   "no prefix: the locus"),
    Row("explicit",        ("explicit", True),  Prose.PREFIX,  "only prefixed text leaves"),
    Row("unprefixed",      ("explicit", False), Prose.ARCHIVE, "explicit mode without a destination: nothing is sent"),
    Row("disabled",        ("disabled", ANY),   Prose.ARCHIVE, "plain text never leaves"),
], source="RULES-answers g, G15")
# fmt: on


class Mark(StrEnum):
    """What a refusal shows."""

    REACT = "the mark, on the pair's message"
    NOTHING = "nothing"


class RefusalFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of REFUSAL."""

    interrupted: bool
    subagent: bool
    rewind: bool
    """The chat's budget allows a rewind now."""
    message: bool
    """The pair names a message in a channel of a known server."""


# fmt: off
REFUSAL: DecisionTable[Mark] = DecisionTable("refusal", RefusalFacts, [
    #                  interrupted subagent rewind message
    Row("interrupted", (True,  ANY,   ANY,   ANY),   Mark.NOTHING, "the user stopped it: only the record is written"),
    Row("ephemeral",   (False, True,  ANY,   ANY),   Mark.NOTHING, "a subagent answers no chat message"),
    Row("rewound",     (False, False, True,  ANY),   Mark.NOTHING, "no mark: the exchange is removed and run again"),
    Row("marked",      (False, False, False, True),  Mark.REACT,   "the message that the turn answered"),
    Row("no-message",  (False, False, False, False), Mark.NOTHING, "the pair names no message: never a fallback"),
], source="RULES-answers e, E1 to E25")
# fmt: on
