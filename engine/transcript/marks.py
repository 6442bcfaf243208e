"""Which assistant entry is a receipt (RULES-transcript R1, R6, R7).

Identity rests on explicit marks, never on text. Several programs mark differently and rebuilds strip some
of it, so any one mark that survived is enough: our own `receipt` record, a known `openclawDeliveryMirror`
kind, `transcriptOnly` or `deliveryMirror`, or the provider/model pair. Marks count on the assistant's role
only, so nothing that a user or a model wrote as text can make one. A mark that cannot be read is none
beside a real model's name; where that name is gone as well, the entry may be a receipt and nobody can say:
it stays in the store, the prompt view treats it by content only, and a look-up by its key says `unknown`.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from turnkeeper.engine.table import ANY, DecisionTable, Row
from turnkeeper.engine.transcript.lines import Fields

__all__ = ["KINDS", "MARKS", "MIRROR_MODELS", "Mark", "MarkFacts", "Reading", "is_pair", "mark_facts", "names_a_model"]

PROVIDER = "openclaw"
MIRROR_MODELS = ("delivery-mirror", "gateway-injected")
"""The models that OpenClaw writes for what no model said."""
KINDS = ("channel-final", "channel-final-suppressed", "message-tool-source-reply", "cron-direct-delivery-context")
"""The values of `openclawDeliveryMirror.kind` that OpenClaw 2026.6.11 to 2026.9.6 writes."""

RECORD_FIELDS = ("key", "source_entry_id", "answers", "route", "part", "platform_ids", "state")


class Mark(StrEnum):
    """What the named marks say: our record, or the mirror's kind."""

    NONE = "none"
    KNOWN = "known"
    MALFORMED = "malformed"


class Reading(StrEnum):
    """What an entry is taken for."""

    UTTERANCE = "utterance"
    RECEIPT = "receipt"
    UNSURE = "receipt-unknown"


class MarkFacts(msgspec.Struct, frozen=True, gc=False):
    """What decides whether an entry is a receipt."""

    assistant: bool
    named: Mark
    flagged: bool
    """`transcriptOnly: true`, or a truthy `deliveryMirror`."""
    pair: bool
    """Provider and model are those of a mirror."""
    own: bool
    """A real provider or model, or a response id, is named."""


# fmt: off
MARKS: DecisionTable[Reading] = DecisionTable("transcript marks", MarkFacts, [
    #                assistant  named           flagged  pair   own
    Row("R7",       (False,     ANY,            ANY,     ANY,   ANY),   Reading.UTTERANCE, "marks count on the assistant's role only"),
    Row("R1-named", (True,      Mark.KNOWN,     ANY,     ANY,   ANY),   Reading.RECEIPT,   "a receipt record or a known mirror kind"),
    Row("R1-flag",  (True,      ANY,            True,    ANY,   ANY),   Reading.RECEIPT,   "marked as transcript only"),
    Row("R1-pair",  (True,      ANY,            ANY,     True,  ANY),   Reading.RECEIPT,   "provider and model of a delivery mirror"),
    Row("R1-none",  (True,      Mark.NONE,      False,   False, ANY),   Reading.UTTERANCE, "no mark"),
    Row("R6-own",   (True,      Mark.MALFORMED, False,   False, True),  Reading.UTTERANCE, "an unreadable mark beside a real model's name"),
    Row("R6-bare",  (True,      Mark.MALFORMED, False,   False, False), Reading.UNSURE,    "an unreadable mark, and no model is named"),
], source="RULES-transcript R1, R6, R7")
# fmt: on


def mark_facts(entry: Fields, message: Fields) -> MarkFacts:
    """Read the marks of an entry whose message is `message`."""
    return MarkFacts(
        assistant=message.get("role") == "assistant",
        named=_named(entry, message),
        flagged=_flagged(entry) or _flagged(message),
        pair=is_pair(message),
        own=names_a_model(message),
    )


def is_pair(message: Fields) -> bool:
    """Tell whether provider and model are a mirror's; a strip that took only the provider left the model."""
    return message.get("model") in MIRROR_MODELS and message.get("provider") in (PROVIDER, None, "")


def names_a_model(message: Fields) -> bool:
    """Tell whether a message has positive provenance of a model: provider, model or response id (R21)."""
    provider = message.get("provider")
    if isinstance(provider, str) and provider and provider != PROVIDER:
        return True
    model = message.get("model")
    if isinstance(model, str) and model and model not in MIRROR_MODELS:
        return True
    return bool(message.get("responseId") or message.get("response_id"))


def _named(entry: Fields, message: Fields) -> Mark:
    marks = [
        _record_mark(entry.get("receipt")),
        _kind_mark(message.get("openclawDeliveryMirror")),
        _kind_mark(entry.get("openclawDeliveryMirror")),
    ]
    if Mark.KNOWN in marks:
        return Mark.KNOWN
    return Mark.MALFORMED if Mark.MALFORMED in marks else Mark.NONE


def _record_mark(record: object) -> Mark:
    if record is None:
        return Mark.NONE
    if isinstance(record, dict) and any(record.get(name) is not None for name in RECORD_FIELDS):
        return Mark.KNOWN
    return Mark.MALFORMED


def _kind_mark(mirror: object) -> Mark:
    if mirror is None:
        return Mark.NONE
    return Mark.KNOWN if isinstance(mirror, dict) and mirror.get("kind") in KINDS else Mark.MALFORMED


def _flagged(fields: Fields) -> bool:
    return fields.get("transcriptOnly") is True or bool(fields.get("deliveryMirror"))
