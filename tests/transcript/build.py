"""Entries as session files hold them, in few words, and random transcripts."""

import re
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st

from turnkeeper.engine.transcript.lines import Fields, dumps, loads

patient = settings(deadline=None)
"""The machine may be busy; how long one example takes is no property."""

SPENT: Fields = {"input": 9, "output": 4}
REWRITTEN: Fields = {"input": 3, "output": 3}
ZERO: Fields = {"input": 0, "output": 0}


def message(ident: str, role: str, content: object, **more: object) -> Fields:
    return {"type": "message", "id": ident, "message": {"role": role, "content": content, **more}}


def user(ident: str, text: object = "hello") -> Fields:
    return message(ident, "user", text)


def text(words: str) -> list[Fields]:
    return [{"type": "text", "text": words}]


def answer(ident: str, words: str = "answer", *blocks: Fields) -> Fields:
    content = [*text(words), *blocks]
    return message(ident, "assistant", content, provider="anthropic", model="claude", usage=SPENT)


def twin(ident: str, words: str = "answer") -> Fields:
    """A receipt whose marks are gone."""
    return message(ident, "assistant", text(words), usage=REWRITTEN)


def mirror(ident: str, words: str = "answer", key: str | None = None) -> Fields:
    """A receipt as OpenClaw writes it."""
    more: Fields = {} if key is None else {"idempotencyKey": key}
    return message(
        ident,
        "assistant",
        text(words),
        provider="openclaw",
        model="delivery-mirror",
        usage=ZERO,
        openclawDeliveryMirror={"kind": "channel-final"},
        **more,
    )


def ours(ident: str, key: str, words: str = "answer", **record: object) -> Fields:
    """A receipt as we write it."""
    return {
        **message(ident, "assistant", text(words), usage=ZERO),
        "receipt": {"key": key, "state": "sent", "at": 1000, **record},
    }


def call(ident: str, call_id: str, words: str = "") -> Fields:
    return answer(ident, words, {"type": "toolCall", "id": call_id, "name": "t"})


def result(ident: str, call_id: str) -> Fields:
    return message(ident, "toolResult", text("done"), toolCallId=call_id)


def custom(ident: str) -> Fields:
    return {"type": "custom", "id": ident, "customType": "cache-ttl", "data": {"n": 1}}


WORDS = ("x", "x\n", "[[reply_to_current]] x", "X", "one two", "one", "two", "onetwo", "NO_REPLY", "", "say again")


@st.composite
def sessions(draw: st.DrawFn, max_size: int = 14, *, one_key_each: bool = False) -> list[Fields]:
    """Draw a session: every kind of entry, few words so that repeats happen, and some explicit parents."""
    kinds = draw(st.lists(st.sampled_from(sorted(MAKERS)), max_size=max_size))
    entries: list[Fields] = []
    for number, kind in enumerate(kinds, start=1):
        entry = draw(MAKERS[kind](f"e{number}"))
        if one_key_each and kind == "receipt":
            entry = with_key(entry, f"key-e{number}")
        if entries and draw(st.integers(0, 9)) == 0:
            entry = {**entry, "parentId": draw(st.sampled_from(entries))["id"]}
        if draw(st.integers(0, 9)) == 0:
            entry = {**entry, "x-unknown": {"deep": [None, 1, 1.5, "é"]}}
        entries.append(entry)
    return entries


def with_key(entry: Fields, key: str) -> Fields:
    """The entry with another key, if it has one."""
    changed = loads(re.sub(rb'" ?k[123] ?"', f'"{key}"'.encode(), dumps(entry)))
    assert isinstance(changed, dict)
    return changed


def _answers(ident: str) -> st.SearchStrategy[Fields]:
    return st.sampled_from(WORDS).flatmap(
        lambda words: st.sampled_from(
            [
                answer(ident, words),
                answer(ident, words, {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}),
                answer(ident, words, {"type": "image", "data": "1"}),
                message(ident, "assistant", words, provider="p", model="m"),
            ]
        )
    )


def _twins(ident: str) -> st.SearchStrategy[Fields]:
    return st.sampled_from(WORDS).flatmap(
        lambda words: st.sampled_from([twin(ident, words), message(ident, "assistant", words)])
    )


def _receipts(ident: str) -> st.SearchStrategy[Fields]:
    keys = st.sampled_from(["k1", "k2", "k3", " k1 ", f"key-{ident}"])
    return st.tuples(st.sampled_from(WORDS), keys).flatmap(
        lambda drawn: st.sampled_from(
            [
                mirror(ident, drawn[0], drawn[1]),
                mirror(ident, drawn[0]),
                ours(ident, drawn[1], drawn[0], platform_ids=[f"p-{ident}"]),
                ours(ident, drawn[1], drawn[0], state="unknown"),
                message(ident, "assistant", text(drawn[0]), transcriptOnly=True, idempotencyKey=drawn[1]),
                message(ident, "assistant", text(drawn[0]), openclawDeliveryMirror={"kind": "later"}),
            ]
        )
    )


MAKERS: dict[str, Callable[[str], st.SearchStrategy[Fields]]] = {
    "user": lambda ident: st.sampled_from(["hello", "", "say again"]).map(lambda words: user(ident, words)),
    "answer": _answers,
    "twin": _twins,
    "receipt": _receipts,
    "call": lambda ident: st.sampled_from(["c1", "c2"]).map(lambda name: call(ident, name, "x")),
    "result": lambda ident: st.sampled_from(["c1", "c2"]).map(lambda name: result(ident, name)),
    "custom": lambda ident: st.just(custom(ident)),
    "system": lambda ident: st.just(message(ident, "system", "note")),
    "compaction": lambda ident: st.integers(1, 14).map(
        lambda n: {"type": "compaction", "id": ident, "summary": "s", "firstKeptEntryId": f"e{n}"}
    ),
    "leaf": lambda ident: st.integers(1, 14).map(
        lambda n: {"type": "leaf", "id": ident, "targetId": f"e{n}", "parentId": None}
    ),
}
