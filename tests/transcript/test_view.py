"""The view in close-up: runs of chunks with things between, marks, and the tables row by row."""

import itertools
from typing import get_args

import pytest

from tests.transcript.build import answer, call, custom, message, mirror, ours, result, text, twin, user
from turnkeeper.engine.config import TranscriptRules
from turnkeeper.engine.table import DecisionTable
from turnkeeper.engine.transcript import TABLES
from turnkeeper.engine.transcript.content import content_bytes, identical, shown
from turnkeeper.engine.transcript.entries import Entry, Prompted, Receipt, Summary, Utterance, read_entry
from turnkeeper.engine.transcript.lines import Fields, canonical
from turnkeeper.engine.transcript.merging import fuse, same_said
from turnkeeper.engine.transcript.repeats import Speech, speech_of
from turnkeeper.engine.transcript.view import REASONS, prompt_view

CONTEXT = TranscriptRules(standalone="context")


def path(*raws: Fields) -> list[Entry]:
    return [read_entry(raw) for raw in raws]


def ids(view_of: list[Entry], rules: TranscriptRules | None = None) -> list[str]:
    return [item.id for item in prompt_view(view_of, rules).messages]


def test_a_receipt_is_no_part_of_a_prompt_by_type() -> None:
    assert Receipt not in get_args(Prompted)
    assert Utterance in get_args(Prompted)


def test_an_unchanged_list_is_the_same_object() -> None:
    """R26: a prompt cache stays warm."""
    clean = path(user("u1"), answer("a1"), user("u2"))
    assert prompt_view(clean).messages is clean
    assert prompt_view(clean).report.result == "clean"
    assert prompt_view(tuple(clean)).messages == clean
    dirty = prompt_view(path(user("u1"), answer("a1"), mirror("r1")))
    assert dirty.report.result == "cleaned"
    assert tuple(dirty.report.counts) == REASONS


def test_chunks_with_empty_answers_and_context_lines_between() -> None:
    """What stands between chunks is kept in its order, whether they cover the answer or not."""
    covered = path(user("u1"), answer("a1", "one two three"), twin("p1", "one"), twin("e1", ""), mirror("r1", "note"),
                   twin("p2", "two"), twin("p3", "three"))  # fmt: skip
    assert ids(covered, CONTEXT) == ["u1", "a1", "e1", "r1"]
    failed = path(user("u1"), answer("a1", "one two three"), twin("p1", "one"), twin("e1", ""), mirror("r1", "note"),
                  twin("p2", "two"), twin("n1", "NO_REPLY"), user("u2"))  # fmt: skip
    assert ids(failed, CONTEXT) == ["u1", "a1", "p1", "e1", "r1", "p2", "n1", "u2"]


def test_a_run_that_fails_is_looked_at_again() -> None:
    """The first chunk becomes the prior: its own twin and its own chunks are found."""
    twins = path(user("u1"), answer("a1", "ha ha ho"), twin("p1", "ha"), twin("p2", "ha"), twin("p3", "stop"))
    assert ids(twins) == ["u1", "a1", "p1", "p3"]
    inner = path(
        user("u1"), answer("a1", "a b c"), twin("p1", "a b"), twin("p2", "a"), twin("p3", "b"), twin("p4", "d")
    )
    assert ids(inner) == ["u1", "a1", "p1", "p4"]
    doubled = path(user("u1"), answer("a1", "one two"), twin("p1", "one"), twin("p2", "one"), user("u2"))
    assert ids(doubled) == ["u1", "a1", "p1", "u2"]


def test_chunks_bring_the_media_of_the_answer_or_do_not_cover_it() -> None:
    image: Fields = {"type": "image", "data": "1"}
    with_media = answer("a1", "one two", image)
    last = message("p2", "assistant", [*text("two"), image])
    assert ids(path(user("u1"), with_media, twin("p1", "one"), last)) == ["u1", "a1"]
    assert ids(path(user("u1"), with_media, twin("p1", "one"), twin("p2", "two"))) == ["u1", "a1", "p1", "p2"]
    other = message("p2", "assistant", [*text("two"), {**image, "data": "2"}])
    assert ids(path(user("u1"), with_media, twin("p1", "one"), other)) == ["u1", "a1", "p1", "p2"]


def test_a_context_line_does_not_wait_for_a_result_that_never_comes() -> None:
    unanswered = path(
        user("u1"), call("t1", "c1"), mirror("r1", "note"), answer("a1"), mirror("r2", "note"), user("u2")
    )
    assert ids(unanswered, CONTEXT) == ["u1", "t1", "r1", "a1", "r2", "u2"]


def test_a_pile_of_overlapping_chunks_stays_linear() -> None:
    """Each prior takes up at most its own length. (The last three are 120, 80 and 40 long: an answer in two chunks.)"""
    pile = [answer("a0", "x" * 20_001), *(twin(f"p{n}", "x" * (20_000 - n)) for n in range(0, 20_000, 40))]
    entries = path(user("u1"), *pile)
    assert len(ids(entries)) == len(entries) - 2


@pytest.mark.parametrize(
    "raw",
    [
        message("a1", "assistant", "x", tool_calls={"id": 1}),
        message("a1", "assistant", ["x"], tool_calls=["?"]),
        answer("a1", "", {"type": "toolUse"}),
    ],
)
def test_a_tool_call_without_an_id_is_still_one(raw: Fields) -> None:
    entry = read_entry(raw)
    assert isinstance(entry, Utterance)
    assert entry.calls == ("",)
    assert speech_of(entry, shown(entry.content)) is Speech.TOOLS
    view = prompt_view([entry])
    assert (view.unpaired_calls, view.unpaired_results) == ([], [])


