"""The channel's decisions as tables (RULES-replies A8)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from turnkeeper.engine.table import ANY, DecisionTable, Row

__all__ = ["FAILURE", "SETTLEMENT", "Cause", "FailureFacts", "Known", "Now", "Retry", "SettlementFacts", "Told"]


class Known(StrEnum):
    """What the channel knows of the delivery that a settlement names."""

    CURRENT = "handed, this attempt"
    EARLIER = "handed, earlier attempt"
    OVERTAKEN = "handed, earlier attempt; a later one is with the host"
    UNKNOWN = "unknown"
    SENT = "receipt: sent"
    FAILED = "receipt: failed"
    NEVER = "never heard of"


class Told(StrEnum):
    """What the settlement says."""

    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Now(StrEnum):
    """What the channel does about a settlement."""

    SETTLE = "settle as sent"
    SETTLE_TOLD = "settle as sent, tell that another attempt is out"
    RETRY = "retry rules"
    DOUBT = "reconcile, else on_unknown"
    IGNORE = "ignore"
    CONFIRM = "confirm the record"
    CORRECT = "correct the record"
    DUPLICATE = "count a duplicate"
    CONTRADICTION = "tell the contradiction"
    BELATED = "tell the contradiction, confirm the record"


class SettlementFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of SETTLEMENT."""

    known: Known
    told: Told


# fmt: off
SETTLEMENT: DecisionTable[Now] = DecisionTable("settlement", SettlementFacts, [
    Row("sent",               (Known.CURRENT, Told.SENT),    Now.SETTLE,        "the attempt that is out arrived"),
    Row("failed",             (Known.CURRENT, Told.FAILED),  Now.RETRY,         "the failure says whether it is tried again"),
    Row("unknown",            (Known.CURRENT, Told.UNKNOWN), Now.DOUBT,         "nobody can say: ask, then assume or resend"),
    Row("earlier-sent",       (Known.EARLIER, Told.SENT),    Now.SETTLE,        "an attempt given up on did arrive; a later one not yet handed is cancelled"),
    Row("overtaken-sent",     (Known.OVERTAKEN, Told.SENT),  Now.SETTLE_TOLD,   "an attempt given up on did arrive; the later one cannot be called back"),
    Row("earlier-failed",     ((Known.EARLIER, Known.OVERTAKEN), Told.FAILED),  Now.IGNORE, "a later attempt is on its way"),
    Row("earlier-unknown",    ((Known.EARLIER, Known.OVERTAKEN), Told.UNKNOWN), Now.IGNORE, "a later attempt is on its way"),
    Row("confirmed",          (Known.UNKNOWN, Told.SENT),    Now.CONFIRM,       "what was assumed is known now"),
    Row("corrected",          (Known.UNKNOWN, Told.FAILED),  Now.CORRECT,       "what was assumed was wrong; its turn may rescue it once"),
    Row("still-unknown",      (Known.UNKNOWN, Told.UNKNOWN), Now.IGNORE,        "nothing new"),
    Row("sent-again",         (Known.SENT,    Told.SENT),    Now.DUPLICATE,     "told twice"),
    Row("sent-then-failed",   (Known.SENT,    Told.FAILED),  Now.CONTRADICTION, "told otherwise; nothing is sent"),
    Row("failed-then-sent",   (Known.FAILED,  Told.SENT),    Now.BELATED,       "it did arrive: recorded, so that the turn's end does not say it again"),
    Row("failed-again",       (Known.FAILED,  Told.FAILED),  Now.DUPLICATE,     "told twice"),
    Row("receipt-unknown",    ((Known.SENT, Known.FAILED), Told.UNKNOWN), Now.IGNORE, "the receipt knows more"),
    Row("never-heard-of",     (Known.NEVER,   ANY),          Now.IGNORE,        "counted, no state"),
], source="RULES-replies A8")
# fmt: on


class Cause(StrEnum):
    """Why a send failed, as far as it matters."""

    NOT_MODIFIED = "an edit that changes nothing"
    QUOTE_GONE = "the quoted message is gone"
    FORMAT = "rich text not accepted"
    NOT_SENT = "reconciled: it did not arrive"
    FLOOD = "flood wait"
    OTHER = "other"


class Retry(StrEnum):
    """What follows a failure."""

    SUCCESS = "count as sent"
    WITHOUT_QUOTE = "once more without quote"
    PLAIN = "once more as plain text"
    AGAIN = "hand over again"
    HOLD = "hold the channel"
    BACK_OFF = "back off, then again"
    FAIL = "failed"


class FailureFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of FAILURE."""

    cause: Cause
    permanent: bool
    retries_left: bool


# fmt: off
FAILURE: DecisionTable[Retry] = DecisionTable("failure", FailureFacts, [
    #                     cause               permanent  retries_left
    Row("not-modified", (Cause.NOT_MODIFIED, ANY,       ANY),   Retry.SUCCESS,       "the bubble already reads so"),
    Row("quote-gone",   (Cause.QUOTE_GONE,   ANY,       ANY),   Retry.WITHOUT_QUOTE, "the answer matters more than its quote"),
    Row("format",       (Cause.FORMAT,       ANY,       ANY),   Retry.PLAIN,         "the text can be shown without its markup"),
    Row("not-sent",     (Cause.NOT_SENT,     ANY,       ANY),   Retry.AGAIN,         "the platform is sure; no retry is counted"),
    Row("permanent",    (ANY,                True,      ANY),   Retry.FAIL,          "it will never be accepted"),
    Row("flood-wait",   (Cause.FLOOD,        False,     ANY),   Retry.HOLD,          "the platform said when; order is kept"),
    Row("transient",    (Cause.OTHER,        False,     True),  Retry.BACK_OFF,      "it may be accepted later"),
    Row("exhausted",    (Cause.OTHER,        False,     False), Retry.FAIL,          "the retries are used up"),
], source="RULES-replies A8")
# fmt: on
