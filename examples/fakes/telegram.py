"""A Bot API: long polling, messages that reply, HTML, edits, reactions, and its refusals in Telegram's words."""

import asyncio
import json
import re
from collections.abc import Iterator
from time import monotonic
from typing import Any

from aiohttp import web

from examples.fakes.platform import Bubble, Call, Failure, Platform, Refusal, said

TAG = re.compile(r"</?(?:b|i|u|s|code|pre|a|blockquote)(?: [^<>]*)?>")


def refused(description: str, status: int = 400, **parameters: int) -> Failure:
    body: dict[str, Any] = {"ok": False, "error_code": status, "description": description}
    return Failure(status, body | ({"parameters": parameters} if parameters else {}))


def too_many(retry_after: int) -> Failure:
    return refused(f"Too Many Requests: retry after {retry_after}", 429, retry_after=retry_after)


REPLY_GONE = refused("Bad Request: message to be replied not found")
NO_HTML = refused("Bad Request: can't parse entities: Unsupported start tag at byte offset 0")
NOT_MODIFIED = refused("Bad Request: message is not modified")
NO_MESSAGE = refused("Bad Request: message to edit not found")
BLOCKED = refused("Forbidden: bot was blocked by the user", 403)


class BotApi(Platform):
    """`user_says` is a user; everything else is what a bot may call."""

    def __init__(self) -> None:
        super().__init__()
        self.updates: list[dict[str, Any]] = []
        self.confirmed = 0
        """Updates below this will not come again."""
        self.methods = {
            "getMe": lambda args: {"id": 1, "is_bot": True, "first_name": "bot", "username": "the_bot"},
            "deleteWebhook": lambda args: True,
            "sendMessage": self._send,
            "editMessageText": self._edit,
            "deleteMessage": self._delete,
            "setMessageReaction": self._react,
        }

    async def user_says(self, room: str, text: str) -> int:
        message = self._new(room, Bubble(self.number(), "user", text))
        self.updates.append({"update_id": len(self.updates) + 1, "message": message})
        await self.changed()
        return int(message["message_id"])

    def user_deletes(self, room: str, message: int) -> None:
        del self.rooms[room][message]

    # ------------------------------------------------------------ the API

    def routes(self) -> Iterator[web.RouteDef]:
        yield web.post("/bot{token}/{method}", self._call)
        yield web.get("/bot{token}/{method}", self._call)

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        args = {key: plain(value) for key, value in {**request.query, **await request.post()}.items()}
        if method == "getUpdates":
            return await self._get_updates(args)
        if method not in self.methods:
            return said(refused("Not Found", 404).body, 404)
        return await self.answer(method, args, lambda: {"ok": True, "result": self.methods[method](args)})

    async def _get_updates(self, args: dict[str, Any]) -> web.Response:
        offset, until = int(args.get("offset", 0)), monotonic() + float(args.get("timeout", 0))
        self.confirmed = max(self.confirmed, offset)
        self.calls.append(Call("getUpdates", args, 200))
        await self.changed()
        async with self._changed:
            while not (found := [u for u in self.updates if u["update_id"] >= offset]) and monotonic() < until:
                try:
                    await asyncio.wait_for(self._changed.wait(), max(0.0, until - monotonic()))
                except TimeoutError:
                    break
        return said({"ok": True, "result": found})

    def _send(self, args: dict[str, Any]) -> dict[str, Any]:
        room = str(args["chat_id"])
        quote = (args.get("reply_parameters") or {}).get("message_id")
        if quote is not None and quote not in self.rooms[room]:
            raise Refusal(REPLY_GONE)
        readable(args)
        return self._new(room, Bubble(self.number(), self.bot, args["text"], quote))

    def _edit(self, args: dict[str, Any]) -> dict[str, Any]:
        bubble = self._find(args)
        readable(args)
        if bubble.text == args["text"]:
            raise Refusal(NOT_MODIFIED)
        bubble.text, bubble.edits = args["text"], bubble.edits + 1
        return message_of(str(args["chat_id"]), bubble)

    def _delete(self, args: dict[str, Any]) -> bool:
        del self.rooms[str(args["chat_id"])][self._find(args).id]
        return True

    def _react(self, args: dict[str, Any]) -> bool:
        self._find(args).reactions = [reaction["emoji"] for reaction in args.get("reaction", [])]
        return True

    def _find(self, args: dict[str, Any]) -> Bubble:
        bubble = self.rooms[str(args["chat_id"])].get(args["message_id"])
        if bubble is None:
            raise Refusal(NO_MESSAGE)
        return bubble

    def _new(self, room: str, bubble: Bubble) -> dict[str, Any]:
        self.rooms[room][bubble.id] = bubble
        return message_of(room, bubble)


def plain(value: Any) -> Any:
    """Read a form's field: numbers, lists and objects are JSON."""
    if isinstance(value, str) and re.match(r"^(-?\d+$|[\[{]|true$|false$)", value):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def readable(args: dict[str, Any]) -> None:
    """Refuse HTML that Telegram cannot parse."""
    if args.get("parse_mode") == "HTML" and "<" in TAG.sub("", args["text"]):
        raise Refusal(NO_HTML)


def message_of(room: str, bubble: Bubble) -> dict[str, Any]:
    user = {"id": 1 if bubble.by == "bot" else 7, "is_bot": bubble.by == "bot", "first_name": bubble.by}
    chat = {"id": int(room), "type": "private", "first_name": "user"}
    return {"message_id": bubble.id, "date": 1_790_000_000, "chat": chat, "from": user, "text": bubble.text}