def test_contents_that_are_and_are_not_the_same() -> None:
    """E0: by value, null is absent, true is no number, lists keep their order; half an emoji compares too."""
    image = {"type": "image", "data": "1"}
    assert identical([{**image, "w": 1, "alt": None}], [{"w": 1.0, **image}])
    assert not identical([{**image, "w": 1}], [{**image, "w": True}])
    assert not identical([image, *text("x")], [*text("x"), image])
    assert identical([{**image, "n": "\ud83d"}], [{"n": "\ud83d", **image}])
    assert not identical("x", [*text("x"), image])
    assert identical("a", [*text("b")], redact=lambda _: "")
    assert not identical("a", [*text("a"), image], redact=str.upper)
    assert canonical({"b": 1, "a": None}) == canonical({"b": 1.0})


def test_visible_text() -> None:
    """Bare strings among blocks are text; thinking and tool calls are nothing to see; other things are."""
    content = [
        "a",
        {"type": "output_text", "text": "b"},
        {"type": "thinking"},
        {"type": "tool_use"},
        {"type": "text", "text": 5},
        7,
    ]
    sight = shown(content)
    assert (sight.text, len(sight.display)) == ("a\nb", 2)
    assert not shown(None)
    assert content_bytes("é") == content_bytes(["é"]) == 2


def test_marks_that_cannot_be_read() -> None:
    """R6 for our own record; the record wins over the mirror's fields where both stand."""
    odd = read_entry({**twin("r1"), "receipt": ["?"]})
    assert isinstance(odd, Utterance)
    assert odd.unsure
    assert isinstance(read_entry({**answer("a1"), "receipt": {}}), Utterance)
    both = read_entry(
        {**mirror("r2", key="k0"), "receipt": {"key": "k1", "part": [0, 9], "answers": [1, None], "at": 5}}
    )
    assert isinstance(both, Receipt)
    assert (both.record.key, both.record.part, both.record.answers, both.record.at) == ("k1", (1, 1), (1,), 5)
    lost_provider = read_entry(message("r3", "assistant", "x", model="delivery-mirror", provider=""))
    assert isinstance(lost_provider, Receipt)
    other_provider = read_entry(message("a4", "assistant", "x", model="delivery-mirror", provider="acme"))
    assert isinstance(other_provider, Utterance)
    assert other_provider.own
    by_response = read_entry(message("a5", "assistant", "x", provider="openclaw", responseId="resp_1"))
    assert isinstance(by_response, Utterance)
    assert by_response.own


def test_copies_that_say_the_same() -> None:
    """R31: kinds, roles, texts, summaries; lists that records were folded into are united."""
    cut: Fields = {"type": "compaction", "id": "c1", "summary": "s"}
    pairs: list[tuple[Fields, Fields, bool]] = [
        (custom("x1"), {**custom("x1"), "data": None}, True),
        (custom("x1"), {"type": "label", "id": "x1"}, False),
        (cut, {**cut, "summary": "t"}, False),
        (cut, {**cut, "details": 1}, True),
        (answer("a1", "x\n"), twin("a1", "x"), True),
        ({"role": "user", "content": "x", "id": "u1"}, user("u1", "x"), True),
    ]
    for one, other, same in pairs:
        assert same_said(read_entry(one), read_entry(other)) is same
    folded = fuse(
        [{**answer("a1"), "receipts": [{"key": "k1"}]}, {**twin("a1"), "receipts": [{"key": "k2"}, {"key": "k1"}]}]
    )
    assert folded["receipts"] == [{"key": "k1"}, {"key": "k2"}]
    flat = fuse(
        [
            {"role": "assistant", "id": "a1", "content": "x"},
            {"role": "assistant", "id": "a1", "content": "x", "usage": {"n": 1}},
        ]
    )
    assert flat == {"role": "assistant", "id": "a1", "content": "x", "usage": {"n": 1}}
    assert isinstance(read_entry({**cut, "firstKeptEntryId": 5}), Summary)


def test_our_record_is_written_as_the_rules_say() -> None:
    """RULES-transcript 1: the form of a receipt of ours."""
    entry = read_entry(
        ours("r1", "k1", route={"channel": "telegram", "chat": 100}, part=[2, 3], state="suppressed", reason="equal")
    )
    assert isinstance(entry, Receipt)
    assert str(entry.record.route) == "route:=telegram::=100:"
    assert (entry.record.part, entry.record.state, entry.record.reason) == ((2, 3), "suppressed", "equal")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_row_of_every_table_decides_something(table: DecisionTable[object]) -> None:
    """Row names are unique, every combination has a verdict, and every row is some combination's."""
    names = [row.name for row in table.rows]
    assert len(names) == len(dict.fromkeys(names))
    decided = {table.decide(table.facts(*values)).row for values in itertools.product(*table._domains)}
    assert decided == set(names)
    assert all(row.why for row in table.rows)


def test_a_silent_answer_is_no_base_for_chunks() -> None:
    assert ids(path(user("u1"), twin("n1", "NO_REPLY"), twin("p1", "NO_"), twin("p2", "REPLY"))) == [
        "u1",
        "n1",
        "p1",
        "p2",
    ]


def test_a_result_that_comes_twice_is_no_orphan() -> None:
    again = path(user("u1"), call("t1", "c1"), result("o1", "c1"), result("o2", "c1"), result("o3", "c9"))
    view = prompt_view(again)
    assert (view.unpaired_calls, view.unpaired_results) == ([], ["o3"])
