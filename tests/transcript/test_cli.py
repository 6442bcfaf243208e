"""`turnkeeper transcript` as an operator meets it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.transcript.build import answer, message, mirror, text, twin, user
from tests.transcript.contaminated import contaminated
from turnkeeper.cli.transcript import transcript
from turnkeeper.engine.transcript.lines import Fields, dumps
from turnkeeper.engine.transcript.view import REASONS

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "openclaw-session.jsonl"
HEADER: Fields = {"type": "session", "version": 3, "id": "s1"}


def run(*args: str | Path, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(transcript, [str(arg) for arg in args], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def session(tmp_path: Path, *entries: Fields | bytes, name: str = "s.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(b"".join(one if isinstance(one, bytes) else dumps(one) + b"\n" for one in (HEADER, *entries)))
    return path


def test_the_example_gives_the_counts_that_its_writer_counted() -> None:
    """Every shape of an OpenClaw file, and a newcomer's first command."""
    counts = json.loads((EXAMPLES / "openclaw-session.counts.json").read_bytes())
    result = run("check", "--json", EXAMPLE)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    view, naive = report["view"], report["naive"]
    assert {
        "messages": report["messages"],
        "receipts": report["receipts"],
        "pairs": naive["pairs"],
        "leaked": naive["receipts"],
        **{name: len(report[name]) for name in ("damaged", "self_repeats", "undecidable", "unpaired")},
        **{reason: view[reason] for reason in REASONS if reason != "kept"},
    } == counts
    assert naive["chunks"] == view["e2"]
    assert view["kept"] == report["messages"] - sum(view[reason] for reason in REASONS if reason != "kept")
    assert (report["view_pairs"], report["contaminated"]) == (0, 1)


def test_the_example_is_what_its_script_writes() -> None:
    scope: dict[str, object] = {"__file__": str(EXAMPLES / "make_openclaw_session.py"), "__name__": "script"}
    exec((EXAMPLES / "make_openclaw_session.py").read_text(), scope)  # noqa: S102 - our own example
    lines, counts = scope["make"]()  # type: ignore[operator]
    assert EXAMPLE.read_text() == "\n".join(lines) + "\n"
    assert json.loads((EXAMPLES / "openclaw-session.counts.json").read_text()) == counts


def test_the_example_has_every_shape() -> None:
    entries = [json.loads(line) for line in EXAMPLE.read_bytes().splitlines() if b"torn" not in line]
    kinds = {entry["type"] for entry in entries}
    assert kinds == {
        "session", "message", "custom", "custom_message", "compaction", "branch_summary", "label", "session_info",
        "thinking_level_change", "model_change", "leaf",
    }  # fmt: skip
    assert {entry["message"]["role"] for entry in entries if "message" in entry} == {"user", "assistant", "toolResult"}
    assert any("parentId" not in entry for entry in entries[1:])


def test_check_reads_sessions_and_trajectories_and_adds_them_up(tmp_path: Path) -> None:
    made = contaminated()
    trajectory = tmp_path / "s.trajectory.jsonl"
    trajectory.write_bytes(b"\n".join(made.trajectory) + b"\n")
    clean = session(tmp_path, user("u1"), answer("a1"), mirror("r1"))
    result = run("check", clean, trajectory)
    assert result.exit_code == 1
    assert "108 of 323 prompts contaminated" in result.stdout
    assert "doubled pairs: 278, repeated chunks: 0, receipts: 0;" in result.stdout
    assert result.stdout.splitlines()[-5] == "sum"
    assert "108 of 324 prompts" in result.stdout
    objects = [json.loads(line) for line in run("check", "--json", clean, trajectory).stdout.splitlines()]
    assert [one["kind"] for one in objects] == ["session", "trajectory", "sum"]
    assert run("check", clean).exit_code == 0


def test_check_tells_everything_worth_a_look(tmp_path: Path) -> None:
    passage = "a passage that is long enough to count when an answer says it for the second time. "
    image: Fields = {"type": "image", "data": "1"}
    cut = dumps({"type": "prompt.submitted", "data": {}})
    path = session(
        tmp_path, user("u1"), answer("a1", f"{passage}\n\n{passage}"), b"{half\n", user("u2"),
        *[one for n in range(7) for one in (answer(f"i{n}", f"see {n}", image), twin(f"p{n}", f"p{n}.png"))],
        answer("t1", "", {"type": "toolCall", "id": "c1"}), {"type": "leaf", "id": "l1", "targetId": "gone"},
    )  # fmt: skip
    told = run("check", path).stdout
    assert "answers that repeat themselves (never dropped): 1 (a1)" in told
    assert "perhaps receipts of media, nobody can know: 7 (p0, p1, p2, p3, p4, …)" in told
    assert "tool calls or results without the other: 1 (t1)" in told
    assert "damaged: line 4: " in told
    assert "damaged: leaf entry 'l1'" in told
    assert "1 prompts whose messages the recording left out" in run("check", "-", stdin=cut).stdout


