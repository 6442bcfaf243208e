"""What the pages for hosts and operators say is true: names, links, tables, and what the engine does."""

import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from turnkeeper.engine import commands, events, signals
from turnkeeper.engine.cell import Cell, Run
from turnkeeper.engine.chat.tables import ATTRIBUTION
from turnkeeper.engine.commands import Outcome
from turnkeeper.engine.config import Config, as_policy, load_config
from turnkeeper.engine.ids import ChannelRef
from turnkeeper.engine.journal import Body, HandedBody
from turnkeeper.metrics import catalogue

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("REPLIES.md", "EMBEDDING.md", "METRICS.md", "CONFIG.md")
TEXT = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES}
EVENTS = {kind.__struct_config__.tag: kind for kind in get_args(events.Event)}
COMMANDS = {kind.__struct_config__.tag: kind for kind in get_args(commands.Command)}
SIGNALS = {kind.__struct_config__.tag for kind in get_args(signals.Signal)}
ROOM = ChannelRef("tg", "100")


def table_after(page: str, header: str) -> list[list[str]]:
    """Read the cells of the table with this header."""
    lines = TEXT[page].partition(header)[2].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    assert rows, header
    return rows


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT[page]):
        file, _, part = target.partition("#")
        path = (ROOT / "docs" / file) if file else (ROOT / "docs" / page)
        assert path.exists(), target
        if part:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert part in {anchor(heading) for heading in headings}, target


@pytest.mark.parametrize("page", PAGES)
def test_settings_metrics_and_signals_exist(page: str) -> None:
    sections = {f.name: f.type.__struct_fields__ for f in msgspec.structs.fields(Config)}
    for section, key in re.findall(r"`(\w+)\.(\w+)(?: = [^`]*)?`", TEXT[page]):
        if section in sections:
            assert key in sections[section], f"{section}.{key}"
    known = {f"{family.name}_total" for family in catalogue.COUNTERS}
    known |= {family.name for family in (*catalogue.GAUGES, *catalogue.HISTOGRAMS)}
    for name in re.findall(r"`(?:turnkeeper_)?(\w+_(?:total|seconds))\b", TEXT[page]):
        assert name in known, name
    for name in re.findall(r"signal `(\w+)`", TEXT[page]):
        assert name in SIGNALS, name


@pytest.mark.parametrize("page", ["REPLIES.md", "EMBEDDING.md"])
def test_diagrams_are_closed(page: str) -> None:
    diagrams = re.findall(r"```mermaid\n(.*?)```", TEXT[page], re.DOTALL)
    assert diagrams
    for diagram in diagrams:
        lines = [line.strip() for line in diagram.splitlines()]
        assert lines[0] == "sequenceDiagram"
        named = {line.split()[1] for line in lines if line.startswith(("participant", "actor"))}
        assert sum(line.startswith("alt ") for line in lines) == lines.count("end")
        for line in lines:
            if arrow := re.match(r"(\w+)-?->>(\w+): .", line):
                assert set(arrow.groups()) <= named, line
            else:
                assert line.startswith(("sequenceDiagram", "participant", "actor", "Note over ", "alt ", "else", "end"))


def test_every_outcome_is_explained_once() -> None:
    rows = table_after("REPLIES.md", "| outcome | what happened |")
    assert [row[0].strip("`") for row in rows] == [
        "final-reply", "fallback", "consumed", "consumed-rescue", "interim-noop", "interim-rescue", "reply-rescue",
        "undelivered", "silent", "refused", "failed", "interrupted", "lost", "expired",
    ]  # fmt: skip
    assert {row[0].strip("`") for row in rows} == set(get_args(Outcome))


def test_every_row_of_ownership_is_explained() -> None:
    said = {
        name
        for row in table_after("REPLIES.md", "| row | the model wrote |")
        for name in re.findall(r"`([a-z-]+)`", row[0])
    }
    assert said - {"late"} == {row.name for row in ATTRIBUTION.rows}


def test_names_used_elsewhere() -> None:
    """The map that operators come from, copied."""
    rows = {row[0]: row[1] for row in table_after("REPLIES.md", "| there | here |")}
    assert {there.strip("`"): re.findall(r"`(\w+)`", here)[0] for there, here in rows.items()} == {
        "cli-fold-reply-attributed": "fold_reply_attributed",
        "cli-late-reply-correlated": "late_reply_correlated",
        "channels-orphan-reply-dropped": "orphan_reply_unattributed",
        "stream-preview-turn-mismatch": "preview_turn_mismatch",
        "cli-turn-resolved-by-stop": "turn_resolved_by_stop",
        "cli-consumed-ack-fallback-rescued": "consumed_ack_fallback_rescued",
        "turn-timeout": "expired",
    }


