"""Measuring existing files: what a naive filter shows the model twice, and what ours drops (R27).

The naive filter is the one that failed in the field: it removes a receipt by its provider and model only. Of
a session file the prompt as it would be built now is measured; of a trajectory the prompts that were
submitted. An answer that repeats itself inside one message is reported and never dropped: the model said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from turnkeeper.engine.config import TranscriptRules
from turnkeeper.engine.transcript.content import shown, squashed
from turnkeeper.engine.transcript.entries import Item, Receipt, Row, Utterance, Voice, message_of, unmarked
from turnkeeper.engine.transcript.marks import MIRROR_MODELS, PROVIDER
from turnkeeper.engine.transcript.openclaw import Damaged, Prompt, read_prompts, read_session
from turnkeeper.engine.transcript.view import REASONS, PromptView, prompt_view

__all__ = ["FileReport", "Naive", "check_session", "check_trajectory", "naive_prompt", "repeats_itself", "total"]

REPEATED_CHARS_MIN = 80
"""A shorter passage may well stand twice in one answer."""

PARAGRAPHS = re.compile(r"\n[ \t]*\n")
FILE_NAME = re.compile(r"[^\s/\\]+\.[A-Za-z0-9]{1,5}")


class Naive(msgspec.Struct, frozen=True, gc=False):
    """What the model is shown for nothing when receipts are told by provider and model only."""

    receipts: int = 0
    """Receipts it lets through: their provider and model are gone, another mark is left."""
    pairs: int = 0
    """Adjacent assistant messages of which the second says what the first says."""
    chunks: int = 0
    """Messages that are a part of the one before them."""
    twice_bytes: int = 0
    """Bytes that reach the model a second time."""

    @property
    def contaminated(self) -> bool:
        """Tell whether a prompt built this way holds anything it should not."""
        return bool(self.receipts or self.pairs or self.chunks)


class FileReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds, in numbers; also the sum of several."""

    file: str
    kind: Literal["session", "trajectory", "sum"]
    messages: int = 0
    """Messages of the conversation, receipts included; of a trajectory those of all prompts."""
    receipts: int = 0
    prompts: int = 1
    """Prompts measured: the one that would be built now, or those that were submitted."""
    unrecorded: int = 0
    """Submitted prompts whose messages the recording left out or cut."""
    contaminated: int = 0
    naive: Naive = Naive()
    view: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    """What our view kept and dropped, by reason."""
    view_pairs: int = 0
    """Doubled messages that our view leaves: 0, or it is a bug of ours."""
    dropped_bytes: int = 0
    self_repeats: list[str] = msgspec.field(default_factory=list)
    """Answers that repeat themselves inside one message; of a trajectory one per prompt's newest answer."""
    undecidable: list[str] = msgspec.field(default_factory=list)
    """Unmarked file names right behind an answer with media: perhaps its receipt, nobody can know."""
    unpaired: list[str] = msgspec.field(default_factory=list)
    """Tool calls without a result, and results without a call."""
    damaged: list[Damaged] = msgspec.field(default_factory=list)


def naive_prompt(path: Iterable[Item]) -> list[Item]:
    """Build the prompt of a program that tells receipts by provider and model only.

    Side entries are on nobody's path, so even that program does not show them.
    """
    prompt: list[Item] = []
    for item in path:
        if isinstance(item, Receipt):
            message = message_of(item.raw)
            pair = message.get("provider") == PROVIDER and message.get("model") in MIRROR_MODELS
            if not pair and item.raw.get("appendMode") != "side":
                prompt.append(unmarked(item))
        elif not isinstance(item, Row):
            prompt.append(item)
    return prompt


def _measure(prompt: Sequence[Item], leaked: int) -> Naive:
    """Count what of a prompt repeats what stands right before it."""
    gone = prompt_view(prompt).dropped
    chunks = sum(one.reason == "e2" for one in gone)
    return Naive(leaked, len(gone) - chunks, chunks, sum(one.size_bytes for one in gone))


def check_session(file: str, lines: Iterable[bytes], rules: TranscriptRules | None = None) -> FileReport:
    """Measure a session file."""
    session = read_session(lines)
    path = session.store.path()
    prompt = naive_prompt(path)
    marked = {item.id: True for item in path if isinstance(item, Receipt)}
    naive = _measure(prompt, sum(isinstance(item, Utterance) and item.id in marked for item in prompt))
    view = prompt_view(path, rules)
    return FileReport(
        file=file,
        kind="session",
        messages=sum(isinstance(item, Utterance | Receipt) for item in path),
        receipts=session.store.receipts,
        contaminated=int(naive.contaminated),
        naive=naive,
        view=view.report.counts,
        view_pairs=_pairs_left(view),
        dropped_bytes=view.report.dropped_bytes,
        self_repeats=[item.id for item in view.messages if _repeats(item)],
        undecidable=_undecidable(view.messages),
        unpaired=[*view.unpaired_calls, *view.unpaired_results],
        damaged=session.damaged,
    )


