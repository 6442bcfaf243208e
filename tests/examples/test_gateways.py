"""The examples beside real chat libraries, against complete fakes: what users saw, and what the platform was asked."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples.agent import Agent
from examples.fakes import discord, slack, telegram
from tests.examples.stages import PATIENCE_S, STAGES, Stage
from turnkeeper import events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BOTH = Agent().answer
pytestmark = [
    pytest.mark.filterwarnings("ignore:'audioop' is deprecated"),  # discord.py, on Python 3.11 and 3.12
]


@asynccontextmanager
async def stage_of(library: str, answer: str = BOTH) -> AsyncIterator[Stage]:
    async with STAGES[library](Agent(answer)) as stage:
        yield stage


@pytest.fixture(params=STAGES)
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    async with stage_of(request.param) as stage:
        yield stage


@pytest.fixture(params=["python-telegram-bot", "aiogram"])
async def telegrams(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    async with stage_of(request.param) as stage:
        yield stage


# ------------------------------------------------------------ of every library


async def test_the_incident(stage: Stage) -> None:
    """Two messages, one answer; it quotes the first, and the recap is no second one."""
    first, _ = await stage.incident()
    (answer,) = stage.platform.answers(stage.room)
    assert (answer.text, answer.quote) == (BOTH, first)


async def test_a_rate_limit_is_waited_for_by_the_engine(stage: Stage) -> None:
    """The library is told not to try again: two calls, the refused one and the engine's, and one bubble."""
    stage.platform.fail(stage.send, stage.too_many)
    message = await stage.says("Hello?")
    await stage.turn_over()
    assert [call.status for call in stage.platform.of(stage.send)] == [429, 200]
    (answer,) = stage.platform.answers(stage.room)
    assert (answer.text, answer.quote) == (BOTH, message)


async def test_the_agent_edits_its_bubble(stage: Stage) -> None:
    await stage.says("Hello?")
    await stage.turn_over()
    edited_before = len(stage.platform.of(stage.edit))
    await stage.says("Fix it, say: Moved to 06:30.")
    await stage.turn_over()
    (first,) = stage.platform.answers(stage.room)
    assert (first.text, first.edits) == ("Moved to 06:30.", 1)
    assert len(stage.platform.of(stage.edit)) >= edited_before + 1


