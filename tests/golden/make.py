"""Make the golden journal of the current schema, once: `python -m tests.golden.make`."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import msgspec

from turnkeeper.actors.history import History
from turnkeeper.actors.runtime import SqliteRuntime
from turnkeeper.engine.codec import SCHEMA
from turnkeeper.engine.lab.runner import ScenarioRunner
from turnkeeper.engine.lab.scenario import read_scenario

HERE = Path(__file__).parent
STORY = """{"scenario": "a bit of everything that a journal can hold", "config": {"delivery": {"retries": 1}}}
{"chat_opened": {"home": "tg/1"}}
{"inbound": {"channel": "dc/C1", "message": "m1", "event_id": "e1", "addressed": true, "text": "Grüße \\ud83d\\ude00"}}
{"accepted": {"server": "dc", "event_id": "e1"}}
{"turn_opened": {"turn_id": "P", "message": 6406}}
{"input_seen": {"turn_id": "P"}}
{"input_folded": {"turn_id": "F", "source": "autosteer", "message": 6407}}
{"preview": {"turn_id": "P", "text": "Both are"}}
{"reply": {"call_id": "k1", "turn_id": "F", "consumed_turn_ids": ["P", "F"], "text": "Both are done.", "files": ["a.png"]}}
{"edit": {"call_id": "k2", "message": 9001, "turn_id": "P", "text": "Both are done!"}}
{"stopped": {"text": "In short: done."}}
{"advance": 2000}
{"crash": true, "down_ms": 500, "reconcile": {}}
{"turn_opened": {"turn_id": "Q", "channel": {"server": "dc", "id": "C 2", "thread": "t/1"}, "message": "6408", "chat": "c2"}}
{"reply": {"call_id": "k1", "turn_id": "Q", "text": "On its way", "chat": "c2"}, "deliver": "hold"}
{"reload": {"timers": {"stop_grace_ms": 50}}}
{"turn_opened": {"turn_id": "R", "message": 6409}}
{"stopped": {"text": "Closing words", "turn_id": "R"}}
{"advance": 60}
{"turn_opened": {"turn_id": "S", "message": 6410}}
{"refused": {"turn_id": "S", "category": "policy"}}
{"crash": true, "down_ms": 500, "reconcile": {"k1": "not_sent"}}
{"wake": {"reason": "timer"}}
"""


def main() -> None:
    """Write the pair, unless it is there."""
    journal = HERE / f"schema-{SCHEMA}.journal"
    if journal.exists():
        sys.exit(f"{journal} exists, and is never written again")
    story = HERE / "story.jsonl"
    story.write_text(STORY, encoding="utf-8")
    scenario = read_scenario(story)
    story.unlink()
    ScenarioRunner(scenario, partial(SqliteRuntime, path=journal)).run()
    with History(journal) as history:
        lines = [json.dumps(msgspec.to_builtins(record)) for record in history.records()]
    Path(f"{journal}.lock").unlink()
    (HERE / f"schema-{SCHEMA}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
