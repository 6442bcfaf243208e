"""When an assistant message repeats the one before it: two tables (RULES-transcript R18–R22, R29)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from turnkeeper.engine.table import ANY, DecisionTable, Row
from turnkeeper.engine.transcript.content import Redact, Shown, bears_thought, identical, is_silent, is_spent
from turnkeeper.engine.transcript.entries import Utterance, message_of

__all__ = [
    "ADJACENCY",
    "REPEATS",
    "Adjacency",
    "Fate",
    "Likeness",
    "Part",
    "PartFacts",
    "Reach",
    "RepeatFacts",
    "Speech",
    "likeness",
    "outranks",
    "speech_of",
]

Reach = Literal["cover", "identical", "text"]
"""How far the fallback goes: `transcript.fallback`."""


class Part(StrEnum):
    """What stands between two assistant messages."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool result"
    RENDERED = "system, developer or custom message"
    SUMMARY = "summary"
    BOUNDARY = "boundary"
    BOOKKEEPING = "bookkeeping"
    RECEIPT = "receipt"
    CONTEXT = "context line"


class Adjacency(StrEnum):
    """What a part does to the message in hand."""

    RESETS = "resets"
    TRANSPARENT = "transparent"
    SPEAKS = "speaks"


class PartFacts(msgspec.Struct, frozen=True, gc=False):
    """One column: the part."""

    part: Part


# fmt: off
ADJACENCY: DecisionTable[Adjacency] = DecisionTable("what ends adjacency", PartFacts, [
    Row("R19-user",     (Part.USER,),                    Adjacency.RESETS,      "every user entry, rendered or not"),
    Row("R19-rendered", ((Part.TOOL_RESULT, Part.RENDERED),), Adjacency.RESETS, "the model reads it between the two"),
    Row("R19-boundary", ((Part.SUMMARY, Part.BOUNDARY),), Adjacency.RESETS,     "a compaction or branch boundary"),
    Row("R19-state",    ((Part.BOOKKEEPING, Part.RECEIPT),), Adjacency.TRANSPARENT, "no prompt shows it"),
    Row("R17-context",  (Part.CONTEXT,),                 Adjacency.TRANSPARENT, "a receipt, whatever the policy shows of it"),
    Row("R18",          (Part.ASSISTANT,),               Adjacency.SPEAKS,      "compared with the last kept message"),
], source="RULES-transcript R17–R19")
# fmt: on


class Speech(StrEnum):
    """What kind of assistant message it is."""

    ANSWER = "answer"
    TOOLS = "tool call"
    EMPTY = "empty or silent"


class Likeness(StrEnum):
    """How far a message is the prior's (R21)."""

    IDENTICAL = "canonical content equal"
    TEXT = "visible text equal"
    COVERED = "one of chunks that cover it"
    NONE = "different"


Fate = Literal["kept", "e0", "e1", "e2"]
"""Kept, or the rung of the ladder that drops it."""


class RepeatFacts(msgspec.Struct, frozen=True, gc=False):
    """What decides whether an assistant message is dropped."""

    prior: bool
    """There is a last kept assistant message that is no tool call, and nothing between resets."""
    speech: Speech
    likeness: Likeness
    own: bool
    """It names the model that wrote it."""
    reach: Reach


# fmt: off
REPEATS: DecisionTable[Fate] = DecisionTable("repeats in a prompt", RepeatFacts, [
    #               prior  speech         likeness            own    reach
    Row("R20",     (ANY,   Speech.TOOLS,  ANY,                ANY,   ANY),               "kept", "it calls a tool"),
    Row("R29",     (ANY,   Speech.EMPTY,  ANY,                ANY,   ANY),               "kept", "nothing visible, or silent"),
    Row("R19",     (False, Speech.ANSWER, ANY,                ANY,   ANY),               "kept", "no answer right before it"),
    Row("R21-E0",  (True,  Speech.ANSWER, Likeness.IDENTICAL, ANY,   ANY),               "e0",   "same content as the message before"),
    Row("R21-own", (True,  Speech.ANSWER, ANY,                True,  ANY),               "kept", "a model wrote it, and not the same"),
    Row("R21-E1",  (True,  Speech.ANSWER, Likeness.TEXT,      False, ("text", "cover")), "e1",   "the message before shows its text"),
    Row("R21-E2",  (True,  Speech.ANSWER, Likeness.COVERED,   False, "cover"),           "e2",   "a chunk of the message before"),
    Row("R18",     (True,  Speech.ANSWER, ANY,                False, ANY),               "kept", "the message before does not show it"),
], source="RULES-transcript R18–R21, R29")
# fmt: on


def speech_of(message: Utterance, sight: Shown) -> Speech:
    """Tell what kind of assistant message it is."""
    if message.calls:
        return Speech.TOOLS
    silent = not sight.display and is_silent(sight.text)
    return Speech.ANSWER if sight and not silent else Speech.EMPTY


def likeness(
    prior: tuple[Utterance, Shown], later: tuple[Utterance, Shown], redact: Redact | None
) -> Literal[Likeness.IDENTICAL, Likeness.TEXT, Likeness.NONE]:
    """Place a message on the ladder's first two rungs (R21)."""
    (first, first_sight), (second, second_sight) = prior, later
    if first_sight != second_sight:
        # E0 implies that the visible parts are equal, and comparing those first is cheap.
        return Likeness.NONE
    if identical(first.content, second.content, redact):
        return Likeness.IDENTICAL
    return Likeness.TEXT


def outranks(later: Utterance, prior: Utterance) -> bool:
    """Tell whether a body has more provenance than another: the model's name, then thinking, then usage (R22)."""
    if later.own is not prior.own:
        return later.own
    if bears_thought(later.content) is not bears_thought(prior.content):
        return bears_thought(later.content)
    usages = [is_spent(message_of(message.raw).get("usage")) for message in (prior, later)]
    return usages == [False, True]