async def test_a_refusal_marks_the_message_that_was_refused(stage: Stage) -> None:
    message = await stage.says("Curse at them.")
    await stage.turn_over()
    await stage.platform.until(lambda: stage.platform.of(stage.react))
    assert stage.platform.rooms[stage.room][message].reactions == [stage.mark]
    assert len(stage.platform.of(stage.react)) == 1
    assert stage.platform.answers(stage.room) == []


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("embed_*.py")), ids=lambda file: file.stem)
def test_a_gateway_is_short_enough_to_be_read(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 120


# ------------------------------------------------------------ Telegram


@pytest.mark.parametrize("library", ["python-telegram-bot", "aiogram"])
async def test_what_cannot_be_parsed_comes_as_plain_text(library: str) -> None:
    async with stage_of(library, "It is done when a < b.") as stage:
        message = await stage.says("When?")
        await stage.turn_over()
        calls = stage.platform.of("sendMessage")
        assert [(call.status, call.args.get("parse_mode")) for call in calls] == [(400, "HTML"), (200, None)]
        (answer,) = stage.platform.answers(stage.room)
        assert (answer.text, answer.quote) == ("It is done when a < b.", message)


async def test_a_message_that_was_deleted_is_answered_without_a_quote(telegrams: Stage) -> None:
    api = telegrams.platform
    telegrams.agent.previews = False
    first = await telegrams.says("Move my routine to 07:00, please.")
    api.user_deletes(telegrams.room, first)
    await telegrams.says("And does it skip weekends?")
    await telegrams.turn_over()
    assert [call.status for call in api.of("sendMessage")] == [400, 200]
    (answer,) = api.answers(telegrams.room)
    assert (answer.text, answer.quote) == (BOTH, None)


async def test_a_user_who_blocked_the_bot_is_not_sent_the_same_again() -> None:
    """The answer is refused for good; the closing words are tried in its place, once, as it was not delivered."""
    async with stage_of("python-telegram-bot") as stage:
        stage.platform.fail("sendMessage", telegram.BLOCKED, telegram.BLOCKED)
        await stage.says("Hello?")
        await stage.turn_over()
        calls = stage.platform.of("sendMessage")
        assert [(call.status, call.args["text"]) for call in calls] == [(403, BOTH), (403, "To sum up: it is done.")]


async def test_an_update_is_confirmed_after_it_was_handed_over(telegrams: Stage) -> None:
    """The offset moves on with the first request after the agent has it."""
    api = telegrams.platform
    await telegrams.says("Hello?")
    await api.until(lambda: api.confirmed > 1)
    await telegrams.turn_over()
    assert [u["update_id"] for u in api.updates] == [1]


async def test_a_preview_becomes_the_answer() -> None:
    """One bubble: the preview is sent with the quote, and edited into the answer."""
    async with stage_of("python-telegram-bot") as stage:
        first, _ = await stage.incident()
        (answer,) = stage.platform.answers(stage.room)
        assert (answer.text, answer.quote, answer.edits) == (BOTH, first, 1)
        assert [call.args["text"] for call in stage.platform.of("sendMessage")] == ["Moved to …"]


async def test_a_preview_that_the_answer_overtakes_is_removed() -> None:
    """The follow-up comes at once: whether the preview was still on its way or not, users see one bubble in the end."""
    async with stage_of("python-telegram-bot") as stage:
        await stage.says("Move my routine to 07:00, please.")
        await stage.says("And does it skip weekends?")
        await stage.turn_over()
        assert [bubble.text for bubble in stage.platform.answers(stage.room)] == [BOTH]


# ------------------------------------------------------------ Discord


async def test_discord_a_message_that_was_deleted_is_answered_without_a_quote() -> None:
    async with stage_of("discord.py") as stage:
        stage.platform.fail("send", discord.REPLY_GONE)
        await stage.says("Hello?")
        await stage.turn_over()
        assert [(call.status, "message_reference" in call.args) for call in stage.platform.of("send")] == [
            (400, True), (200, False),
        ]  # fmt: skip
        (answer,) = stage.platform.answers(stage.room)
        assert (answer.text, answer.quote) == (BOTH, None)


async def test_discord_the_attempts_of_one_delivery_share_a_nonce() -> None:
    async with stage_of("discord.py") as stage:
        stage.platform.fail("send", discord.BAD_GATEWAY)
        await stage.says("Hello?")
        await stage.turn_over()
        calls = stage.platform.of("send")
        assert [call.status for call in calls] == [502, 200]
        assert len({call.args["nonce"] for call in calls}) == 1
        assert all(call.args["enforce_nonce"] for call in calls)


async def test_discord_what_is_said_while_the_connection_is_lost_is_replayed() -> None:
    async with stage_of("discord.py") as stage:
        await stage.platform.cut()
        message = await stage.says("Hello?")
        await stage.turn_over()
        assert stage.platform.resumed == 1
        (answer,) = stage.platform.answers(stage.room)
        assert answer.quote == message


# ------------------------------------------------------------ Slack


async def test_slack_blocks_that_are_refused_come_as_plain_text() -> None:
    long = "It is done. " * 300
    async with stage_of("slack_bolt", long) as stage:
        await stage.says("When?")
        await stage.turn_over()
        assert ["blocks" in call.args for call in stage.platform.of("chat.postMessage")] == [True, False]
        assert [bubble.text for bubble in stage.platform.answers(stage.room)] == [long]


async def test_slack_a_thread_that_cannot_be_is_left() -> None:
    async with stage_of("slack_bolt") as stage:
        stage.platform.fail("chat.postMessage", slack.REPLY_GONE)
        await stage.says("Hello?")
        await stage.turn_over()
        assert ["thread_ts" in call.args for call in stage.platform.of("chat.postMessage")] == [True, False]


async def test_slack_an_event_that_comes_twice_is_answered_once() -> None:
    async with stage_of("slack_bolt") as stage:
        await stage.platform.user_says(stage.room, "Hello?", twice=True)
        await stage.turn_over()
        assert stage.platform.delivered == [200, 200]
        assert len(stage.platform.answers(stage.room)) == 1


async def test_slack_an_event_with_a_wrong_signature_is_not_heard() -> None:
    async with stage_of("slack_bolt") as stage:
        assert await stage.platform.bring("{}", secret="another") == 401  # noqa: S106 - nobody's
        assert stage.platform.answers(stage.room) == []


async def test_slack_an_event_that_the_engine_refuses_is_brought_again() -> None:
    """Above the watermark nothing is admitted, and the app says 500; the event comes again and is answered."""
    async with stage_of("slack_bolt") as stage:
        opened, closed = threading.Event(), threading.Event()

        def hold(_: object) -> None:
            opened.set()
            assert closed.wait(PATIENCE_S)

        await stage.engine.reload({"limits": {"ingress_high": 2, "ingress_low": 0}})
        look = asyncio.create_task(asyncio.to_thread(stage.engine.look, hold))
        assert await asyncio.to_thread(opened.wait, PATIENCE_S)
        waiting = [stage.engine.post(events.Activity("other", "a hook")) for _ in range(2)]
        deliver = stage.platform.deliver

        def first_refused(body: str, headers: dict[str, str]) -> int:
            stage.platform.deliver = deliver
            status: int = deliver(body, headers)
            closed.set()
            for admission in waiting:
                admission.wait(PATIENCE_S)
            return status

        stage.platform.deliver = first_refused
        message = await stage.says("Hello?")
        await look
        await stage.turn_over()
        assert stage.platform.delivered == [500, 200]
        (answer,) = stage.platform.answers(stage.room)
        assert answer.quote == message


# ------------------------------------------------------------ Matrix


async def test_matrix_the_delivery_is_the_transaction_id() -> None:
    async with stage_of("matrix-nio") as stage:
        message = await stage.says("Hello?")
        await stage.turn_over()
        (call,) = stage.platform.of("m.room.message")
        assert call.args["txn"] == f"reply:mx-{stage.room.replace(':', '%3A')}:call-{message}"