def check_trajectory(file: str, lines: Iterable[bytes], rules: TranscriptRules | None = None) -> FileReport:
    """Measure the prompts that a trajectory recorded."""
    damaged: list[Damaged] = []
    measured = [_check_prompt(file, prompt, rules) for prompt in read_prompts(lines, damaged)]
    return msgspec.structs.replace(total(measured, file, "trajectory"), damaged=damaged)


def _check_prompt(file: str, prompt: Prompt, rules: TranscriptRules | None) -> FileReport:
    submitted: list[Item] = [unmarked(one) if isinstance(one, Receipt) else one for one in prompt.messages]
    receipts = sum(isinstance(one, Receipt) for one in prompt.messages)
    naive = _measure(submitted, receipts)
    view = prompt_view(prompt.messages, rules)
    newest = next((one for one in reversed(view.messages) if _is_answer(one)), None)
    return FileReport(
        file=file,
        kind="trajectory",
        messages=sum(isinstance(item, Utterance | Receipt) for item in prompt.messages),
        receipts=receipts,
        unrecorded=int(not prompt.recorded),
        contaminated=int(naive.contaminated),
        naive=naive,
        view=view.report.counts,
        view_pairs=_pairs_left(view),
        dropped_bytes=view.report.dropped_bytes,
        self_repeats=[f"line {prompt.line}"] if newest is not None and _repeats(newest) else [],
    )


def total(
    reports: Sequence[FileReport], file: str = "sum", kind: Literal["session", "trajectory", "sum"] = "sum"
) -> FileReport:
    """Add reports up; lists of ids are joined."""
    return FileReport(
        file=file,
        kind=kind,
        messages=sum(one.messages for one in reports),
        receipts=sum(one.receipts for one in reports),
        prompts=sum(one.prompts for one in reports),
        unrecorded=sum(one.unrecorded for one in reports),
        contaminated=sum(one.contaminated for one in reports),
        naive=Naive(*(sum(getattr(one.naive, name) for one in reports) for name in Naive.__struct_fields__)),
        view={reason: sum(one.view[reason] for one in reports) for reason in REASONS},
        view_pairs=sum(one.view_pairs for one in reports),
        dropped_bytes=sum(one.dropped_bytes for one in reports),
        self_repeats=[ident for one in reports for ident in one.self_repeats],
        undecidable=[ident for one in reports for ident in one.undecidable],
        unpaired=[ident for one in reports for ident in one.unpaired],
        damaged=[line for one in reports for line in one.damaged],
    )


def _pairs_left(view: PromptView) -> int:
    """Count what a second view would still drop."""
    return len(prompt_view(view.messages).dropped)


def _is_answer(item: Item) -> bool:
    return isinstance(item, Utterance) and item.voice is Voice.ASSISTANT


def _repeats(item: Item) -> bool:
    return isinstance(item, Utterance) and _is_answer(item) and repeats_itself(shown(item.content).text)


def repeats_itself(text: str) -> bool:
    """Tell whether one answer says a long passage twice: the whole of it, or a paragraph."""
    bare = squashed(text)
    half, odd = divmod(len(bare), 2)
    if not odd and half >= REPEATED_CHARS_MIN and bare[:half] == bare[half:]:
        return True
    seen: dict[str, bool] = {}
    for paragraph in map(str.strip, PARAGRAPHS.split(text)):
        if len(paragraph) >= REPEATED_CHARS_MIN:
            if paragraph in seen:
                return True
            seen[paragraph] = True
    return False


def _undecidable(messages: Sequence[Item]) -> list[str]:
    """Find what may be the receipt of an answer with media, its marks gone (V28)."""
    found: list[str] = []
    media = False
    for item in messages:
        if not isinstance(item, Utterance) or item.voice is not Voice.ASSISTANT:
            media = False
            continue
        sight = shown(item.content)
        if media and not item.own and not sight.display and FILE_NAME.fullmatch(sight.text):
            found.append(item.id)
        media = bool(sight.display)
    return found
