"""Which receipts have no original (RULES-transcript R17).

A receipt names its original, or repeats it in the same turn: word for word, or in chunks (OpenClaw writes a
receipt a chunk), or, where the answer showed media, by the file names only. A turn runs from one user entry
to the next, and the original may stand on either side of its receipt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from turnkeeper.engine.table import ANY, DecisionTable, Row
from turnkeeper.engine.transcript.content import Shown, shown, squashed
from turnkeeper.engine.transcript.entries import Item, Receipt, Utterance, Voice

__all__ = ["STANDALONE", "Hiding", "OriginFacts", "Standalone", "receipts_alone"]

Hiding = Literal["receipt", "standalone", "context"]
"""How a receipt stays out of the prompt: hidden beside its original, hidden alone, or as a context line."""

Standalone = Literal["hide", "context"]
"""`transcript.standalone`: hide what was sent without an answer, or show it as context."""
FILE_NAMES = re.compile(r"[^\s/\\]+\.[A-Za-z0-9]{1,5}")


Turn = list[tuple[int, Receipt | Utterance]]
"""Answers and receipts of one turn, with their positions."""


class OriginFacts(msgspec.Struct, frozen=True, gc=False):
    """What decides how a receipt is hidden."""

    named: bool
    """It names its original."""
    repeats: bool
    """An answer of its turn is its original by content."""
    policy: Standalone


# fmt: off
STANDALONE: DecisionTable[Hiding] = DecisionTable("receipts in a prompt", OriginFacts, [
    #               named   repeats  policy
    Row("R16-named", (True,  ANY,     ANY),       "receipt",    "it names its original"),
    Row("R16-equal", (False, True,    ANY),       "receipt",    "its original is in the same turn"),
    Row("R17-hide",  (False, False,   "hide"),    "standalone", "delivered without an answer of the model; hidden"),
    Row("R17-show",  (False, False,   "context"), "context",    "delivered without an answer of the model; shown as context"),
], source="RULES-transcript R16, R17")
# fmt: on


def receipts_alone(path: Sequence[Item]) -> frozenset[int]:
    """Return the positions of the receipts that neither name an original nor repeat one of their turn.

    Linear: each turn is looked at once.
    """
    return frozenset(position for turn in _turns(path) for position in _alone_in(turn))


def _turns(path: Sequence[Item]) -> Iterator[Turn]:
    """Yield the answers and the nameless receipts of each turn that has one."""
    turn: Turn = []
    asked = False
    for position, item in enumerate(path):
        if isinstance(item, Utterance):
            if item.voice is Voice.ASSISTANT:
                turn.append((position, item))
            elif item.voice is Voice.USER:
                if asked:
                    yield turn
                turn, asked = [], False
        elif isinstance(item, Receipt) and not item.record.source_entry_id:
            asked = True
            turn.append((position, item))
    if asked:
        yield turn


def _alone_in(turn: Turn) -> Iterator[int]:
    """Yield the positions of a turn's receipts that have no original there."""
    sights = [shown(item.content) for _, item in turn]
    answers = [sight for sight, (_, item) in zip(sights, turn, strict=True) if isinstance(item, Utterance)]
    texts = {sight.text: True for sight in answers if sight.text}
    media = any(sight.display for sight in answers)
    chunks = _chunks(turn, sights)
    for index, (position, item) in enumerate(turn):
        if isinstance(item, Utterance):
            continue
        text = sights[index].text
        by_name = media and all(map(FILE_NAMES.fullmatch, text.split("\n")))
        if not (text in texts or chunks[index] or by_name):
            yield position


def _chunks(turn: Turn, sights: list[Shown]) -> list[bool]:
    """Mark the receipts that together are the nearest answer before or after their run."""
    marked = [False] * len(turn)
    start = 0
    while start < len(turn):
        end = start
        while end < len(turn) and isinstance(turn[end][1], Receipt):
            end += 1
        if end - start > 1:
            whole = squashed("".join(sight.text for sight in sights[start:end]))
            beside = [sights[i].text for i in (start - 1, end) if 0 <= i < len(turn)]
            covered = any(text and squashed(text) == whole for text in beside)
            marked[start:end] = [covered] * (end - start)
        start = end + 1
    return marked
