"""Records without what people wrote: ids, numbers and words of the protocol stay; texts become lengths and hashes.

A hash is keyed with a secret of the export that is thrown away: inside one export equal texts are equal, and
nobody can find a text by guessing it.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from turnkeeper.engine.journal import Record

__all__ = ["Redactor"]

KEPT = frozenset({
    "attempt", "call_id", "category", "channel", "chat", "chat_id", "consumed_turn_ids", "delivery", "due", "event_id",
    "handed", "home", "id", "into", "kind", "lane", "message", "messages", "outcome", "owner", "participant",
    "purpose", "reply_in", "report_to", "rules", "server", "source", "thread", "turn_id", "type",
})  # fmt: skip
"""Fields that hold an id or a word of the protocol; whatever else is a text is taken out."""
IS_ID = re.compile(r"[\w@.:/#+=?-]{1,128}")
"""What may pass for an id: a model writes into some of these fields, and may write anything."""


class Redactor:
    """Redacts the records of one export.

    Args:
        key: the secret of the hashes.

    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def record(self, record: Record) -> dict[str, Any]:
        """Return a record as plain values, redacted; its digest stays, and no more fits a replay."""
        plain: dict[str, Any] = msgspec.to_builtins(record)
        body: dict[str, Any] = plain["body"]
        if body.get("configured") is None:
            plain["body"] = self._value(body, "")
        return plain

    def _value(self, value: object, field: str) -> object:
        if isinstance(value, dict):
            return {self._name(key): self._value(inner, str(key)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(inner, field) for inner in value]
        if isinstance(value, str) and not (field in KEPT and IS_ID.fullmatch(value)):
            return self._hashed(value)
        return value

    def _name(self, key: object) -> str:
        """Names of fields are ours, but for those inside of what a model wrote."""
        return str(key) if re.fullmatch(r"[a-z_]{1,32}", str(key)) else str(self._hashed(str(key))["hash"])

    def _hashed(self, text: str) -> dict[str, Any]:
        data = text.encode("utf-8", "surrogatepass")
        return {"length": len(text), "hash": blake2b(data, digest_size=8, key=self._key).hexdigest()}
