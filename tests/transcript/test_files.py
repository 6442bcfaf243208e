"""Session files and trajectories: damaged, cut, odd, and what a reader still makes of them."""

import pytest

from tests.transcript.build import answer, call, message, mirror, result, text, twin, user
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.transcript.check import check_session, check_trajectory
from turnkeeper.engine.transcript.entries import ContextLine, Receipt, Row, Utterance, read_entry
from turnkeeper.engine.transcript.lines import DEPTH_MAX, Fields, dumps, loads, pack, size_bytes, unpack
from turnkeeper.engine.transcript.openclaw import (
    Damaged,
    is_trajectory,
    read_prompts,
    read_session,
    unpack_session,
    write_session,
)
from turnkeeper.engine.transcript.view import prompt_view

HEADER: Fields = {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-07-01T00:00:00.000Z", "cwd": "/"}


def lines(*entries: Fields | bytes) -> list[bytes]:
    return [entry if isinstance(entry, bytes) else dumps(entry) + b"\n" for entry in (HEADER, *entries)]


def test_damaged_lines_are_reported_with_their_number_and_the_rest_is_whole() -> None:
    """R36: no JSON, a torn end, no object, no id, two messages of one id, a second header; blank lines are none."""
    read = read_session(
        lines(
            user("u1"),
            b"{half\n",
            b"\n",
            b"[1]\n",
            {"type": "message"},
            {**answer("a1"), "parentId": "u1"},
            user("u1", "another"),
            HEADER,
            b'\xff\xfe{"a":1}\n',
            {**user("u2"), "parentId": "a1"},
            dumps(answer("a2"))[:-9],
        )
    )
    assert read.store.view().ids == ["u1", "a1", "u2"]
    assert [line.line for line in read.damaged] == [3, 5, 6, 8, 9, 10, 12]
    assert all(line.why for line in read.damaged)


def test_a_loss_in_the_middle_cuts_no_history_off() -> None:
    read = read_session(lines(user("u1"), answer("a1"), b"{damaged\n", {**user("u3"), "parentId": "u2"}))
    assert read.store.view().ids == ["u1", "a1", "u3"]


def test_a_file_without_a_header_and_one_of_a_newer_version_are_read_and_told() -> None:
    bare = read_session([dumps(user("u1"))])
    assert (bare.store.view().ids, bare.damaged[0].line) == (["u1"], 1)
    newer = read_session([dumps({**HEADER, "version": 4}), dumps(user("u1"))])
    assert newer.store.view().ids == ["u1"]
    assert "version 4" in newer.damaged[0].why
    assert read_session([]).store.view().ids == []


def test_entries_of_old_files() -> None:
    """Version 1: no ids, no parents; flat messages."""
    read = read_session([b'{"type":"session","id":"s0"}', b'{"role":"user","content":"hi"}', *lines(answer("a1"))[1:]])
    assert read.store.view().ids == ["entry-1", "a1"]
    assert not read.damaged


def test_a_leaf_that_names_nothing_is_told() -> None:
    read = read_session(lines(user("u1"), {"type": "leaf", "id": "l1", "targetId": "gone", "parentId": "u1"}))
    assert read.store.view().ids == ["u1"]
    assert read.damaged == [Damaged(0, "leaf entry 'l1' names an entry that is not there; the leaf stays")]


def test_a_leaf_may_go_to_the_beginning() -> None:
    start: Fields = {"type": "leaf", "id": "l1", "targetId": None, "parentId": "a1"}
    assert read_session(lines(user("u1"), answer("a1"), start)).store.view().ids == []
    assert read_session(lines(user("u1"), answer("a1"), start, user("u2"))).store.view().ids == ["u2"]


def test_a_leaf_with_its_own_place_to_append() -> None:
    """Physically below plugin metadata, logically on the chosen branch."""
    leaf: Fields = {"type": "leaf", "id": "l1", "parentId": "a2", "targetId": "a1", "appendParentId": "x9"}
    entries = [user("u1"), answer("a1"), user("u2"), answer("a2"), leaf, {**user("u3"), "parentId": "x9"}]
    assert read_session(lines(*entries)).store.view().ids == ["u1", "a1", "u3"]
    none: Fields = {**leaf, "appendParentId": None}
    assert read_session(lines(*entries[:4], none, {**user("u3"), "parentId": None})).store.view().ids == [
        "u1",
        "a1",
        "u3",
    ]


def test_a_leaf_on_a_receipt_is_walked_through() -> None:
    leaf: Fields = {"type": "leaf", "id": "l1", "parentId": "u2", "targetId": "r1"}
    read = read_session(lines(user("u1"), answer("a1"), mirror("r1"), user("u2"), leaf))
    assert (read.store.leaf, read.store.view().ids) == ("a1", ["u1", "a1"])
    only = read_session(lines(mirror("r1"), {**leaf, "parentId": "r1"}))
    assert (only.store.leaf, only.store.view().ids) == (None, [])


def test_parents_in_a_ring_end_somewhere() -> None:
    ring = [{**user("u1"), "parentId": "u2"}, {**user("u2"), "parentId": "u1"}]
    assert read_session(lines(*ring)).store.view().ids == ["u1", "u2"]


def test_a_compaction_whose_first_kept_is_a_receipt_or_nowhere() -> None:
    cut: Fields = {"type": "compaction", "id": "c1", "summary": "s", "firstKeptEntryId": "r1"}
    entries = [user("u1"), answer("a1"), mirror("r1"), user("u2"), cut, answer("a2")]
    assert read_session(lines(*entries)).store.view().ids == ["u2", "a2"]
    assert read_session(lines(*entries[:4], {**cut, "firstKeptEntryId": "gone"}, answer("a2"))).store.view().ids == [
        "a2"
    ]
    assert read_session(lines(mirror("r1"), user("u2"), cut)).store.view().ids == ["u2"]


def test_an_older_compaction_inside_the_kept_part_is_a_boundary_only() -> None:
    old: Fields = {"type": "compaction", "id": "c1", "summary": "old", "firstKeptEntryId": "u2"}
    new: Fields = {
        "type": "compaction",
        "id": "c2",
        "summary": [{"type": "text", "text": "new"}],
        "firstKeptEntryId": "a2",
    }
    store = read_session(lines(user("u1"), user("u2"), answer("a2"), old, twin("t2"), new, twin("t3"))).store
    view = store.view()
    assert view.ids == ["a2", "t2", "t3"]
    assert [getattr(item, "text", None) for item in view.messages if not isinstance(item, Utterance)] == [
        "new",
        None,
        None,
    ]
    assert prompt_view(view.messages).messages is view.messages


def test_what_is_written_is_what_was_read() -> None:
    """Unknown fields, big integers, floats, half an emoji; in memory and on the line."""
    odd: Fields = {**user("u1", "\ud83d cut"), "big": 10**30, "float": 1.5, "nested": {"a": [None, {}]}, "z": None}
    read = read_session(lines(odd))
    assert read.store.export() == [odd]
    written = list(write_session(read.store))
    assert [loads(line) for line in written] == [HEADER, odd]
    assert unpack(pack(odd)) == odd
    with pytest.raises(DecodeError, match="msgpack"):
        unpack(b"\xc1")
    assert size_bytes("\ud83d") == 3


@pytest.mark.parametrize("line", [b'{"a": NaN}', b'{"a": 1e999}', b"{", b'"\xff"', b"[" * 5000 + b"]" * 5000])
def test_what_json_does_not_allow_is_damaged(line: bytes) -> None:
    with pytest.raises(DecodeError):
        loads(line)


def test_depth_is_bounded_and_braces_in_texts_are_none() -> None:
    deep = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX
    assert loads(deep) is not None
    with pytest.raises(DecodeError, match="deeper"):
        loads(b"[" + deep + b"]")
    assert loads(b'"' + b"[" * 500 + b'\\"[["') == "[" * 500 + '"[['


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x90", b"\x91\xc4\x01\x01", b"\x91\xc4\x03\xd4\x05\x00"]
)
def test_what_is_no_packed_session(data: bytes) -> None:
    with pytest.raises(DecodeError):
        unpack_session(data)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (5, "JSON object"),
        ({"type": "message"}, "id"),
        ({"id": "x", "type": 5}, "type"),
        ({"id": "x", "type": "message"}, "role"),
    ],
)
def test_an_entry_that_is_none_says_what_is_missing(raw: object, told: str) -> None:
    with pytest.raises(DecodeError, match=told):
        read_entry(raw)


