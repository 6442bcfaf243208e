"""Scenario files are read strictly: what is wrong is told with file and line, before anything runs."""

import json
from pathlib import Path

import pytest

from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.lab.scenario import as_recording, read_scenario

OPEN = '{"turn_opened": {"turn_id": "P", "message": 1}}'


def write(folder: Path, *lines: str, header: str = '{"scenario": "x"}') -> Path:
    file = folder / "s.jsonl"
    file.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"turn_opned": {}}', "'turn_opned' is no step; expected an event type or one of advance"),
        ('{"turn_opened": {"turn_id": 1}}', "turn_opened"),
        ('{"turn_opened": {"turn": "P"}}', "did you mean turn_id?"),
        ('{"turn_opened": []}', "expected an object of fields"),
        ('{"advance": -1}', "advance is -1; expected milliseconds"),
        ('{"advance": true}', "advance is True"),
        ('{"advance": 1, "ordered": true}', "'ordered' cannot stand beside advance; allowed: deliver"),
        ('{"deliver": "later"}', "deliver is 'later'; expected"),
        ('{"advance": 1, "deliver": {"fail": {"why": 1}}}', "deliver.fail"),
        ('{"settle": {"call_id": "k"}}', "settle: "),
        ('{"settle": {"call_id": "k", "outcome": "maybe"}}', "settle: "),
        ('{"crash": "now"}', "crash is 'now'; expected true or false"),
        ('{"crash": true, "down_ms": -5}', "down_ms is -5"),
        ('{"crash": true, "back_ms": -5}', "back_ms is -5"),
        ('{"crash": true, "during": 3}', "during is 3; expected an object"),
        ('{"crash": true, "during": {"records": 0}}', "during: Expected `int` >= 1"),
        ('{"crash": true, "during": {"before": true}}', "during: Object missing required field `records`"),
        ('{"crash": true, "reload": {"timer": {}}}', "did you mean timers?"),
        ('{"complaints": true}', "complaints is True; expected a list of texts"),
        ('{"complaints": [], "ended": 1}', "ended is 1"),
        ('{"crash": true, "reconcile": {"k": "perhaps"}}', "k is 'perhaps'; expected one of sent, not_sent"),
        ('{"reload": {"timer": {}}}', "did you mean timers?"),
        ('{"reload": 3}', "config is 3"),
        ('{"expect": {}}', "expect is {}; expected a list"),
        ('{"expect": ["send"]}', "expect is ['send']"),
        ('{"expect": [{"send": {}, "ack": {}}]}', "is no command"),
        ('{"expect": [], "acks": [1]}', "acks is [1]"),
        ('{"expect": [], "ordered": 1}', "ordered is 1"),
        ('{"expect": [{"snd": {}}]}', "'snd' is no command; did you mean send?"),
        ('{"expect": [{"send": {"txt": "x"}}]}', "send.txt is no field; did you mean text?"),
        ('{"expect": [{"send": {"quotte": null}}]}', "send.quotte is no field; did you mean quote?"),
        ('{"expect": [{"edit": {"zzz": 1}}]}', "edit.zzz is no field; known: chat, id, delivery, channel"),
        ('{"expect": [], "acks": [{"callid": "k"}]}', "ack.callid is no field; did you mean call_id?"),
        ('{"signals": ["input_sen"]}', "'input_sen' is no signal; did you mean input_seen?"),
        ('{"signals": [{"input_seen": {"turn": "P"}}]}', "input_seen.turn is no field; did you mean turn_id?"),
        ('{"never": ["stop_forein"]}', "'stop_forein' is no signal; did you mean stop_foreign?"),
        ('{"signals": "input_seen"}', "expected a list"),
        ('{"signals": [{"a": {}, "b": {}}]}', "is no expected item"),
        ('{"signals": [{"a": 1}]}', "is no expected item"),
        ('{"never": [{"a": {}}]}', "expected a list of signal names"),
        ('{"metrics": {"a": "1"}}', "a is '1'; expected a number"),
        ('{"state": []}', "expected an object"),
        ('{"state": {}, "chat": 1}', "chat is 1; expected a text"),
    ],
)
def test_a_wrong_line(tmp_path: Path, line: str, told: str) -> None:
    file = write(tmp_path, OPEN, line)
    with pytest.raises(DecodeError) as error:
        read_scenario(file)
    assert str(error.value).startswith(f"{file}:3: ")
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("{}", "at least one key"),
        ('{"scenari": "x"}', "the first line is the header"),
        ('{"scenario": 1}', "the first line is the header"),
        ('{"scenario": "x", "author": "y"}', "author is no field of the header"),
        ('{"scenario": "x", "platform": {"next": 1}}', "platform is"),
        ('{"scenario": "x", "platform": {"next_message": "1"}}', "platform.next_message is '1'"),
        ('{"scenario": "x", "platform": {"holds_again": 1}}', "platform: Expected `bool`"),
        ('{"scenario": "x", "config": []}', "config is []"),
        ('{"scenario": "x", "config": {"delivery": 1}}', "delivery"),
        ('{"scenario": "x", "config": {"delivery": {"retries": "4"}}}', "delivery.retries"),
    ],
)
def test_a_wrong_header(tmp_path: Path, header: str, told: str) -> None:
    file = write(tmp_path, OPEN, header=header)
    with pytest.raises(DecodeError) as error:
        read_scenario(file)
    assert str(error.value).startswith(f"{file}:1: ")
    assert told in str(error.value)


def test_changes_lie_over_the_header_and_over_each_reload(tmp_path: Path) -> None:
    header = '{"scenario": "x", "config": {"timers": {"quiet_ms": 1, "stop_grace_ms": 2}}}'
    file = write(tmp_path, '{"reload": {"timers": {"quiet_ms": 3}}}', header=header)
    read = read_scenario(file, changes={"timers": {"quiet_ms": 4}, "dedup": {"window_ms": 5}})
    assert (read.config.timers.quiet_ms, read.config.timers.stop_grace_ms, read.config.dedup.window_ms) == (4, 2, 5)
    (reload,) = read.steps
    assert reload.config is not None
    assert (reload.config.timers.quiet_ms, reload.config.timers.stop_grace_ms) == (4, 2000)


def test_a_scenario_as_a_recording_keeps_the_story_and_its_comments(tmp_path: Path) -> None:
    checks = [
        '{"expect": []}',
        '{"signals": []}',
        '{"never": []}',
        '{"metrics": {}}',
        '{"state": {}}',
        '{"complaints": []}',
    ]
    read = read_scenario(write(tmp_path, OPEN, '{"#": "x"}', *checks))
    assert read.checked
    assert not read.recording
    story = as_recording(read)
    assert [step.kind for step in story.steps] == ["event", "#"]
    assert story.recording
    assert not story.checked


def test_defaults_of_a_scenario(tmp_path: Path) -> None:
    read = read_scenario(write(tmp_path, OPEN, json.dumps({"inbound": {"chat": "c2", "channel": None}})))
    opened, inbound = (step.event for step in read.steps)
    assert (str(getattr(opened, "chat", "")), str(getattr(opened, "channel", ""))) == ("c1", "tg/100")
    assert (getattr(inbound, "chat", ""), getattr(inbound, "channel", "")) == ("c2", None)
    assert read.config.delivery.jitter_percent == 0
