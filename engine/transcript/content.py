"""What a message says and shows: the measures that the equality ladder (RULES-transcript R21) compares.

Content is a string or a list of blocks, from many programs: `toolCall` and `tool_use`, `text` and
`output_text`. A block is text, thinking, a tool call, or something that is displayed (image, file, audio,
and every kind we do not know: a difference there is a difference the model can see).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from turnkeeper.engine.transcript.lines import Fields, canonical, dumps, size_bytes

__all__ = [
    "Redact",
    "Shown",
    "bears_thought",
    "calls_of",
    "content_bytes",
    "identical",
    "is_silent",
    "is_spent",
    "results_of",
    "shown",
    "squashed",
]

Redact = Callable[[str], str]
"""Applied to both sides before any comparison; must give the same text for the same text."""

TOOL_CALLS = ("toolcall", "tooluse", "functioncall", "servertooluse", "mcptooluse")
"""Block types of a tool call, lower-cased with `_` and `-` removed (R20)."""

TEXTS = ("text", "outputtext", "inputtext")
THOUGHTS = ("thinking", "redactedthinking", "reasoning")
SILENT = ("NO_REPLY", "HEARTBEAT_OK", "ANNOUNCE_SKIP", "REPLY_SKIP")
"""Texts by which an agent says that it says nothing (R29)."""

REPLY_TAG = re.compile(r"\[\[\s*reply_to(?:_current|\s*:[^\[\]\n]*)\s*\]\][ \t]*")
CALL_IDS = ("id", "toolCallId", "call_id", "tool_use_id")
RESULT_IDS = ("toolCallId", "tool_call_id", "tool_use_id", "call_id")


class Shown(msgspec.Struct, frozen=True, gc=False):
    """What of a message is visible: its text, and whatever else it displays."""

    text: str
    """Text blocks trimmed, reply tags cut, blank ones skipped, joined by a line feed (R21 E1)."""
    display: tuple[bytes, ...] = ()
    """The other displayed blocks in canonical form, sorted: a multiset."""

    def __bool__(self) -> bool:
        """Tell whether there is anything to see."""
        return bool(self.text or self.display)


def shown(content: object, redact: Redact | None = None) -> Shown:
    """Measure what of a content is visible."""
    plain = _plain(content)
    if plain is not None:
        return Shown(_visible(plain, redact))
    texts: list[str] = []
    display: list[bytes] = []
    for block in _blocks(content):
        text = block.get("text") if isinstance(block, dict) else block
        kind = _kind(block)
        if kind in TEXTS and isinstance(text, str):
            texts.append(_visible(text, redact))
        elif kind not in THOUGHTS and kind not in TOOL_CALLS:
            display.append(canonical(block))
    return Shown("\n".join(filter(None, texts)), tuple(sorted(display)))


def _visible(text: str, redact: Redact | None) -> str:
    if redact is not None:
        text = redact(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "[[" in text:
        text = REPLY_TAG.sub("", text)
    return text.strip()


def _blocks(content: object) -> list[object]:
    if isinstance(content, list):
        return content
    return [] if content is None else [content]


def _kind(block: object) -> str:
    """Name a block's type, lower-cased with `_` and `-` removed; a bare string is text."""
    kind = block.get("type") if isinstance(block, dict) else "text" if isinstance(block, str) else None
    if kind == "text":
        return kind
    return kind.lower().replace("_", "").replace("-", "") if isinstance(kind, str) else ""


def squashed(text: str) -> str:
    """Take all white space out of a text (R21 E2)."""
    return "".join(text.split())


def is_silent(text: str) -> bool:
    """Tell whether a visible text only says that nothing is said (R29)."""
    return len(text) <= max(map(len, SILENT)) and text.upper() in SILENT


def identical(one: object, other: object, redact: Redact | None = None) -> bool:
    """Decide R21 E0: canonical content equal, a string being one text block."""
    first, second = _plain(one), _plain(other)
    if first is not None and second is not None:
        return first == second if redact is None else redact(first) == redact(second)
    blocks, others = _redacted(one, redact), _redacted(other, redact)
    if isinstance(blocks, list) and isinstance(others, list) and len(blocks) != len(others):
        return False  # the usual case, a twin without the thinking block, is told without writing either
    return canonical(blocks) == canonical(others)


def _plain(content: object) -> str | None:
    """Return the text of a content that is nothing but one text, else None."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1:
        block = content[0]
        if isinstance(block, dict) and len(block) == 2 and block.get("type") == "text":  # noqa: PLR2004 - type, text
            text = block.get("text")
            return text if isinstance(text, str) else None
    return None


def _redacted(content: object, redact: Redact | None) -> object:
    """Bring a content into the form of blocks, its texts redacted."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if redact is None or not isinstance(content, list):
        return content
    return [_redacted_block(block, redact) for block in content]


def _redacted_block(block: object, redact: Redact) -> object:
    text = block.get("text") if isinstance(block, dict) else None
    return {**block, "text": redact(text)} if isinstance(block, dict) and isinstance(text, str) else block


def content_bytes(content: object) -> int:
    """Count what a content costs in a prompt: its texts in UTF-8, other blocks as JSON."""
    if isinstance(content, str):
        return size_bytes(content)
    total = 0
    for block in _blocks(content):
        text = block.get("text") if isinstance(block, dict) else block
        total += size_bytes(text) if _kind(block) in TEXTS and isinstance(text, str) else len(dumps(block))
    return total


def bears_thought(content: object) -> bool:
    """Tell whether a content has thinking or reasoning, or a signature of the model."""
    return any(_kind(block) in THOUGHTS or any("ignature" in key for key in block) for block in _dicts(content))


def is_spent(usage: object) -> bool:
    """Tell whether a usage counts anything."""
    return isinstance(usage, dict) and any(isinstance(count, int | float) and count for count in usage.values())


def calls_of(message: Fields) -> tuple[str, ...]:
    """List the tool calls a message bears, by id, `""` for one without; empty: it bears none (R20)."""
    content = message.get("content")
    found = [_id(block, CALL_IDS) for block in _typed(content) if _kind(block) in TOOL_CALLS]
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        found += [_id(call, CALL_IDS) for call in calls]
    elif calls:
        found.append("")
    if message.get("function_call"):
        found.append("")
    return tuple(found)


def results_of(message: Fields) -> tuple[str, ...]:
    """List the tool calls whose result a message brings, by id."""
    named = _id(message, RESULT_IDS)
    if named:
        return (named,)
    return tuple(_id(block, RESULT_IDS) for block in _typed(message.get("content")) if _kind(block) == "toolresult")


def _dicts(content: object) -> Iterator[Fields]:
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield block


def _typed(content: object) -> Iterator[Fields]:
    """Yield the blocks that are no plain text."""
    return (block for block in _dicts(content) if block.get("type") != "text")


def _id(fields: object, names: tuple[str, ...]) -> str:
    if isinstance(fields, dict):
        for name in names:
            value = fields.get(name)
            if isinstance(value, str | int) and value != "":
                return str(value)
    return ""
