"""The chat's decisions about replies, calls, Stops and inputs as tables (RULES-replies A1, A2, A3, A6, A7)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from turnkeeper.engine.table import ANY, DecisionTable, Row

__all__ = [
    "ATTRIBUTION",
    "CALL",
    "DROP",
    "SAMENESS",
    "STOP",
    "AttributionFacts",
    "CallFacts",
    "Calls",
    "Drop",
    "DropFacts",
    "Echo",
    "Number",
    "Owner",
    "Prior",
    "Sameness",
    "SamenessFacts",
    "StopFacts",
    "StopOwner",
]


class Number(StrEnum):
    """None, one, or several."""

    ZERO = "0"
    ONE = "1"
    MANY = "2 or more"


class Echo(StrEnum):
    """What the id is that a reply echoes."""

    OPEN = "an open turn"
    FOLD = "ledgered, not open, fold source"
    FOLD_GONE = "left the ledger, fold source"
    OTHER = "ledgered or left it, not open, other source"
    NONE = "unknown, absent or no string"


class Owner(StrEnum):
    """Who owns a reply."""

    ECHOED = "the echoed turn"
    CONSUMED = "the consumed open turn"
    LATE = "none: it answers the echoed input, late"
    ONLY = "the only open turn"
    NOBODY = "none"


class AttributionFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of ATTRIBUTION."""

    echo: Echo
    in_consumed: bool
    """`consumed_turn_ids` contains the echoed id."""
    consumed_open: Number
    """Distinct open turns that it contains."""
    open_turns: Number
    """A subagent's turn never counts."""
    proof: Literal["consumed", "off"]
    """`attribution.fold_proof` of the consumed open turn."""


# fmt: off
ATTRIBUTION: DecisionTable[Owner] = DecisionTable("attribution", AttributionFacts, [
    #                     echo        in_consumed consumed_open open_turns   proof
    Row("echoed-open",  (Echo.OPEN,  ANY,        ANY,          ANY,         ANY),        Owner.ECHOED,   "the turn is still open"),
    Row("proven-fold",  (Echo.FOLD,  True,       Number.ONE,   ANY,         "consumed"), Owner.CONSUMED, "one combined reply for a merged input"),
    Row("late-fold",    ((Echo.FOLD, Echo.FOLD_GONE), ANY, ANY, ANY,        ANY),        Owner.LATE,     "no proof of a single owner: do not guess"),
    Row("late-other",   (Echo.OTHER, ANY,        ANY,          ANY,         ANY),        Owner.LATE,     "an earlier turn's own id"),
    Row("only-open",    (Echo.NONE,  ANY,        ANY,          Number.ONE,  ANY),        Owner.ONLY,     "no id to trust and one place to go"),
    Row("orphan",       (Echo.NONE,  ANY,        ANY,          Number.MANY, ANY),        Owner.NOBODY,   "no id to trust and no single place"),
    Row("autonomous",   (Echo.NONE,  ANY,        ANY,          Number.ZERO, ANY),        Owner.NOBODY,   "nothing is open"),
], source="RULES-replies A3")
# fmt: on


class Calls(StrEnum):
    """What becomes of a call whose id is known."""

    MISUSE = "refused: the id was used with other arguments"
    JOIN = "joined"
    REPLAY = "replayed"
    ERROR = "the same error again"


class CallFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of CALL."""

    same_arguments: bool
    outcome: Literal["in flight", "sent", "failed", "unknown", "refused"]


# fmt: off
CALL: DecisionTable[Calls] = DecisionTable("known call", CallFacts, [
    Row("other-arguments", (False, ANY),          Calls.MISUSE, "one id is one attempt"),
    Row("in-flight",       (True,  "in flight"),  Calls.JOIN,   "it gets the outcome of the first"),
    Row("sent",            (True,  "sent"),       Calls.REPLAY, "it was delivered"),
    Row("not-sent",        (True,  ("failed", "unknown", "refused")), Calls.ERROR, "the same call has the same end"),
], source="RULES-replies A2, 1")
# fmt: on


class Prior(StrEnum):
    """What is remembered of the same content of the same owner."""

    NONE = "none"
    IN_FLIGHT = "in flight"
    RECENT = "delivered inside dedup.window_ms"
    SPOKEN = "the fallback or rescue that ended the turn"
    OLD = "delivered before that"
    UNKNOWN = "unknown"


class Sameness(StrEnum):
    """What becomes of a reply whose content is known."""

    NEW = "a new answer"
    JOIN = "joined"
    REPLAY = "replayed"
    REFUSE = "ack error unknown"


class SamenessFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of SAMENESS."""

    prior: Prior
    newer_input: bool
    """The call names an input that was written after that delivery's call."""


