"""Slack's Web API, and events signed as Slack signs them, brought to the app in process; again if it does not answer 200."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from aiohttp import web

from examples.fakes.platform import Bubble, Failure, Platform, Refusal, said

SECRET = "the-signing-secret"  # noqa: S105 - of nobody
TEXT_MAX = 3000
Deliver = Callable[[str, dict[str, str]], int]
"""Body and headers of a request to the app → the status it answers."""


def refused(error: str) -> Failure:
    return Failure(200, {"ok": False, "error": error})


def too_many(retry_after_s: int) -> Failure:
    return Failure(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": str(retry_after_s)})


REPLY_GONE = refused("cannot_reply_to_message")
INVALID_BLOCKS = refused("invalid_blocks")
NOT_IN_CHANNEL = refused("not_in_channel")


class Slack(Platform):
    """One workspace; `deliver` is the app's door."""

    def __init__(self) -> None:
        super().__init__()
        self.deliver: Deliver | None = None
        self.delivered: list[int] = []
        """The status of each delivery of an event."""
        self.methods = {
            "auth.test": lambda args: {"user_id": "U1", "bot_id": "B1", "team_id": "T1", "user": "bot", "team": "t"},
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "reactions.add": self._react,
        }

    async def user_says(self, room: str, text: str, *, twice: bool = False) -> str:
        """Tell the app of a message; `twice`: Slack did not get the app's answer and asks again."""
        bubble = self._new(room, "user", text)
        event = {"type": "message", "channel": room, "user": "U7", "text": text, "ts": bubble.id, "event_ts": bubble.id}
        body = {"type": "event_callback", "event_id": f"Ev{bubble.id}", "team_id": "T1", "api_app_id": "A1"}
        for attempt in range(4):
            status = await self.bring(json.dumps(body | {"event": event}), attempt)
            if status == 200 and not (twice and attempt == 0):
                break
        return str(bubble.id)

    async def bring(self, body: str, attempt: int = 0, secret: str = SECRET) -> int:
        """Deliver an event, signed."""
        assert self.deliver is not None
        at = str(int(time.time()))  # noqa: TID251 - the signature is of this second
        signature = "v0=" + hmac.new(secret.encode(), f"v0:{at}:{body}".encode(), hashlib.sha256).hexdigest()
        headers = {"Content-Type": "application/json", "X-Slack-Signature": signature, "X-Slack-Request-Timestamp": at}
        if attempt:
            headers |= {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": "http_timeout"}
        self.delivered.append(await asyncio.to_thread(self.deliver, body, headers))
        return self.delivered[-1]

    # ------------------------------------------------------------ the API

    def routes(self) -> Iterator[web.RouteDef]:
        yield web.post("/api/{method}", self._call)

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        args = await request.json() if request.content_type == "application/json" else dict(await request.post())
        if method not in self.methods:
            return said({"ok": False, "error": "unknown_method"})
        return await self.answer(method, args, lambda: {"ok": True} | self.methods[method](args))

    def _post(self, args: dict[str, Any]) -> dict[str, Any]:
        for block in args.get("blocks") or []:
            if len(block["text"]["text"]) > TEXT_MAX:
                raise Refusal(INVALID_BLOCKS)
        bubble = self._new(args["channel"], self.bot, args["text"], args.get("thread_ts"))
        return {"channel": args["channel"], "ts": bubble.id, "message": {"text": bubble.text, "ts": bubble.id}}

    def _update(self, args: dict[str, Any]) -> dict[str, Any]:
        bubble = self._find(args["channel"], args["ts"])
        bubble.text, bubble.edits = args["text"], bubble.edits + 1
        return {"channel": args["channel"], "ts": bubble.id, "text": bubble.text}

    def _react(self, args: dict[str, Any]) -> dict[str, Any]:
        bubble = self._find(args["channel"], args["timestamp"])
        if args["name"] in bubble.reactions:
            raise Refusal(refused("already_reacted"))
        bubble.reactions.append(args["name"])
        return {}

    def _find(self, room: str, ts: str) -> Bubble:
        if ts not in self.rooms[room]:
            raise Refusal(refused("message_not_found"))
        return self.rooms[room][ts]

    def _new(self, room: str, by: str, text: str, quote: str | None = None) -> Bubble:
        bubble = Bubble(f"1790000000.{self.number():06}", by, text, quote)
        self.rooms[room][bubble.id] = bubble
        return bubble