def test_rows_nobody_knows_are_kept_and_shown_to_nobody() -> None:
    row = read_entry({"id": 7, "type": "plugin-state"})
    assert isinstance(row, Row)
    assert row.id == "7"


def submitted(*messages: object, **data: object) -> bytes:
    return dumps(
        {"traceSchema": "openclaw-trajectory", "type": "prompt.submitted", "data": {"messages": list(messages), **data}}
    )


def said(entry: Fields) -> object:
    return entry["message"]


def test_a_trajectory_is_told_from_a_session() -> None:
    assert is_trajectory(submitted())
    assert is_trajectory(dumps({"traceSchema": "openclaw-trajectory", "type": "session.started"}))
    assert not is_trajectory(dumps(HEADER))
    assert not is_trajectory(b"{half")


def test_what_a_trajectory_left_out_is_told_and_what_it_cut_takes_part_in_nothing() -> None:
    long = {"truncated": True, "reason": "trajectory-field-size-limit", "originalChars": 40000}
    cut = message("a", "assistant", [{"type": "text", "text": long}])
    trajectory = [
        dumps({"type": "session.started", "traceSchema": "openclaw-trajectory"}),
        dumps({"type": "prompt.submitted", "data": {"prompt": "no messages"}}),
        dumps({"type": "prompt.submitted", "data": None}),
        submitted(said(cut), said(cut), {"truncated": True}, 5),
        submitted(said(user("u")), said(answer("a")), said(mirror("r")), said(user("u"))),
        b'{"prompt.submitted": half\n',
        b"{half",
        b"\n",
        dumps({"type": "other", "data": "prompt.submitted"}),
    ]
    report = check_trajectory("t", trajectory)
    assert (report.prompts, report.unrecorded, report.contaminated) == (4, 3, 1)
    assert (report.naive.receipts, report.naive.pairs, report.view["receipt"]) == (1, 1, 1)
    assert [line.line for line in report.damaged] == [6, 7]
    assert [len(prompt.messages) for prompt in read_prompts(trajectory, [])] == [0, 0, 4, 4]