def test_the_reply_tools_schema_has_the_models_fields() -> None:
    schema = json.loads(re.findall(r"```json\n(.*?)```", TEXT["EMBEDDING.md"], re.DOTALL)[0])
    hosts = {"chat", "call_id", "reply_in"}
    assert set(schema["input_schema"]["properties"]) == set(events.Reply.__struct_fields__) - hosts
    assert "IS YOUR FINAL ANSWER" in schema["description"]


def test_the_duties_are_numbered_and_name_real_things() -> None:
    duties = TEXT["EMBEDDING.md"].partition("## The duties")[2].partition("\n## ")[0]
    assert [int(n) for n in re.findall(r"^\*\*(\d+)\. ", duties, re.MULTILINE)] == list(range(1, 21))
    known = set(EVENTS) | set(COMMANDS) | SIGNALS
    for name in re.findall(r"post `(\w+)`|`(\w+)` when", duties):
        word = name[0] or name[1]
        assert word in known, word


def test_every_command_is_spoken_of() -> None:
    spoken = set(re.findall(r"[`(](\w+)[`( ,)]", TEXT["EMBEDDING.md"].lower()))
    assert set(COMMANDS) <= spoken


def test_every_error_of_an_ack_is_explained() -> None:
    said = {row[0].strip("`") for row in table_after("EMBEDDING.md", "| `error` | means |")}
    assert said == {
        "nothing to send", "bad arguments: <field>", "call id used with other arguments", "chat_id mismatch",
        "rate limit", "no channel", "delivery failed: <reason>", "unknown",
    }  # fmt: skip


class Desk:
    """A cell with one operation at the platform."""

    def __init__(self) -> None:
        self.cell = Cell(paranoid=True)
        config = load_config({"delivery": {"jitter_percent": 0}})
        self.cell.apply(Body(configured=as_policy(config)), 0, 0)
        self.now_ms = 1
        self.seq = 0
        self.run(Body(event=events.TurnOpened("c1", "P", channel=ROOM, message=6406)))

    def run(self, body: Body) -> Run:
        self.seq += 1
        return self.cell.apply(body, self.now_ms, self.seq)

    def sent(self, run: Run) -> commands.Send | commands.Edit:
        """Hand over the one operation that was commanded."""
        (out,) = (command for command in run.commands if isinstance(command, commands.Send | commands.Edit))
        assert self.run(Body(handed=HandedBody(out.id, out.delivery, out.attempt))).go
        return out

    def wait(self) -> tuple[int, Run]:
        """Let the next deadline come; return how long that took, and what came of it."""
        due_ms = self.cell.next_due_ms()
        assert due_ms is not None
        waited_ms, self.now_ms = due_ms - self.now_ms, due_ms
        body = self.cell.take_due(due_ms)
        assert body is not None
        return waited_ms, self.run(body)


def what_followed(desk: Desk, run: Run) -> str:
    """Say what came of a settlement: the agent's answer, or another attempt, at once or later."""
    waited_ms = 0
    if not run.commands:
        waited_ms, run = desk.wait()
    for command in run.commands:
        if isinstance(command, commands.Ack):
            return "ok" if command.ok else str(command.error)
    out = desk.sent(run)
    assert out.attempt == 2
    words = [f"again after {waited_ms} ms", out.format]
    if isinstance(out, commands.Send):
        words += ["quoting"] if out.quote == 6406 else []
        words += [f"from part {out.resume_part}"] if out.resume_part else []
    return ", ".join(words)


FOLLOWS = {
    "done": "ok",
    "takes it as sent": "ok",
    "gives up at once": "delivery failed: no reason given",
    "asks `reconcile` if you have it": "unknown",
    'sends it once more with `format="plain"`': "again after 0 ms, plain, quoting",
    "sends it once more without the quote": "again after 0 ms, rich",
    "holds the channel for 3 s": "again after 3000 ms, rich, quoting",
    "retries after 1": "again after 1000 ms, rich, quoting",
    "resumes at part 2 (`resume_part`)": "again after 1000 ms, rich, from part 2",
}
"""The beginning of the last cell → what comes of it, in a run."""
PLATFORM = table_after("EMBEDDING.md", "| the platform | `Settled(…)` |")


@pytest.mark.parametrize(("said", "settled", "then"), PLATFORM, ids=[row[0] for row in PLATFORM])
def test_what_a_platform_says_does_what_the_table_says(said: str, settled: str, then: str) -> None:
    """Each row, run: the settlement as it is written there, and what follows."""
    desk = Desk()
    call: events.Event = events.Reply("c1", "k1", turn_id="P", text="hi")
    if "(edit)" in said:
        call = events.Edit("c1", "k1", message=9001, text="hi", turn_id="P")
    out = desk.sent(desk.run(Body(event=call)))
    fields = eval(f"dict({settled.strip('`')})")  # noqa: S307 - the page's own words
    run = desk.run(Body(event=events.Settled("c1", out.delivery, channel=ROOM, **fields)))
    assert what_followed(desk, run) == FOLLOWS[re.split("[,;]", then)[0]]
