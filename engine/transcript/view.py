"""The prompt view: what of a transcript the model reads (RULES-transcript 2.3).

Theory of operation. The view is a pure function of the path. Step 1 (`Tree.path`) selected it; then marked
receipts go (R16, R17), tool calls and results are paired for the report (R15), and the content fallback drops
what the message before already shows (fallback.py). Receipts go first, so that a call and its result are
neighbours again. Shaping for a provider is the host's.

What never changes: the input, the order, user, tool and rendered entries; and the list itself when nothing
had to go, so that a prompt cache stays warm.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import cast

import msgspec

from turnkeeper.engine.config import TranscriptRules
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.transcript.content import Redact, content_bytes, shown
from turnkeeper.engine.transcript.entries import (
    Boundary,
    ContextLine,
    Item,
    Prompted,
    Receipt,
    Row,
    Summary,
    Utterance,
    Voice,
)
from turnkeeper.engine.transcript.fallback import Dropped, Fallback
from turnkeeper.engine.transcript.repeats import ADJACENCY, Adjacency, Part, PartFacts
from turnkeeper.engine.transcript.standalone import STANDALONE, OriginFacts, receipts_alone

__all__ = ["REASONS", "PromptView", "Report", "prompt_view"]

REASONS = ("kept", "receipt", "standalone", "e0", "e1", "e2")
"""What a view counts messages by; the labels of `turnkeeper_prompt_messages_total`."""

PARTS = {
    Voice.USER: Part.USER,
    Voice.ASSISTANT: Part.ASSISTANT,
    Voice.TOOL_RESULT: Part.TOOL_RESULT,
    Voice.OTHER: Part.RENDERED,
}
SPOKEN = {voice: ADJACENCY.decide(PartFacts(part)).verdict for voice, part in PARTS.items()}
UNSPOKEN: dict[type[Item], Adjacency] = {
    kind: ADJACENCY.decide(PartFacts(part)).verdict
    for kind, part in (
        (Summary, Part.SUMMARY),
        (Boundary, Part.BOUNDARY),
        (Row, Part.BOOKKEEPING),
        (Receipt, Part.RECEIPT),
        (ContextLine, Part.CONTEXT),
    )
}
LABELS = {
    Standing.SENT: "[delivered outside the conversation]",
    Standing.UNKNOWN: "[perhaps delivered outside the conversation]",
}


class Report(msgspec.Struct, frozen=True, gc=False):
    """What a view did (R27): the source of the metrics."""

    counts: dict[str, int]
    """Messages by reason; every reason of `REASONS` is there."""
    dropped_bytes: int
    """Bytes that would have reached the model for nothing."""

    @property
    def result(self) -> str:
        """The label of `turnkeeper_prompts_total`: `clean`, or `cleaned` when something was dropped."""
        return "cleaned" if any(count for reason, count in self.counts.items() if reason != "kept") else "clean"


class PromptView(msgspec.Struct, frozen=True, gc=False):
    """A prompt, and what is not in it."""

    messages: list[Prompted]
    """In order. The very list that was given, if nothing had to go."""
    dropped: list[Dropped]
    unpaired_calls: list[str]
    """Entries that call a tool whose result never comes after them; told, nothing is removed (R15)."""
    unpaired_results: list[str]
    """Entries that bring a result for which no call stands before them."""

    @property
    def ids(self) -> list[str]:
        """Ids of the messages; summaries, boundaries and context lines are none."""
        return [item.id for item in self.messages if isinstance(item, Utterance)]

    @property
    def report(self) -> Report:
        """Count what was kept and dropped, by reason."""
        counts: dict[str, int] = dict.fromkeys(REASONS, 0)
        counts["kept"] = sum(isinstance(item, Utterance) for item in self.messages)
        for gone in self.dropped:
            counts[gone.reason] += 1
        return Report(counts, sum(gone.size_bytes for gone in self.dropped))


def prompt_view(
    path: Sequence[Item], rules: TranscriptRules | None = None, *, redact: Redact | None = None
) -> PromptView:
    """Decide what of a conversation the model reads.

    Pure, total and linear; `prompt_view(view.messages)` keeps exactly those messages again (R26).

    Args:
        path: the conversation in order, as `Store.path` or `Tree.path` gives it, or an earlier view's messages.
        rules: `transcript.fallback` and `transcript.standalone`; the defaults without.
        redact: applied to both sides of every comparison, where the host redacts only one of them (R21).

    """
    shaping = _Shaping(rules or TranscriptRules(), redact, receipts_alone(path))
    for position, item in enumerate(path):
        shaping.take(position, item)
    return shaping.view(path)


class _Shaping:
    """One walk over a path."""

    def __init__(self, rules: TranscriptRules, redact: Redact | None, alone: frozenset[int]) -> None:
        self.rules = rules
        self.alone = alone
        self.fallback = Fallback(rules.fallback, redact)
        self.waiting: list[ContextLine] = []
        self.shown_keys: dict[str, bool] = {}
        self.due: dict[str, str] = {}
        """Tool calls without a result yet: the call's id, and the entry that made it."""
        self.answered: dict[str, bool] = {}
        self.unpaired_calls: list[str] = []
        self.unpaired_results: list[str] = []

    def take(self, position: int, item: Item) -> None:
        """Handle the next item of the path."""
        if isinstance(item, Utterance):
            if self.waiting and item.voice is not Voice.TOOL_RESULT:
                self._show_waiting()
            if item.calls:
                self._pair(item)
            if SPOKEN[item.voice] is Adjacency.SPEAKS:
                self.fallback.assistant(item)
            else:
                self.fallback.resets(item)
        elif isinstance(item, Receipt):
            self._receipt(item, alone=position in self.alone)
        elif not isinstance(item, Utterance | Receipt | Row):
            self._show_waiting()
            if isinstance(item, ContextLine):
                self.fallback.transparent(item)
            else:
                assert UNSPOKEN[item.__class__] is Adjacency.RESETS
                self.fallback.resets(item)

    def view(self, path: Sequence[Item]) -> PromptView:
        """End the walk."""
        self._show_waiting()
        self.fallback.end()
        kept = self.fallback.kept
        if isinstance(path, list) and len(kept) == len(path) and all(map(is_, kept, path)):
            kept = cast("list[Prompted]", path)  # item by item what was kept, so no receipt is in it
        calls = [*self.unpaired_calls, *dict.fromkeys(self.due.values())]
        return PromptView(kept, self.fallback.dropped, calls, self.unpaired_results)

    def _pair(self, item: Utterance) -> None:
        """Pair calls with results by id; what has no id cannot be paired and is not reported (R15)."""
        for call in filter(None, item.calls):
            if item.voice is Voice.ASSISTANT:
                if call in self.due:
                    self.unpaired_calls.append(self.due[call])
                self.due[call] = item.id
            elif self.due.pop(call, None) is not None:
                self.answered[call] = True
            elif call not in self.answered:
                self.unpaired_results.append(item.id)

    def _receipt(self, receipt: Receipt, *, alone: bool) -> None:
        """Take a receipt out, and show it as context where the policy says so."""
        facts = OriginFacts(bool(receipt.record.source_entry_id), not alone, self.rules.standalone)
        made = STANDALONE.decide(facts)
        reason = "receipt" if made.verdict == "receipt" else "standalone"
        size_bytes = content_bytes(receipt.content)
        source = receipt.record.source_entry_id
        self.fallback.dropped.append(Dropped(receipt, reason, made.row, made.why, source, size_bytes))
        if made.verdict == "context":
            self._context(receipt)

    def _context(self, receipt: Receipt) -> None:
        """Make a context line, once a key; it waits while a result is due, which must stay beside its call."""
        record, text = receipt.record, shown(receipt.content).text
        if record.state not in LABELS or not text or record.key in self.shown_keys:
            return
        if record.key:
            self.shown_keys[record.key] = True
        self.waiting.append(ContextLine(receipt.id, f"{LABELS[record.state]} {text}"))
        if not self.due:
            self._show_waiting()

    def _show_waiting(self) -> None:
        for line in self.waiting:
            self.fallback.transparent(line)
        self.waiting = []