def test_a_session_is_measured() -> None:
    """Leaked receipts, chunks, a repeated answer, unpaired tools, and what nobody can know (V28)."""
    kind_only = mirror("r1")
    inner = said(kind_only)
    assert isinstance(inner, dict)
    kind_only["message"] = {name: value for name, value in inner.items() if name not in {"provider", "model"}}
    passage = "a passage that is long enough to count when an answer says it for the second time. "
    report = check_session(
        "s",
        lines(
            user("u1"), answer("a1"), kind_only,
            user("u2"), answer("a2", "one two"), twin("p1", "one"), twin("p2", "two"),
            user("u3"), answer("a3", passage + "\n\n" + passage),
            user("u4"), answer("a4", "here", {"type": "image", "data": "1"}), twin("t4", "pic.png"),
            user("u5"), call("t5", "c5"), user("u6"), result("o6", "c6"), mirror("r6", "a proactive note", "k6"),
        ),
    )  # fmt: skip
    naive = report.naive
    assert (naive.receipts, naive.pairs, naive.chunks) == (1, 1, 2)
    assert (report.view["receipt"], report.view["standalone"], report.view["e2"]) == (1, 1, 2)
    assert (report.self_repeats, report.undecidable, report.unpaired) == (["a3"], ["t4"], ["t5", "o6"])
    assert (report.receipts, report.view_pairs, report.contaminated) == (2, 0, 1)


def test_a_context_line_waits_for_a_tool_result_and_is_shown_once_a_key() -> None:
    """R15, R17: a call and its result stay neighbours; a suppressed or empty receipt shows nothing."""
    from turnkeeper.engine.config import TranscriptRules

    suppressed: Fields = {**message("r4", "assistant", text("hidden")), "receipt": {"key": "k4", "state": "suppressed"}}
    unknown: Fields = {**message("r5", "assistant", text("perhaps")), "receipt": {"key": "k5", "state": "unknown"}}
    store = read_session(
        lines(
            user("u1"), call("t1", "c1"), mirror("r1", "a note", "k1"), result("o1", "c1"), mirror("r2", "a note", "k1"),
            mirror("r3", "", "k3"), suppressed, unknown, answer("a1"),
        )
    ).store  # fmt: skip
    view = store.view(TranscriptRules(standalone="context"))
    assert [item.id for item in view.messages] == ["u1", "t1", "o1", "r1", "r5", "a1"]
    assert [item.text for item in view.messages if isinstance(item, ContextLine)] == [
        "[delivered outside the conversation] a note",
        "[perhaps delivered outside the conversation] perhaps",
    ]
    assert not [item for item in view.messages if isinstance(item, Receipt)]


def test_redaction_is_applied_to_both_sides() -> None:
    """R21: the store has the secret, the mirror was written redacted."""
    store = read_session(lines(user("u1"), answer("a1", "key sk-1 here"), twin("t1", "key *** here"))).store
    assert store.view().ids == ["u1", "a1", "t1"]
    view = store.view(redact=lambda words: words.replace("sk-1", "***"))
    assert view.ids == ["u1", "a1"]
    assert view.report.counts["e0"] == 1
    with_image = read_session(
        lines(
            user("u1"),
            answer("a1", "sk-1", {"type": "image", "data": "1"}),
            answer("a2", "***", {"type": "image", "data": "1"}),
        )
    ).store
    assert with_image.view(redact=lambda words: words.replace("sk-1", "***")).ids == ["u1", "a1"]
