"""A chat that nothing is going on in sleeps as a packed picture; no decision may tell the difference."""

from __future__ import annotations

import random

import pytest

from turnkeeper.engine import codec, events
from turnkeeper.engine.cell import Cell, Run
from turnkeeper.engine.commands import Ack, Send
from turnkeeper.engine.config import Dedup, Policy
from turnkeeper.engine.ids import ChannelRef, turn_at
from turnkeeper.engine.inspection import inspect_chat
from turnkeeper.engine.invariants import audit
from turnkeeper.engine.journal import Body, DoneBody, HandedBody, RecoveredBody
from turnkeeper.engine.picture import DICTIONARY, pack, unpack
from turnkeeper.engine.snapshot import load_pictures, pictures_of

NEVER = 1_000_000


class Story:
    """The same events for two cells: one whose chats fall asleep as soon as they may, one whose never do."""

    def __init__(self) -> None:
        self.sleepy, self.wakeful = Cell(awake_max=0), Cell(awake_max=NEVER)
        self.now_ms, self.seq = 1_000, 0
        self.apply(Body(configured=Policy()))

    def apply(self, body: Body) -> Run:
        self.seq += 1
        runs = [cell.apply(body, self.now_ms, self.seq) for cell in (self.sleepy, self.wakeful)]
        one, other = ([codec.encode(run.commands), run.signals, run.counts, run.violated] for run in runs)
        assert one == other
        assert not runs[0].violated
        assert runs[0].error is None
        assert self.sleepy.chats == self.wakeful.chats
        return runs[0]

    def post(self, event: events.Event) -> Run:
        return self.apply(Body(event=event))

    def wait(self, wait_ms: int) -> None:
        until_ms = self.now_ms + wait_ms
        while (due_ms := self.wakeful.next_due_ms()) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            bodies = {
                codec.encode(body) for cell in (self.sleepy, self.wakeful) if (body := cell.take_due(self.now_ms))
            }
            assert len(bodies) == 1
            self.confirm(self.apply(codec.decode(bodies.pop(), Body)))
        self.now_ms = until_ms

    def confirm(self, run: Run) -> None:
        for command in run.commands:
            if isinstance(command, Send):
                self.apply(Body(handed=HandedBody(command.id, command.delivery, command.attempt)))
                settled = events.Settled(command.chat, command.delivery, "sent", messages=(self.seq,))
                self.confirm(self.post(settled))
            elif not isinstance(command, Ack):
                self.apply(Body(done=DoneBody(command.id)))

    def turn(self, chat: str, number: int, *, said: str = "an answer") -> None:
        where = ChannelRef("telegram", chat)
        self.post(events.Inbound(chat, where, number, addressed=True))
        self.confirm(self.post(events.TurnOpened(chat, f"t{number}")))
        self.confirm(self.post(events.Reply(chat, f"k{number}", f"t{number}", (f"t{number}",), said)))
        self.confirm(self.post(events.Stopped(chat, "done", f"t{number}")))
        self.wait(3_000)

    def same_pictures(self) -> bool:
        return dict(pictures_of(self.sleepy)) == dict(pictures_of(self.wakeful))


def test_what_sleeps_decides_as_what_is_awake() -> None:
    story, rng = Story(), random.Random(7)
    for number in range(1, 120):
        story.turn(f"c{rng.randrange(12)}", number)
        story.wait(rng.randrange(40_000))
    assert story.sleepy.asleep
    assert not story.wakeful.asleep
    assert story.same_pictures()
    assert not audit(story.sleepy.owners)
    asleep = set(story.sleepy.asleep)
    some = {*list(asleep)[:2], "c-unknown"}
    assert dict(pictures_of(story.sleepy, some)) == dict(pictures_of(story.wakeful, some))
    assert set(story.sleepy.asleep) == asleep


def test_a_call_id_is_known_after_a_long_sleep() -> None:
    story = Story()
    story.turn("c1", 1)
    story.wait(3_600_000)
    story.turn("c2", 2)
    assert set(story.sleepy.asleep) == {"c1"}
    again = story.post(events.Reply("c1", "k1", "t1", ("t1",), "an answer"))
    assert [type(command) for command in again.commands] == [Ack]
    assert not story.sleepy.asleep


