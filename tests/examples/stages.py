"""One stage a chat library: the fake platform, the real library and its example, running, and how a user speaks."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from examples.agent import Agent
from examples.fakes import discord as fake_discord
from examples.fakes import matrix as fake_matrix
from examples.fakes import slack as fake_slack
from examples.fakes import telegram as fake_telegram

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from examples.fakes.platform import Failure, Platform
    from turnkeeper import Engine

PATIENCE_S = 15


@dataclass(frozen=True)
class Stage:
    """A gateway between its fake and the agent."""

    platform: Any
    agent: Agent
    room: str
    send: str
    edit: str
    react: str
    too_many: Failure
    """A rate limit, as short as the platform can say."""
    mark: str = "🤷"

    async def says(self, text: str) -> Any:
        """Let a user say something; return its id, once the agent has read it."""
        message = await self.platform.user_says(self.room, text)
        assert await asyncio.to_thread(self.agent.inputs_read.acquire, timeout=PATIENCE_S)
        return message

    async def turn_over(self) -> None:
        """Wait until the host was told that a turn is over: all that it sends is sent."""
        assert await asyncio.to_thread(self.agent.turns_over.acquire, timeout=PATIENCE_S)

    async def incident(self) -> tuple[Any, Any]:
        """A message, and a follow-up once the agent works on it; both answered by one reply, and a recap at the end."""
        first = await self.says("Move my routine to 07:00, please.")
        if self.agent.previews:
            await self.platform.until(lambda: self.platform.of(self.send))
            await asyncio.to_thread(self.engine.idle, PATIENCE_S)
        second = await self.says("And does it skip weekends?")
        await self.turn_over()
        return first, second

    @property
    def engine(self) -> Engine:
        assert self.agent.engine is not None
        return self.agent.engine


@asynccontextmanager
async def running(served: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let a gateway serve; what it dies of is the test's error."""
    task = asyncio.ensure_future(served)
    try:
        yield
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def ptb(agent: Agent) -> AsyncIterator[Stage]:
    from telegram import Bot

    from examples.embed_ptb import serve

    async with fake_telegram.BotApi() as api:
        bot = Bot("1:token", base_url=f"{api.url}/bot")
        async with running(serve(bot, agent)):
            yield telegram_stage(api, agent)


@asynccontextmanager
async def aiogram(agent: Agent) -> AsyncIterator[Stage]:
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    from examples.embed_aiogram import serve

    async with fake_telegram.BotApi() as api:
        bot = Bot("1:token", session=AiohttpSession(api=TelegramAPIServer.from_base(api.url)))
        async with running(serve(bot, agent)):
            yield telegram_stage(api, agent)


def telegram_stage(api: Platform, agent: Agent) -> Stage:
    names = {"send": "sendMessage", "edit": "editMessageText", "react": "setMessageReaction"}
    return Stage(api, agent, "100", **names, too_many=fake_telegram.too_many(1))


@asynccontextmanager
async def discord(agent: Agent) -> AsyncIterator[Stage]:
    import yarl
    from discord.gateway import DiscordWebSocket
    from discord.http import Route

    from examples.embed_discord import serve

    async with fake_discord.Discord() as api:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Route, "BASE", api.url + fake_discord.API)
            patch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(api.url.replace("http", "ws")))
            async with running(serve("token", agent)):
                await api.until(lambda: api.sockets)
                yield Stage(api, agent, "500", "send", "edit", "react", fake_discord.too_many(0.05))


@asynccontextmanager
async def slack(agent: Agent) -> AsyncIterator[Stage]:
    from slack_bolt import BoltRequest
    from slack_sdk import WebClient

    from examples.embed_slack import CONFIG, Gateway, app_for
    from turnkeeper import Engine

    async with fake_slack.Slack() as api:
        client = WebClient("xoxb-token", base_url=f"{api.url}/api/", retry_handlers=[])
        async with Engine(CONFIG, Gateway(client, agent)) as engine:
            agent.start(engine)
            app = await asyncio.to_thread(app_for, engine, agent, client, fake_slack.SECRET)

            def deliver(body: str, headers: dict[str, str]) -> int:
                return app.dispatch(BoltRequest(body=body, headers=dict(headers))).status

            api.deliver = deliver
            names = {"send": "chat.postMessage", "edit": "chat.update", "react": "reactions.add"}
            yield Stage(api, agent, "C1", **names, too_many=fake_slack.too_many(1), mark="no_entry")


@asynccontextmanager
async def matrix(agent: Agent) -> AsyncIterator[Stage]:
    from nio import AsyncClient

    from examples.embed_matrix import NO_RETRIES, serve

    async with fake_matrix.Matrix() as api:
        client = AsyncClient(api.url, config=NO_RETRIES)
        client.restore_login(fake_matrix.BOT, "device", "token")
        try:
            async with running(serve(client, agent)):
                names = {"send": "m.room.message", "edit": "m.room.message", "react": "m.reaction"}
                yield Stage(api, agent, "!room:local", **names, too_many=fake_matrix.too_many(50))
        finally:
            await client.close()


STAGES = {
    "python-telegram-bot": ptb,
    "aiogram": aiogram,
    "discord.py": discord,
    "slack_bolt": slack,
    "matrix-nio": matrix,
}