def test_view_shows_the_prompt_and_strikes_out_what_is_not_in_it(tmp_path: Path) -> None:
    path = session(
        tmp_path, user("u1"), answer("a1"), mirror("r1"), twin("t1"), user("u2", "hi \x1b[31mred"), {"type": "custom", "id": "x1"},
        answer("t2", "", {"type": "toolCall", "id": "c1"}, {"type": "image", "data": "1"}), user("u3", ""),
        {"type": "branch_summary", "id": "b1", "summary": "aside"}, b"{half\n",
    )  # fmt: skip
    result = CliRunner().invoke(transcript, ["view", str(path)], color=True)
    assert result.exit_code == 0
    assert "\x1b[2m\x1b[9m    answer" in result.stdout or "\x1b[9m" in result.stdout
    assert "receipt (R16-equal: its original is in the same turn)" in result.stdout
    assert "e0 (R21-E0: same content as the message before, shown by a1)" in result.stdout
    assert "\x1b[31m" not in result.stdout
    assert "[tool call c1]" in result.stdout
    assert "bytes that are no text]" in result.stdout
    assert "summary  b1" in result.stdout
    assert "5 kept, 1 receipt, 1 e0; 12 bytes kept out of the prompt" in result.stdout
    assert "line 11: " in result.stderr


def test_view_as_json(tmp_path: Path) -> None:
    note = message("r0", "assistant", text("a note"), deliveryMirror=True)
    cut: Fields = {"type": "compaction", "id": "c1", "summary": "s", "firstKeptEntryId": "r0"}
    path = session(tmp_path, user("u0"), cut, note, user("u1"), answer("a1"), twin("t1", "answer "))
    shown = json.loads(run("view", "--json", "--standalone", "context", "--fallback", "text", path).stdout)
    assert [one["id"] for one in shown["messages"]] == ["c1", "r0", "u1", "a1"]
    assert shown["messages"][0]["summary"] == "s"
    assert shown["messages"][1]["context"].endswith("a note")
    assert shown["messages"][3]["message"]["model"] == "claude"
    assert [(one["id"], one["reason"], one["shown_by"]) for one in shown["dropped"]] == [
        ("r0", "standalone", None),
        ("t1", "e1", "a1"),
    ]
    plain = run("view", "--standalone", "context", path).stdout
    assert "[delivered outside the conversation] a note" in plain


def test_lookup_says_what_is_known_and_its_exit_code_whether_it_may_be_sent(tmp_path: Path) -> None:
    path = session(tmp_path, user("u1"), answer("a1"), mirror("r1", key="k1"))
    found = run("lookup", path, "k1")
    assert (found.exit_code, found.stdout) == (0, "sent: a receipt has this key (R38-key-sent, entry r1)\n")
    none = run("lookup", path, "k2")
    assert (none.exit_code, none.stdout) == (1, "none: nothing records it: it may be sent (R39-none)\n")
    as_json = json.loads(run("lookup", "--json", path, "k1").stdout)
    assert (as_json["standing"], as_json["entry"]["id"]) == ("sent", "r1")
    assert json.loads(run("lookup", "--json", path, "k2").stdout)["entry"] is None


@pytest.mark.parametrize("command", [["view"], ["check"], ["lookup"]])
@pytest.mark.parametrize("content", [None, b"", b"no session at all\n", b"\x00\xff\n"])
def test_a_file_that_is_none_is_told_in_one_line(tmp_path: Path, command: list[str], content: bytes | None) -> None:
    path = tmp_path / "x.jsonl"
    if content is not None:
        path.write_bytes(content)
    result = run(*command, path, *(["k"] if command == ["lookup"] else []))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {path}: ")
    assert result.stderr.count("\n") == 1


def test_a_session_without_entries_is_an_empty_prompt(tmp_path: Path) -> None:
    path = session(tmp_path)
    assert run("view", path).stdout == "\nempty; 0 bytes kept out of the prompt\n"
    assert run("check", path).exit_code == 0
    assert run("lookup", path, "k1").exit_code == 1


def test_a_bar_is_drawn_on_a_terminal_only(tmp_path: Path) -> None:
    """On standard error, for long work, and never into what a program reads."""
    path = session(tmp_path, *[user(f"u{n}", "word " * 200) for n in range(5000)])
    command = [
        sys.executable,
        "-c",
        "from turnkeeper.cli.transcript import transcript; transcript()",
        "check",
        "--json",
        str(path),
    ]
    here, there = pty.openpty()
    with os.fdopen(there, "wb") as terminal:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=terminal, check=True)
    drawn = os.read(here, 1 << 16)
    os.close(here)
    assert b"reading" in drawn
    assert json.loads(done.stdout)["messages"] == 5000
    quiet = subprocess.run(command, capture_output=True, check=True)
    assert (quiet.stderr, quiet.stdout) == (b"", done.stdout)
