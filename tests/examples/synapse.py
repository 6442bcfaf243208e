"""The Matrix example against a real homeserver. Not a part of `make test`: `make synapse` installs Synapse and runs this.

What users saw is read back from the server by the user, not from the bot's side.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from nio import AsyncClient, RoomCreateResponse, RoomMessagesResponse, RoomSendResponse, RoomVisibility

from examples.agent import Agent
from examples.embed_matrix import NO_RETRIES, serve
from tests.examples.stages import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

PATIENCE_S = 60
PYTHON = os.environ.get("TURNKEEPER_SYNAPSE", ".synapse/bin/python")
MORE = """
enable_registration: true
enable_registration_without_verification: true
rc_message: {{per_second: 1, burst_count: 2}}
rc_registration: {{per_second: 100, burst_count: 100}}
listeners: [{{port: {port}, bind_addresses: ["127.0.0.1"], type: http, resources: [{{names: [client]}}]}}]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A homeserver with its own database; its rate limit lets two messages through, then one a second."""
    folder = tmp_path_factory.mktemp("synapse")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    synapse = [str(Path(PYTHON).absolute()), "-m", "synapse.app.homeserver", "--config-path", "homeserver.yaml"]
    make = [*synapse, "--generate-config", "--server-name", "local", "--report-stats", "no"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True, timeout=PATIENCE_S)
    (folder / "more.yaml").write_text(MORE.format(port=port), encoding="utf-8")
    with (folder / "out").open("wb") as out:
        server = subprocess.Popen([*synapse, "--config-path", "more.yaml"], cwd=folder, stdout=out, stderr=out)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(PATIENCE_S)


async def up(home: str) -> None:
    """Wait until the server answers."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE_S):
        while True:
            try:
                async with session.get(f"{home}/health") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.2)  # nothing tells when a port is listened on


async def registered(home: str, name: str, **options: Any) -> AsyncClient:
    client = AsyncClient(home, name, **options)
    await client.register(name, "a password of nobody", "device")
    return client


class Room:
    """A user, the bot, and what the user sees."""

    def __init__(self, user: AsyncClient, bot: AsyncClient, room: str, agent: Agent) -> None:
        self.user, self.bot, self.room, self.agent = user, bot, room, agent

    async def says(self, text: str) -> str:
        content = {"msgtype": "m.text", "body": text}
        sent = await self.user.room_send(self.room, "m.room.message", content)
        assert isinstance(sent, RoomSendResponse)
        assert await asyncio.to_thread(self.agent.inputs_read.acquire, timeout=PATIENCE_S)
        return str(sent.event_id)

    async def turn_over(self) -> None:
        assert await asyncio.to_thread(self.agent.turns_over.acquire, timeout=PATIENCE_S)

    async def seen(self, kind: str = "m.room.message") -> list[dict[str, Any]]:
        """What the bot wrote, oldest first, as the server shows it to the user."""
        found = await self.user.room_messages(self.room, limit=100)
        assert isinstance(found, RoomMessagesResponse)
        events = [event.source for event in reversed(found.chunk)]
        return [event for event in events if event["type"] == kind and event["sender"] == self.bot.user_id]


@asynccontextmanager
async def room_of(home: str, name: str) -> AsyncIterator[Room]:
    await up(home)
    user, bot = await registered(home, f"user-{name}"), await registered(home, f"bot-{name}", config=NO_RETRIES)
    made = await user.room_create(visibility=RoomVisibility.public, preset=None, invite=[bot.user_id])
    assert isinstance(made, RoomCreateResponse)
    await bot.join(made.room_id)
    agent = Agent()
    since = (await bot.sync()).next_batch
    try:
        async with running(serve(bot, agent, since)):
            yield Room(user, bot, made.room_id, agent)
    finally:
        await user.close()
        await bot.close()


async def test_the_incident(home: str) -> None:
    async with room_of(home, "incident") as room:
        first = await room.says("Move my routine to 07:00, please.")
        await room.says("And does it skip weekends?")
        await room.turn_over()
        (answer,) = await room.seen()
        assert answer["content"]["body"] == room.agent.answer
        assert answer["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == first


async def test_a_rate_limit_of_the_server_is_waited_for(home: str) -> None:
    """Four answers at once: the server lets two through; the others come when it allows them, each once."""
    async with room_of(home, "limit") as room:
        for number in range(4):
            await room.says(f"Hello {number}?")
            await room.turn_over()
        assert [event["content"]["body"] for event in await room.seen()] == [room.agent.answer] * 4


async def test_an_edit_and_a_refusal(home: str) -> None:
    async with room_of(home, "edit") as room:
        await room.says("Hello?")
        await room.turn_over()
        await room.says("Fix it, say: Moved to 06:30.")
        await room.turn_over()
        first, edit = await room.seen()
        assert edit["content"]["m.relates_to"] == {"rel_type": "m.replace", "event_id": first["event_id"]}
        assert edit["content"]["m.new_content"]["body"] == "Moved to 06:30."
        refused = await room.says("Curse at them.")
        await room.turn_over()
        async with asyncio.timeout(PATIENCE_S):
            while not (marks := await room.seen("m.reaction")):
                pass
        relation = {"rel_type": "m.annotation", "event_id": refused, "key": "🤷"}
        assert [mark["content"]["m.relates_to"] for mark in marks] == [relation]


async def test_the_same_transaction_twice_is_one_event(home: str) -> None:
    """What the example's `reconcile` relies on."""
    async with room_of(home, "twice") as room:
        content = {"msgtype": "m.text", "body": "once"}
        sent = [await room.bot.room_send(room.room, "m.room.message", content, tx_id="reply:c1:k1") for _ in range(2)]
        assert len({one.event_id for one in sent if isinstance(one, RoomSendResponse)}) == 1
        assert len(await room.seen()) == 1