# fmt: off
SAMENESS: DecisionTable[Sameness] = DecisionTable("sameness", SamenessFacts, [
    Row("new",       (Prior.NONE,      ANY),   Sameness.NEW,    "nothing like it was said here"),
    Row("newer",     (ANY,             True),  Sameness.NEW,    "the same words answer a follow-up that came after them"),
    Row("joined",    (Prior.IN_FLIGHT, False), Sameness.JOIN,   "the same answer is on its way"),
    Row("replayed",  (Prior.RECENT,    False), Sameness.REPLAY, "the same answer was just delivered"),
    Row("spoken",    (Prior.SPOKEN,    False), Sameness.REPLAY, "the turn's end already said it: a slow retry is no second answer"),
    Row("old",       (Prior.OLD,       False), Sameness.NEW,    "long ago: said again on purpose"),
    Row("unknown",   (Prior.UNKNOWN,   False), Sameness.REFUSE, "it may have arrived: not repeated blindly"),
], source="RULES-replies A6")
# fmt: on


class StopOwner(StrEnum):
    """Whose Stop it is."""

    IGNORED = "nobody's: a stop hook is already running"
    NAMED = "the named turn's"
    FOREIGN = "foreign"
    CANDIDATE = "the one candidate's"
    SEVERAL = "kept with each candidate"


class StopFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of STOP."""

    active: bool
    named: Literal["no", "open", "not open"]
    candidates: Number
    """Open turns that were seen, or have a recorded or in-flight reply."""


# fmt: off
STOP: DecisionTable[StopOwner] = DecisionTable("stop", StopFacts, [
    Row("active",       (True,  ANY,        ANY),         StopOwner.IGNORED,   "the hook's own Stop says nothing about a turn"),
    Row("named",        (False, "open",     ANY),         StopOwner.NAMED,     "the host knows the turn"),
    Row("named-closed", (False, "not open", ANY),         StopOwner.FOREIGN,   "that turn is not open"),
    Row("foreign",      (False, "no",       Number.ZERO), StopOwner.FOREIGN,   "no open turn was read or answered"),
    Row("candidate",    (False, "no",       Number.ONE),  StopOwner.CANDIDATE, "one turn can have stopped"),
    Row("unattributed", (False, "no",       Number.MANY), StopOwner.SEVERAL,   "no owner is guessed; a ceiling may use the text"),
], source="RULES-replies A7, Stop")
# fmt: on


class Drop(StrEnum):
    """What an input is that nobody confirmed."""

    UNCONFIRMED = "resolved, unconfirmed"
    SUPERSEDED = "superseded"
    SUSPECTED = "fold-suspected"
    REDELIVER = "dropped, handed over again"
    DROPPED = "dropped"


class DropFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of DROP."""

    source: Literal["autosteer", "edit-fold", "inject", "system"]
    superseded: bool
    """A primary written later was seen or acknowledged."""
    contract: bool
    """A call since it was written carried `consumed_turn_ids`."""
    redelivered: bool
    """Its (channel, message) was handed over again before."""


# fmt: off
DROP: DecisionTable[Drop] = DecisionTable("drop check", DropFacts, [
    #                       source                   superseded contract redelivered
    Row("unconfirmed",    (("inject", "system"),    ANY,       ANY,     ANY),   Drop.UNCONFIRMED, "such an input is never handed over again"),
    Row("superseded",     (ANY,                     True,      ANY,     ANY),   Drop.SUPERSEDED,  "the agent went on to a later message"),
    Row("fold-suspected", (ANY,                     False,     False,   ANY),   Drop.SUSPECTED,   "without acknowledgements a fold cannot be told from a drop"),
    Row("dropped",        ("autosteer",             False,     True,    False), Drop.REDELIVER,   "nobody picked it up: once more"),
    Row("dropped-again",  ("autosteer",             False,     True,    True),  Drop.DROPPED,     "it was handed over again already"),
    Row("dropped-edit",   ("edit-fold",             False,     True,    ANY),   Drop.DROPPED,     "an edit is not handed over again"),
], source="RULES-replies A1, drop check")
# fmt: on
