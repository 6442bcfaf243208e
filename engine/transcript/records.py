"""What a receipt records (RULES-transcript R2), ours and OpenClaw's, and how its key is made (R10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from turnkeeper.engine.ids import delivery_key
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.transcript.lines import Fields

__all__ = ["Record", "Route", "folded_records", "logical_key", "record_fields", "record_of", "route_of"]

STATES = {"sent": Standing.SENT, "suppressed": Standing.SUPPRESSED}
SUPPRESSED_KIND = "channel-final-suppressed"

Id = str | int
"""A platform's or an agent's id, opaque; `6406` and `"6406"` are the same."""


class Route(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where an answer went: a channel of an account, a chat in it, a thread in that."""

    channel: str | None = None
    account: str | None = None
    chat: str | None = None
    thread: str | None = None

    def __str__(self) -> str:
        """Return the four parts as one word; different routes never give the same."""
        parts = (self.channel, self.account, self.chat, self.thread)
        return delivery_key("route", *("" if part is None else f"={part}" for part in parts))


class Record(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One delivery of one part of one answer."""

    key: str = ""
    """Idempotency key, trimmed; empty: none (R13)."""
    source_entry_id: str | None = None
    """The answer's entry, where one exists."""
    answers: tuple[Id, ...] = ()
    """Inbound ids that it answers."""
    route: Route | None = None
    part: tuple[int, int] = (1, 1)
    """Part i of n, from 1."""
    platform_ids: tuple[Id, ...] = ()
    state: Standing = Standing.SENT
    reason: str | None = None
    """Why it was suppressed, or is unknown."""
    at: Id | None = None
    """When, as the host wrote it; ours are milliseconds."""


def logical_key(answers: Sequence[Id], route: Route, answer: str, part: tuple[int, int] = (1, 1)) -> str:
    """Make the key of one part of one answer to these inbound ids on this route (R10).

    It depends on nothing else: no clock, no run, no attempt, no session.
    """
    asked = delivery_key("in", *(str(one) for one in answers)) if answers else "in"
    return delivery_key("answer", asked, str(route), answer, f"{part[0]}/{part[1]}")


def route_of(value: object) -> Route | None:
    """Read a route; None where nothing of one is given."""
    if not isinstance(value, Mapping):
        return None
    parts = [value.get(name) for name in Route.__struct_fields__]
    words = [str(part) if isinstance(part, str | int) and part != "" else None for part in parts]
    return Route(*words) if any(word is not None for word in words) else None


def record_of(entry: Fields, message: Fields) -> Record:
    """Read the record of a receipt: our own where there is one, else what OpenClaw's fields say."""
    foreign = _foreign_record(entry, message)
    own = entry.get("receipt")
    record = _own_record(own, foreign) if isinstance(own, dict) else foreign
    aliases = entry.get("aliases")
    if isinstance(aliases, list):
        extra = [ident for alias in aliases for ident in _ids(alias, "platform_ids")]
        record = msgspec.structs.replace(record, platform_ids=_union(record.platform_ids, extra))
    return record


def folded_records(entry: Fields) -> tuple[Record, ...]:
    """Read the deliveries that were folded into their original (R9)."""
    folded = entry.get("receipts")
    if not isinstance(folded, list):
        return ()
    return tuple(_own_record(one, Record()) for one in folded if isinstance(one, dict))


def record_fields(record: Record) -> Fields:
    """Write a record as the `receipt` object of an entry."""
    return {
        "key": record.key,
        "source_entry_id": record.source_entry_id,
        "answers": list(record.answers),
        "route": None if record.route is None else msgspec.to_builtins(record.route),
        "part": list(record.part),
        "platform_ids": list(record.platform_ids),
        "state": str(record.state),
        "reason": record.reason,
        "at": record.at,
    }


def _foreign_record(entry: Fields, message: Fields) -> Record:
    mirror = message.get("openclawDeliveryMirror") or entry.get("openclawDeliveryMirror")
    mirror = mirror if isinstance(mirror, dict) else {}
    asked = mirror.get("sourceMessageId")
    return Record(
        key=_text(message.get("idempotencyKey") or entry.get("idempotencyKey")),
        source_entry_id=_text(mirror.get("sourceAssistantMessageId")) or None,
        answers=(asked,) if isinstance(asked, str | int) else (),
        state=Standing.SUPPRESSED if mirror.get("kind") == SUPPRESSED_KIND else Standing.SENT,
    )


def _own_record(own: Mapping[str, object], foreign: Record) -> Record:
    state, reason, at = own.get("state"), own.get("reason"), own.get("at")
    return Record(
        key=_text(own.get("key")) or foreign.key,
        source_entry_id=_text(own.get("source_entry_id")) or foreign.source_entry_id,
        answers=tuple(_ids(own, "answers")) or foreign.answers,
        route=route_of(own.get("route")),
        part=_part(own.get("part")),
        platform_ids=tuple(_ids(own, "platform_ids")),
        state=foreign.state if state is None else STATES.get(str(state), Standing.UNKNOWN),
        reason=reason if isinstance(reason, str) else None,
        at=at if isinstance(at, str | int) else None,
    )


def _part(value: object) -> tuple[int, int]:
    """Read part i of n; anything that is none is the only part."""
    match value:
        case [int(i), int(n)] if 1 <= i <= n:
            return (i, n)
        case _:
            return (1, 1)


def _text(value: object) -> str:
    return str(value).strip() if isinstance(value, str | int) else ""


def _ids(fields: object, name: str) -> list[Id]:
    values = fields.get(name) if isinstance(fields, Mapping) else None
    return [value for value in values if isinstance(value, str | int)] if isinstance(values, list) else []


def _union(first: Sequence[Id], second: Sequence[Id]) -> tuple[Id, ...]:
    union: dict[str, Id] = {}
    for one in (*first, *second):
        union.setdefault(str(one), one)
    return tuple(union.values())
