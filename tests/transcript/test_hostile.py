"""Files that nobody wrote in earnest: whatever stands in them, they are read, and nothing raises."""

from hypothesis import given
from hypothesis import strategies as st

from tests.transcript.build import patient
from turnkeeper.engine.config import TranscriptRules
from turnkeeper.engine.transcript import Receipt, prompt_view, read_session, unpack_session, write_session
from turnkeeper.engine.transcript.check import check_session, check_trajectory
from turnkeeper.engine.transcript.lines import dumps
from turnkeeper.engine.transcript.openclaw import pack_session

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["", "x", "e1", "e2", "a\r\nb", "[[reply_to:", "\ud83d"])
)
NESTED = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["type", "text", "id", "kind", "key", "route", "part", "platform_ids", "parentId", "thinkingSignature"]), inner,
    max_size=3), max_leaves=6)  # fmt: skip
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "Text", "thinking", "image", "tool_use", "toolCall", 5]) | SCALARS},
    optional={"text": SCALARS, "id": SCALARS, "thinking": SCALARS, "data": NESTED, "tool_use_id": SCALARS},
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "assistant", "assistant", "toolResult", "tool", "system", 7])},
    optional={
        "content": SCALARS | st.lists(BLOCKS | NESTED, max_size=3),
        "provider": st.sampled_from(["openclaw", "acme"]) | NESTED,
        "model": st.sampled_from(["delivery-mirror", "gpt"]) | NESTED,
        "usage": NESTED,
        "idempotencyKey": SCALARS,
        "openclawDeliveryMirror": NESTED | st.just({"kind": "channel-final"}),
        "transcriptOnly": SCALARS,
        "tool_calls": NESTED,
        "function_call": SCALARS,
        "toolCallId": SCALARS,
    },
)
IDS = st.sampled_from([f"e{n}" for n in range(6)])
ENTRIES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["message"] * 6 + ["custom", "custom_message", "compaction", "branch_summary", "leaf", "new", 5]
        )
    },
    optional={
        "id": IDS | SCALARS,
        "parentId": IDS | NESTED,
        "message": MESSAGES | NESTED,
        "content": NESTED,
        "receipt": NESTED,
        "receipts": NESTED,
        "aliases": NESTED,
        "summary": NESTED,
        "firstKeptEntryId": IDS | NESTED,
        "targetId": IDS | NESTED,
        "appendParentId": IDS | SCALARS,
        "appendMode": st.sampled_from(["side", "x"]) | SCALARS,
    },
)
LINES = st.lists(ENTRIES.map(dumps) | NESTED.map(dumps) | st.binary(max_size=8), max_size=10)
RULES = st.builds(
    TranscriptRules,
    fallback=st.sampled_from(["cover", "identical", "text"]),
    standalone=st.sampled_from(["hide", "context"]),
)


@patient
@given(LINES, RULES)
def test_whatever_a_session_file_holds(lines: list[bytes], rules: TranscriptRules) -> None:
    read = read_session([b'{"type":"session","version":3,"id":"s1"}', *lines])
    view = read.store.view(rules)
    assert not [item for item in view.messages if isinstance(item, Receipt)]
    assert prompt_view(view.messages, rules).messages is view.messages
    again = read_session(write_session(read.store))
    assert again.store.export() == read.store.export() == unpack_session(pack_session(read.store)).export()
    assert again.store.view(rules).ids == view.ids
    read.store.rebuild()
    assert read.store.view(rules).ids == view.ids
    assert check_session("s", lines, rules).view_pairs == 0


@patient
@given(LINES)
def test_whatever_a_merge_brings(lines: list[bytes]) -> None:
    """Merged into itself a session is what it was; a fork and a rotation show the same prompt."""
    store = read_session(lines).store
    view, size = store.view().ids, len(store)
    store.merge([{**entry.raw, "id": entry.id} for entry in store.entries])
    assert (store.view().ids, len(store)) == (view, size)
    assert store.fork("s2").view().ids == view
    store.rotate("s3")
    assert store.view().ids == view


@patient
@given(st.lists(st.lists(MESSAGES | NESTED, max_size=5) | NESTED, max_size=3))
def test_whatever_a_trajectory_holds(prompts: list[object]) -> None:
    lines = [dumps({"type": "prompt.submitted", "data": {"messages": messages}}) for messages in prompts]
    assert check_trajectory("t", lines).prompts == len(prompts)
