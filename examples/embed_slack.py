"""A gateway beside slack_bolt, in threads: a plain `perform`, and an event acknowledged when it is in the journal.

SLACK_BOT_TOKEN=… SLACK_SIGNING_SECRET=… python -m examples.embed_slack        the duties: docs/EMBEDDING.md
"""

import os
import threading
from typing import Any
from urllib.error import URLError

from slack_bolt import App
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from examples.agent import Agent
from turnkeeper import ChannelRef, Engine, commands, events

MARKS = {"refused": "no_entry"}
CONFIG = {"timers": {"stop_grace_ms": 100}}
ADMISSION_S = 2.5
"""Slack waits three seconds for the answer to an event, then brings it again."""


class Gateway:
    """Commands to calls of the Web API. `WebClient(retry_handlers=[])`: it must not try again on its own, duty 11."""

    def __init__(self, client: WebClient, agent: Agent) -> None:
        self.client, self.agent = client, agent

    def perform(self, command: commands.Command) -> events.Settled | None:
        match command:
            case commands.Send() | commands.Edit() | commands.React():
                try:
                    messages = self.call(command)
                except (SlackApiError, OSError) as problem:
                    return settled(command, problem)
                return events.Settled(command.chat, command.delivery, "sent", messages=messages)
            case commands.TurnSettled():
                self.agent.turn_over(command)
            case _:
                pass  # the others: duties 13 to 17
        return None

    def call(self, command: commands.Send | commands.Edit | commands.React) -> tuple[str, ...]:
        """Do it; return what is visible now."""
        room = command.channel.id
        match command:
            case commands.Send():
                sent = self.client.chat_postMessage(
                    channel=room,
                    text=command.text,
                    blocks=blocks(command.text) if command.format == "rich" else None,
                    thread_ts=None if command.quote is None else str(command.quote),
                )
                return (str(sent["ts"]),)
            case commands.Edit():
                shown = blocks(command.text) if command.format == "rich" else []
                self.client.chat_update(channel=room, ts=str(command.message), text=command.text, blocks=shown)
                return (str(command.message),)
            case commands.React():
                self.client.reactions_add(channel=room, timestamp=str(command.message), name=MARKS[command.mark])
                return ()


def blocks(text: str) -> list[dict[str, Any]]:
    return [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]


def settled(command: commands.Settleable, problem: SlackApiError | OSError) -> events.Settled:
    """Say what a refusal of Slack means; the table "What a platform says"."""

    def failed(reason: str, *, permanent: bool = False, retry_after_ms: int | None = None) -> events.Settled:
        return events.Settled(
            command.chat, command.delivery, "failed", reason=reason, permanent=permanent, retry_after_ms=retry_after_ms
        )

    if isinstance(problem, SlackApiError):
        error = str(problem.response["error"])
        if problem.response.status_code == 429:
            return failed("rate_limited", retry_after_ms=int(problem.response.headers["Retry-After"]) * 1000)
        reasons = {
            "cannot_reply_to_message": "quote_gone",
            "invalid_blocks": "format",
            "invalid_blocks_format": "format",
        }
        return failed(reasons.get(error, error), permanent=error not in reasons)
    if isinstance(problem, URLError) and isinstance(problem.reason, ConnectionRefusedError):
        return failed("not connected")  # it never left
    return events.Settled(command.chat, command.delivery, "unknown", reason=type(problem).__name__)


def app_for(engine: Engine, agent: Agent, client: WebClient, secret: str) -> App:
    """Make the app: an exception of `hear`, Overloaded too, is a 500, and Slack brings the event again."""
    app = App(client=client, signing_secret=secret, process_before_response=True)
    one_by_one = threading.Lock()

    @app.event("message")
    def hear(event: dict[str, Any]) -> None:
        """Tell the engine what came in, then hand it to the agent."""
        if event.get("subtype") or event.get("bot_id"):
            return
        chat, room, message = f"slack-{event['channel']}", ChannelRef("slack", event["channel"]), event["ts"]
        turn_id = f"{chat}-{message}"
        with one_by_one:
            if agent.knows(turn_id):
                return  # brought again
            told: events.Event = events.TurnOpened(chat, turn_id, channel=room, message=message)
            if agent.busy(chat):
                told = events.InputFolded(chat, turn_id, "autosteer", channel=room, message=message)
            engine.post(told).wait(ADMISSION_S)
            agent.hand(chat, turn_id, event["text"])

    return app


if __name__ == "__main__":
    web, an_agent = WebClient(os.environ["SLACK_BOT_TOKEN"], retry_handlers=[]), Agent()
    with Engine(CONFIG, Gateway(web, an_agent)) as running:
        an_agent.start(running)
        app_for(running, an_agent, web, os.environ["SLACK_SIGNING_SECRET"]).start(port=3000)
