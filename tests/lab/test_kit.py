"""The scenario language in Python: steps run when they are said, and what differs is told with what decided it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from turnkeeper.actors.runtime import ActorsRuntime
from turnkeeper.cli import main
from turnkeeper.engine import lab as kit
from turnkeeper.engine.codec import EVENT_TYPES
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.lab import Lab, command, preview, react, send, turn_settled
from turnkeeper.metrics.probe import RegistryProbe


def story(lab: Lab) -> None:
    """A reply consuming a turn and its fold answers the turn; the recap at the end stays unsent."""
    lab.turn_opened("P", message=6406)
    lab.input_folded("F", source="autosteer", message=6407)
    lab.reply("both", turn_id="F", consumed_turn_ids=["P", "F"])
    lab.stopped("short recap").advance(2_500)
    lab.expect(send("both", turn_id="P", quote=6406), turn_settled("P", "final-reply"))


def test_a_combined_reply_is_the_only_answer() -> None:
    with Lab() as lab:
        story(lab)


def test_the_same_story_on_the_whole_engine() -> None:
    with Lab(runtime=ActorsRuntime) as lab:
        story(lab)


def test_every_event_is_a_method() -> None:
    for tag in EVENT_TYPES.keys() - {"settled"}:
        assert callable(getattr(Lab, tag)), tag


def test_events_of_every_kind_can_be_said() -> None:
    with Lab({"refusal": {"auto_rewind": False}}) as lab:
        lab.chat_opened(home="tg/100").channel_registered("tg/100").inbound(1, wakes=False).accepted("tg", "e1")
        lab.wake("timer").quiesced().resumed().turn_opened("P", message=2).turn_continued("P", cause="budget")
        lab.input_seen("P").speech_moved("P", channel="tg/100", cause="re_pin").activity("tool")
        lab.preview("Wo", turn_id="P").question_opened("q").question_answered("q").refused("P")
        lab.turn_opened("Q", message=3).failed("Q", error="boom").rewound("Q", removed=0)
        lab.turn_opened("R", message=4).interrupted().turn_opened("S", message=5).lost("gone").unstick()
        lab.server_removed("tg")
        assert "turn_settled" in lab.transcript()


def test_what_differs_is_told_with_what_decided_it() -> None:
    with Lab() as lab:
        lab.turn_opened("P", message=6406).reply("hi", turn_id="P")
        with pytest.raises(AssertionError) as told:
            lab.expect(send("hi", quote=7))
        assert "attribution: echoed-open (the turn is still open)" in str(told.value)
        assert "quoting 6406" in str(told.value)
        assert "step 3 is not as expected" in str(told.value)


def test_a_command_that_nobody_expected_is_told_at_the_end() -> None:
    lab = Lab()
    lab.turn_opened("P", message=6406).expect()
    lab.reply("hi", turn_id="P")
    with pytest.raises(AssertionError, match="no command that an expect has not covered"):
        lab.__exit__(None, None, None)


def test_without_any_expect_nothing_is_compared() -> None:
    with Lab() as lab:
        lab.turn_opened("P", message=6406).reply("hi", turn_id="P")


def test_what_is_no_event_is_told_at_once() -> None:
    with Lab() as lab:
        with pytest.raises(DecodeError, match="did you mean message"):
            lab.turn_opened("P", massage=6406)
        with pytest.raises(DecodeError, match="advance is -1"):
            lab.advance(-1)


def test_platform_crash_and_settings() -> None:
    with Lab({"timers": {"quiet_ms": 2000}}, next_message=70, probe=RegistryProbe()) as lab:
        lab.turn_opened("P", message=6406).input_seen("P")
        lab.reply("A", turn_id="P", call_id="c1", deliver="hold")
        lab.settle("failed", call_id="c1").deliver("unknown").advance(1200)
        lab.crash(down_ms=10, reconcile={"c1": "sent"}).reload({"timers": {"quiet_ms": 3000}})
        lab.expect(send("A", attempt=1), send("A", attempt=2)).never("orphan_reply_unattributed")
        lab.signals("quote_reserved").state({"turns.P.status": "open"})
        lab.metrics({"turnkeeper_set_aside_total": 0})
        assert [how for how, _ in lab.platform.visible] == ["sent"]


def test_expected_commands_are_plain_values() -> None:
    assert command("notice", kind="lands") == {"notice": {"kind": "lands"}}
    assert preview("Wo", quote=None) == {"preview": {"text": "Wo", "quote": None}}
    assert react(6406, mark="x") == {"react": {"message": 6406, "mark": "x"}}


def test_a_lab_writes_a_scenario_file(tmp_path: Path) -> None:
    file = tmp_path / "story.jsonl"
    with Lab(title="one answer") as lab:
        story(lab)
        lab.write(file)
    for command_line in (["run", str(file)], ["explore", str(file), "--depth", "2"]):
        assert CliRunner().invoke(main, command_line).exit_code == 0


def test_the_kit_is_imported_when_it_is_used() -> None:
    assert set(kit.__all__) <= set(dir(kit))
    for name in kit.__all__:
        assert getattr(kit, name)
    with pytest.raises(AttributeError):
        _ = kit.nothing