def test_nobody_sleeps_over_a_deadline_or_what_is_out() -> None:
    story = Story()
    story.post(events.TurnOpened("open", "t1", channel=ChannelRef("telegram", "9")))
    sent = story.post(events.Reply("open", "k1", "t1", ("t1",), "hello"))
    story.wait(120_000)
    story.turn("other", 2)
    story.turn("third", 3)
    assert "open" not in story.sleepy.asleep
    story.confirm(sent)
    story.wait(900_000)
    story.turn("other", 4)
    story.turn("third", 5)
    assert "open" in story.sleepy.asleep


@pytest.mark.parametrize("restarts", [False, True])
def test_an_answer_of_unknown_fate_sleeps_until_it_is_known(restarts: bool) -> None:
    """Its turn stays, settled, for the one word that may still come; nothing else keeps the chat awake."""
    story = Story()
    story.post(events.TurnOpened("doubt", "t1", channel=ChannelRef("telegram", "9"), message=1))
    (sent,) = [
        one for one in story.post(events.Reply("doubt", "k1", "t1", ("t1",), "hello")).commands if isinstance(one, Send)
    ]
    story.apply(Body(handed=HandedBody(sent.id, sent.delivery, sent.attempt)))
    story.confirm(story.post(events.Settled("doubt", sent.delivery, "unknown")))
    story.confirm(story.post(events.Stopped("doubt", "done", "t1")))
    story.wait(900_000)
    story.turn("other", 2)
    story.turn("third", 3)
    assert "doubt" in story.sleepy.asleep
    assert story.wakeful.owners[turn_at("doubt", "t1")].state.phase == "settled"
    if restarts:
        story.apply(Body(recovered=RecoveredBody(1_000)))
    told = story.post(events.Settled("doubt", sent.delivery, "failed", attempt=sent.attempt))
    assert [one.purpose for one in told.commands if isinstance(one, Send)] == ["rescue"]
    assert story.same_pictures()


@pytest.mark.parametrize("window_ms", [60_000, 600_000])
def test_a_restart_with_another_window_finds_everybody_as_they_were(window_ms: int) -> None:
    """The window of what was said begins anew; a longer one may hold what had left when its chat fell asleep."""
    story = Story()
    story.turn("c1", 1)
    story.wait(200_000)
    story.turn("c2", 2)
    assert set(story.sleepy.asleep) == {"c1"}
    story.apply(Body(configured=Policy(dedup=Dedup(window_ms=window_ms))))
    story.apply(Body(recovered=RecoveredBody(5_000)))
    story.wait(1_000)
    story.confirm(story.post(events.Reply("c1", "k9", "t1", ("t1",), "an answer")))
    assert story.same_pictures()


def test_a_snapshot_brings_back_who_sleeps_asleep() -> None:
    story = Story()
    story.turn("c1", 1)
    story.wait(200_000)
    story.turn("c2", 2)
    pictures = dict(pictures_of(story.wakeful))
    loaded = Cell()
    loaded.at = story.wakeful.at
    assert load_pictures(loaded, pictures.values()) == 2
    assert set(loaded.asleep) == {"c1"}
    assert loaded.chats == 2
    assert dict(pictures_of(loaded)) == pictures


def test_one_may_look_at_who_sleeps() -> None:
    story = Story()
    story.turn("c1", 1)
    story.wait(200_000)
    story.turn("c2", 2)
    assert inspect_chat(story.sleepy, "c1") == inspect_chat(story.wakeful, "c1")


def test_a_packed_picture_is_small_and_whole() -> None:
    story = Story()
    story.turn("c1", 1)
    (picture,) = dict(pictures_of(story.wakeful)).values()
    assert unpack(pack(picture)) == picture
    assert len(pack(picture)) < 450
    assert len(DICTIONARY) < 4096
    assert unpack(pack(bytes(range(256)) * 64)) == bytes(range(256)) * 64
