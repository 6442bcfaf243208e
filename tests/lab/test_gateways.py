"""Trying out gateways: the careful one passes, and what the naive ones do is found, shrunk and named."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from turnkeeper.engine.commands import Command, Send
from turnkeeper.engine.events import Settled
from turnkeeper.engine.lab import Bubble, ChatFailure, FakeChat, TimedOut, try_gateway
from turnkeeper.engine.lab.hosting.witness import complaints

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 20


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lab_finds_a_bug", ROOT / "examples" / "lab_finds_a_bug.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLE = example()


def test_a_careful_gateway_has_nothing_to_complain_of() -> None:
    tried = try_gateway(EXAMPLE.Careful, stories=200)
    assert not tried.complaints, str(tried)
    assert str(tried) == "200 stories, nothing to complain of"


@pytest.mark.parametrize("kind", ["SendsAgain", "HidesTheGoneQuote", "ForgetsTheQuote"])
def test_a_planted_bug_is_found_in_seconds_and_shrunk(kind: str) -> None:
    began_s = time.process_time()
    tried = try_gateway(getattr(EXAMPLE, kind))
    assert time.process_time() - began_s < SECONDS_MAX
    assert tried.complaints
    assert len(tried.steps) <= 4, tried.steps
    assert f"seed {tried.seed}" in str(tried)


def test_sending_again_after_a_timeout_shows_the_words_twice() -> None:
    found = {
        try_gateway(EXAMPLE.SendsAgain, first=seed, stories=40).complaints[0].partition(":")[0] for seed in (5, 40, 90)
    }
    assert "shown twice" in found


def test_the_same_seed_is_the_same_story() -> None:
    one, other = try_gateway(EXAMPLE.SendsAgain), try_gateway(EXAMPLE.SendsAgain)
    assert (one.seed, one.steps, one.complaints) == (other.seed, other.steps, other.complaints)


class Raises:
    """Raises at a timeout: the engine takes that for a failure, and users see it all the same."""

    def __init__(self, chat: FakeChat) -> None:
        self.chat = chat

    async def perform(self, command: Command, /) -> Settled | None:
        if not isinstance(command, Send):
            return None
        message = self.chat.send(str(command.channel), command.text, reply_to=command.quote)
        return Settled(command.chat, command.delivery, "sent", attempt=command.attempt, messages=(message,))


def test_a_raise_after_a_timeout_is_untrue() -> None:
    tried = try_gateway(Raises)
    assert any(one.startswith("untrue: ") and "TimedOut" in one for one in tried.complaints), str(tried)


class Breaks(Raises):
    """Cannot take what is no message."""

    async def perform(self, command: Command, /) -> Settled | None:
        if not isinstance(command, Send):
            raise LookupError("what is that?")
        return Settled(command.chat, command.delivery, "failed", attempt=command.attempt, permanent=True)


def test_a_gateway_that_cannot_take_a_command_is_told() -> None:
    assert any(one.startswith("raised: ") for one in try_gateway(Breaks).complaints)


SEND = {"chat": "c1", "delivery": "reply:c1:k", "text": "A", "purpose": "reply", "turn_id": "P", "quote": 7}


@pytest.mark.parametrize(
    ("shown", "told", "complaint"),
    [
        ([Bubble("tg/2", 1, "A", "7")], {"outcome": "sent", "messages": (1,)}, "shown elsewhere"),
        ([Bubble("tg/1", 1, "A", "7")], {"outcome": "sent", "messages": (2,)}, "untrue"),
        ([], {"outcome": "sent", "messages": (2,)}, "untrue"),
        ([Bubble("tg/1", 1, "A", "7")], {"outcome": "failed"}, "untrue"),
        ([Bubble("tg/1", 1, "A", "8")], {"outcome": "sent", "messages": (1,)}, "quotes unasked"),
        (
            [Bubble("tg/1", 1, "A", "7"), Bubble("tg/1", 2, "B", "7")],
            {"outcome": "sent", "messages": (1, 2)},
            "quotes unasked",
        ),
        ([Bubble("tg/1", 1, "A", "7")], {"outcome": "sent", "messages": (1,), "delivery": "reply:c1:x"}, "untrue"),
    ],
)
def test_each_complaint(shown: list[Bubble], told: dict[str, object], complaint: str) -> None:
    command = msgspec.convert({"type": "send", "channel": {"server": "tg", "id": "1"}, **SEND}, Send)
    event = msgspec.convert({"type": "settled", "chat": "c1", "delivery": "reply:c1:k", **told}, Settled)
    assert [one.partition(":")[0] for one in complaints(command, shown, event)] == [complaint]


def test_a_fake_chat_fails_the_same_way_each_time_and_gives_in() -> None:
    def tries(seed: int) -> list[str]:
        chat, said = FakeChat(seed), []
        for _ in range(4):
            try:
                said.append(str(chat.send("tg/1", "A", reply_to=7)))
            except ChatFailure as failure:
                said.append(type(failure).__name__)
        return said

    assert [tries(seed) for seed in range(40)] == [tries(seed) for seed in range(40)]
    assert all(tries(seed)[3].isdecimal() for seed in range(40))
    assert {said for seed in range(200) for said in tries(seed) if not said.isdecimal()} >= {"TimedOut", "QuoteGone"}
    calm = FakeChat(1, faults=False)
    message = calm.send("tg/1", "A")
    calm.edit("tg/1", message, "B")
    calm.react("tg/1", message, "x")
    assert calm.bubbles == [Bubble("tg/1", message, "B", marks=("x",))]
    assert issubclass(TimedOut, ChatFailure)


def test_the_example_runs() -> None:
    done = subprocess.run(
        [sys.executable, "examples/lab_finds_a_bug.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "quote dropped" in done.stdout
