"""Whether an answer went out: the look-up and the index behind it (RULES-transcript 2.5, R38–R41).

The look-up reads the store, never a view. It asks by key, then by (route, answer, part), then, for files
whose marks are gone, by text; a text is never proof: it gives `maybe`, and only `none` permits a blind send.
`AFTER_CRASH` is the same question one step earlier: what a sender that keeps its intents may do after a
restart.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from turnkeeper.engine.ids import delivery_key
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.table import ANY, DecisionTable, Row
from turnkeeper.engine.transcript.records import Id, Record, Route

__all__ = [
    "AFTER_CRASH",
    "STANDINGS",
    "CrashFacts",
    "Filed",
    "Found",
    "Index",
    "LookupFacts",
    "Recovery",
    "found_key",
    "routes_meet",
]


class Found(StrEnum):
    """What one index says."""

    NOTHING = "nothing"
    SENT = "sent"
    SUPPRESSED = "suppressed"
    UNKNOWN = "unknown"
    OTHER_SPLIT = "another split"
    """The answer is recorded, cut into another number of parts."""


ByKey = Literal[Found.NOTHING, Found.SENT, Found.SUPPRESSED, Found.UNKNOWN]

FOUND: dict[Standing, ByKey] = {
    Standing.SENT: Found.SENT,
    Standing.SUPPRESSED: Found.SUPPRESSED,
    Standing.UNKNOWN: Found.UNKNOWN,
}


class LookupFacts(msgspec.Struct, frozen=True, gc=False):
    """What the indexes know of an answer."""

    by_key: ByKey
    by_part: Found
    by_text: bool
    """An unmarked answer without provenance in the newest turn, perhaps on that route, shows the same text."""


# fmt: off
STANDINGS: DecisionTable[Standing] = DecisionTable("delivery look-up", LookupFacts, [
    #                    by key             by part            by text
    Row("R38-key-sent",  (Found.SENT,       ANY,               ANY),   Standing.SENT,       "a receipt has this key"),
    Row("R38-key-supp",  (Found.SUPPRESSED, ANY,               ANY),   Standing.SUPPRESSED, "this key was decided not to be sent"),
    Row("R38-key-unkn",  (Found.UNKNOWN,    ANY,               ANY),   Standing.UNKNOWN,    "this key left, and nobody knows the end"),
    Row("R38-part-sent", (ANY,              Found.SENT,        ANY),   Standing.SENT,       "this part of the answer has a receipt"),
    Row("R38-part-supp", (ANY,              Found.SUPPRESSED,  ANY),   Standing.SUPPRESSED, "this part was decided not to be sent"),
    Row("R38-part-unkn", (ANY,              Found.UNKNOWN,     ANY),   Standing.UNKNOWN,    "this part left, and nobody knows the end"),
    Row("R41-split",     (ANY,              Found.OTHER_SPLIT, ANY),   Standing.MAYBE,      "the answer went out in other parts"),
    Row("R37-text",      (ANY,              ANY,               True),  Standing.MAYBE,      "the same text, and its marks are gone"),
    Row("R39-none",      (ANY,              ANY,               False), Standing.NONE,       "nothing records it: it may be sent"),
], source="RULES-transcript R37–R41")
# fmt: on


class Recovery(StrEnum):
    """What a sender does with an intent it finds after a crash (R40)."""

    NOTHING = "nothing"
    SEND = "send"
    ASK = "ask the adapter"
    TELL_UNKNOWN = "unknown, told"


class CrashFacts(msgspec.Struct, frozen=True, gc=False):
    """How far a send had come."""

    receipt: bool
    started: bool
    """The mark that is written before the send leaves."""
    adapter: bool
    """The platform can say whether it arrived."""


# fmt: off
AFTER_CRASH: DecisionTable[Recovery] = DecisionTable("after a crash", CrashFacts, [
    #                    receipt  started  adapter
    Row("R40-receipt",   (True,   ANY,     ANY),   Recovery.NOTHING,      "it went out and is recorded"),
    Row("R40-intent",    (False,  False,   ANY),   Recovery.SEND,         "it never left"),
    Row("R40-adapter",   (False,  True,    True),  Recovery.ASK,          "it may have left, and the platform knows"),
    Row("R40-unknown",   (False,  True,    False), Recovery.TELL_UNKNOWN, "it may have left, and nobody knows"),
], source="RULES-transcript R40")
# fmt: on


class Filed(msgspec.Struct, frozen=True, gc=False):
    """Where a record stands: the entry that bears it, and the record."""

    entry_id: str
    record: Record
    sure: bool = True
    """False: the entry is a receipt-unknown (R6), so its key may still be given to a receipt."""


class Index:
    """Records by key, by (route, answer, part), and by platform id. Mutable; its owner is a `Store`."""

    def __init__(self) -> None:
        self._by_key: dict[str, Filed] = {}
        self._by_part: dict[str, Filed] = {}
        self._splits: dict[str, bool] = {}
        """Answers with any record, and with `:n` behind it, those with a record of a split into n parts."""
        self._by_platform: dict[str, str] = {}
        self._routes: dict[str, Route] = {}

    def file(self, filed: Filed) -> None:
        """Take a record in. The earliest of a key stays; one that knows more corrects an unknown."""
        record = filed.record
        if record.key:
            _keep(self._by_key, record.key, filed)
        route = record.route
        if route is not None:
            self._routes[str(route)] = route
            if record.source_entry_id:
                answer = delivery_key("answer", str(route), record.source_entry_id)
                _keep(self._by_part, _part_key(answer, record.part), filed)
                self._splits[answer] = self._splits[f"{answer}:{record.part[1]}"] = True
        for ident in record.platform_ids:
            self._by_platform.setdefault(_platform_key(route or Route(), ident), filed.entry_id)

    def by_key(self, key: str) -> Filed | None:
        """Return the record of a key; keys compare after trim, and the empty one is none (R13)."""
        return self._by_key.get(key.strip())

    def by_part(self, route: Route, answer: str, part: tuple[int, int]) -> Filed | None:
        """Return the record of one part of an answer on a route."""
        return self._by_part.get(_part_key(delivery_key("answer", str(route), answer), part))

    def found_part(self, route: Route, answer: str, part: tuple[int, int]) -> Found:
        """Say what is known of one part; the parts of one split are independent (R41)."""
        filed = self.by_part(route, answer, part)
        if filed is not None:
            return FOUND[filed.record.state]
        name = delivery_key("answer", str(route), answer)
        if name not in self._splits or f"{name}:{part[1]}" in self._splits:
            return Found.NOTHING
        return Found.OTHER_SPLIT

    def serves(self, route: Route) -> bool:
        """Tell whether a route may be one of this transcript's: it delivered there, or recorded no route at all."""
        return not self._routes or any(routes_meet(route, known) for known in self._routes.values())

    def echo_of(self, route: Route, platform_id: Id) -> str | None:
        """Return the entry that records a platform message of ours, so that its echo is never admitted (R45).

        A receipt that recorded no route is taken for any.
        """
        return self._by_platform.get(_platform_key(route, platform_id)) or self._by_platform.get(
            _platform_key(Route(), platform_id)
        )


def found_key(filed: Filed | None) -> ByKey:
    """Say what the index by key knows."""
    return Found.NOTHING if filed is None else FOUND[filed.record.state]


def routes_meet(one: Route, other: Route) -> bool:
    """Tell whether two routes may be the same place: no part that both name differs."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in Route.__struct_fields__)
    return all(first is None or second is None or first == second for first, second in pairs)


def _keep(index: dict[str, Filed], key: str, filed: Filed) -> None:
    """Keep the earliest; a receipt replaces a receipt-unknown, and what is known corrects what is not."""
    known = index.get(key)
    if known is None or known.entry_id == filed.entry_id or not known.sure:
        index[key] = filed
    elif known.record.state is Standing.UNKNOWN and filed.record.state is not Standing.UNKNOWN:
        index[key] = Filed(known.entry_id, filed.record)


def _part_key(answer: str, part: tuple[int, int]) -> str:
    return f"{answer}:{part[0]}/{part[1]}"


def _platform_key(route: Route, ident: Id) -> str:
    return delivery_key("platform", str(route), ident)
