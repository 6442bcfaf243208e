"""A gateway beside matrix-nio: the delivery is the transaction id, so that nothing is sent twice, even after a crash.

MATRIX_SERVER=… MATRIX_USER=… MATRIX_TOKEN=… python -m examples.embed_matrix        the duties: docs/EMBEDDING.md
"""

import asyncio
import os
from typing import Any

import aiohttp
from nio import AsyncClient, AsyncClientConfig, ErrorResponse, MatrixRoom, RoomMessageText, RoomSendResponse

from examples.admission import admitted
from examples.agent import Agent
from turnkeeper import ChannelRef, Engine, commands, events

MARKS = {"refused": "🤷"}
CONFIG = {"timers": {"stop_grace_ms": 100}}
# The library would sleep on a 429 and try again for ever, and so after a time-out: duty 11.
NO_RETRIES = AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0)


class Gateway:
    """Commands to events in a room."""

    def __init__(self, client: AsyncClient, agent: Agent) -> None:
        self.client, self.agent = client, agent

    async def perform(self, command: commands.Command) -> events.Settled | None:
        match command:
            case commands.Send() | commands.Edit() | commands.React():
                kind, content = event_of(command)
                try:
                    # The same transaction id twice is one event: a send that is repeated does no harm.
                    said = await self.client.room_send(command.channel.id, kind, content, tx_id=command.delivery)
                except aiohttp.ClientConnectorError:
                    return events.Settled(command.chat, command.delivery, "failed", reason="not connected")
                except (aiohttp.ClientError, TimeoutError) as problem:
                    reason = type(problem).__name__
                    return events.Settled(command.chat, command.delivery, "unknown", reason=reason)
                return settled(command, said)
            case commands.TurnSettled():
                self.agent.turn_over(command)
            case _:
                pass  # the others: duties 13 to 17
        return None

    async def reconcile(self, delivery: str) -> str:
        """Say that it did not arrive: to send it again is harmless, as long as the server remembers the transaction."""
        return "not_sent"


def event_of(command: commands.Send | commands.Edit | commands.React) -> tuple[str, dict[str, Any]]:
    """Return type and content of what is sent."""
    match command:
        case commands.Send():
            content: dict[str, Any] = {"msgtype": "m.text", "body": command.text}
            if command.quote is not None:
                content["m.relates_to"] = {"m.in_reply_to": {"event_id": str(command.quote)}}
            return "m.room.message", content
        case commands.Edit():
            new = {"msgtype": "m.text", "body": command.text}
            relation = {"rel_type": "m.replace", "event_id": str(command.message)}
            return "m.room.message", new | {"body": f"* {command.text}", "m.new_content": new, "m.relates_to": relation}
        case commands.React():
            relation = {"rel_type": "m.annotation", "event_id": str(command.message), "key": MARKS[command.mark]}
            return "m.reaction", {"m.relates_to": relation}


def settled(command: commands.Settleable, said: RoomSendResponse | ErrorResponse) -> events.Settled:
    """Say what the server's answer means; the table "What a platform says"."""
    if isinstance(said, RoomSendResponse):
        shown = command.message if isinstance(command, commands.Edit) else said.event_id
        return events.Settled(command.chat, command.delivery, "sent", messages=(shown,))
    if said.status_code == "M_LIMIT_EXCEEDED":
        wait_ms = said.retry_after_ms
        return events.Settled(command.chat, command.delivery, "failed", reason="rate_limited", retry_after_ms=wait_ms)
    if said.status_code == "M_FORBIDDEN":
        return events.Settled(command.chat, command.delivery, "failed", reason=said.message, permanent=True)
    return events.Settled(command.chat, command.delivery, "unknown", reason=said.message)


async def serve(client: AsyncClient, agent: Agent, since: str | None = None) -> None:
    """Sync and perform until cancelled; keep `client.next_batch`, and give it as `since` the next time."""
    async with Engine(CONFIG, Gateway(client, agent)) as engine:
        agent.start(engine)

        async def hear(place: MatrixRoom, event: RoomMessageText) -> None:
            """Tell the engine what came in, then hand it to the agent; the next sync begins after that."""
            chat, room = f"mx-{place.room_id}", ChannelRef("matrix", place.room_id)
            edit = "m.new_content" in event.source["content"]
            if event.sender == client.user_id or edit or agent.knows(event.event_id):
                return
            told: events.Event = events.TurnOpened(chat, event.event_id, channel=room, message=event.event_id)
            if agent.busy(chat):
                told = events.InputFolded(chat, event.event_id, "autosteer", channel=room, message=event.event_id)
            await admitted(engine, told)
            agent.hand(chat, event.event_id, event.body)

        client.add_event_callback(hear, RoomMessageText)
        await client.sync_forever(timeout=20_000, since=since)


if __name__ == "__main__":
    matrix = AsyncClient(os.environ["MATRIX_SERVER"], config=NO_RETRIES)
    matrix.restore_login(os.environ["MATRIX_USER"], "turnkeeper", os.environ["MATRIX_TOKEN"])
    asyncio.run(serve(matrix, Agent()))
