"""The scenario files, and what the runner says of files that are none."""

from pathlib import Path

import pytest

from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.lab.transcripts import read_lines, run_transcript, run_transcript_file
from turnkeeper.engine.transcript.lines import dumps

FILES = sorted(
    path
    for path in (Path(__file__).parents[1] / "scenarios").glob("*.jsonl")
    if path.read_bytes().startswith(b'{"transcript"')
)

VECTORS = (
    *(
        f"v{n:02}"
        for n in (1, 2, 3, 4, 5, 7, 9, 11, 12, 13, 14, 15, 18, 19, 20, 23, 24, 26, 27, 28, 29, 31, 32, 35, 37)
    ),
    *("v38", "v39", "v40", "l01", "l03", "l04", "l05", "l07", "l08", "l09", "l11", "l12"),
)

USER = {"entry": {"id": "u1", "type": "message", "message": {"role": "user", "content": "hello"}}}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    outcome = run_transcript_file(path)
    assert outcome.mismatch is None, f"{path.name}:{outcome.mismatch.line}: {outcome.mismatch}"
    assert outcome.passed


@pytest.mark.parametrize("vector", VECTORS)
def test_every_vector_of_the_rules_is_a_file(vector: str) -> None:
    assert [path for path in FILES if path.stem.startswith(f"{vector}-")]


def scenario(*steps: object) -> list[tuple[int, dict[str, object]]]:
    return read_lines([dumps(step) for step in ({"transcript": "t", "source": "s"}, USER, *steps)])


@pytest.mark.parametrize(
    ("step", "expected", "actual"),
    [
        ({"view": ["u2"]}, ["u2"], ["u1"]),
        ({"view": ["u1"], "report": {"receipt": 1}}, {"report": {"receipt": 1}}, {"report": {"receipt": 0}}),
        ({"lookup": {"key": "k"}, "is": "sent"}, "sent", "none"),
        ({"store": {"entries": 2, "receipts": 0}}, {"entries": 2, "receipts": 0}, {"entries": 1, "receipts": 0}),
        ({"op": "append", "receipt": {"key": "k"}, "is": "same"}, "same", "appended"),
        ({"op": "rebuild", "is": "rejected"}, "rejected", "rebuilt"),
    ],
)
def test_a_mismatch_names_line_expected_and_actual(step: object, expected: object, actual: object) -> None:
    outcome = run_transcript(scenario(step))
    assert outcome.mismatch is not None
    assert (outcome.mismatch.line, outcome.mismatch.expected, outcome.mismatch.actual) == (3, expected, actual)


def test_an_operation_that_is_refused_without_being_expected_to_is_a_mismatch() -> None:
    outcome = run_transcript(scenario({"op": "compact", "first_kept": "u9", "summary": ""}))
    assert outcome.mismatch is not None
    assert "u9" in str(outcome.mismatch.actual)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ({"entri": {}}, "no step 'entri'"),
        ({"entry": 5}, '"entry" is a JSON object'),
        ({"entry": {"id": "x"}}, 'has no "type"'),
        ({"entry": {"id": "u1", "type": "message", "message": {"role": "user", "content": "other"}}}, "another role"),
        ({"op": "undo"}, "no op 'undo'"),
        ({"op": "merge", "entries": 5}, '"entries"'),
        ({"op": "append", "receipt": {"message": {"role": "user"}, "id": "x"}}, "no mark"),
        ({"view": ["u1"], "report": {"recv": 1}}, '"report" maps'),
        ({"lookup": {"kee": 1}, "is": "none"}, "no lookup by 'kee'"),
        ({"lookup": {"part": "x"}, "is": "none"}, "Expected"),
        ({"store": {"lines": 1}}, '"store" counts'),
    ],
)
def test_a_step_that_is_none_is_an_error_of_the_file(step: object, told: str) -> None:
    with pytest.raises(DecodeError, match=r"^line 3: ") as caught:
        run_transcript(scenario(step))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "line 1: a transcript scenario begins with"),
        (b'{"scenario": "other"}\n', "line 1: a transcript scenario begins with"),
        (b'{"transcript": "t"}\n{', "line 2: "),
        (b'{"transcript": "t"}\n[]', "line 2: a step is a JSON object"),
        (b'{"transcript": "t", "config": {"transcript": {"fallback": "all"}}}\n', "config.transcript"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(DecodeError) as caught:
        run_transcript_file(path)
    assert str(caught.value).startswith(str(path))
    assert told in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="cannot be read"):
        run_transcript_file(tmp_path / "none.jsonl")


def test_blank_lines_are_none_and_an_append_may_bring_a_whole_entry() -> None:
    entry = {"id": "r1", "type": "message", "message": {"role": "assistant", "content": "x", "deliveryMirror": 1}}
    steps = [{"op": "append", "receipt": entry, "is": "appended"}, {"store": {"receipts": 1}}, {"#": "a comment"}]
    lines = [dumps({"transcript": "t"}), b"", *map(dumps, steps), b" "]
    assert run_transcript(read_lines(lines)).passed
