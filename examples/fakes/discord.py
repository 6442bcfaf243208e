"""Discord as far as a bot sends, edits and reacts: REST, and a gateway that greets, identifies, beats and resumes."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from aiohttp import WSMsgType, web

from examples.fakes.platform import Bubble, Failure, Platform, Refusal, said

API = "/api/v10"
BOT = {"id": "1", "username": "bot", "discriminator": "0", "avatar": None, "bot": True}
USER = {"id": "7", "username": "user", "discriminator": "0", "avatar": None}


def too_many(retry_after_s: float) -> Failure:
    body = {"message": "You are being rate limited.", "retry_after": retry_after_s, "global": False}
    return Failure(429, body, {"Via": "1.1 google"})


def unknown_message(status: int = 404) -> Failure:
    return Failure(status, {"code": 10008, "message": "Unknown Message"})


REPLY_GONE = Failure(
    400,
    {
        "code": 50035,
        "message": "Invalid Form Body",
        "errors": {
            "message_reference": {"_errors": [{"code": "REPLIES_UNKNOWN_MESSAGE", "message": "Unknown message"}]}
        },
    },
)
FORBIDDEN = Failure(403, {"code": 50007, "message": "Cannot send messages to this user"})
BAD_GATEWAY = Failure(502, {"message": "502: Bad Gateway"})


class Discord(Platform):
    """Direct messages with one user; a nonce that is enforced sends once."""

    def __init__(self) -> None:
        super().__init__()
        self.sockets: set[web.WebSocketResponse] = set()
        self.dispatched: list[dict[str, Any]] = []
        self.resumed = 0
        self._nonces: dict[str, dict[str, Any]] = {}

    async def user_says(self, room: str, text: str) -> int:
        bubble = self._new(room, "user", text)
        await self.dispatch("MESSAGE_CREATE", message_of(room, bubble))
        return int(bubble.id)

    def user_deletes(self, room: str, message: int) -> None:
        del self.rooms[room][message]

    async def cut(self) -> None:
        """Lose every connection; the library resumes, and what it missed is replayed."""
        for socket in list(self.sockets):
            await socket.close(code=4000)

    # ------------------------------------------------------------ the gateway

    async def dispatch(self, kind: str, data: dict[str, Any]) -> None:
        self.dispatched.append({"op": 0, "t": kind, "s": len(self.dispatched) + 1, "d": data})
        for socket in list(self.sockets):
            await socket.send_json(self.dispatched[-1])
        await self.changed()

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 30_000}})
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await self._told(socket, json.loads(message.data))
        self.sockets.discard(socket)
        return socket

    async def _told(self, socket: web.WebSocketResponse, told: dict[str, Any]) -> None:
        if told["op"] == 1:
            await socket.send_json({"op": 11})
        elif told["op"] == 2:
            self.sockets.add(socket)
            resume_at = self.url.replace("http", "ws")
            ready = {"v": 10, "user": BOT, "session_id": "s", "resume_gateway_url": resume_at, "guilds": []}
            await self.dispatch("READY", ready | {"application": {"id": "1", "flags": 0}})
        elif told["op"] == 6:
            self.resumed += 1
            for missed in self.dispatched[told["d"]["seq"] :]:
                await socket.send_json(missed)
            self.sockets.add(socket)
            await self.dispatch("RESUMED", {})

    # ------------------------------------------------------------ REST

    def routes(self) -> Iterator[web.RouteDef]:
        yield web.get("/", self._gateway)
        yield web.get(f"{API}/users/@me", self._me)
        yield web.get(f"{API}/oauth2/applications/@me", self._application)
        yield web.post(f"{API}/channels/{{room}}/messages", self._send)
        yield web.patch(f"{API}/channels/{{room}}/messages/{{message}}", self._edit)
        yield web.put(f"{API}/channels/{{room}}/messages/{{message}}/reactions/{{emoji}}/@me", self._react)

    async def _me(self, request: web.Request) -> web.Response:
        return said(BOT)

    async def _application(self, request: web.Request) -> web.Response:
        about = {"id": "1", "name": "bot", "icon": None, "description": "", "bot_public": True, "flags": 0}
        return said(about | {"bot_require_code_grant": False, "verify_key": "", "owner": USER})

    async def _send(self, request: web.Request) -> web.Response:
        args, room = await request.json(), request.match_info["room"]

        def act() -> dict[str, Any]:
            nonce = str(args.get("nonce"))
            if args.get("enforce_nonce") and nonce in self._nonces:
                return self._nonces[nonce]
            reference = args.get("message_reference") or {}
            quote = int(reference["message_id"]) if reference else None
            if quote is not None and quote not in self.rooms[room]:
                if reference.get("fail_if_not_exists", True):
                    raise Refusal(REPLY_GONE)
                quote = None
            self._nonces[nonce] = message_of(room, self._new(room, self.bot, args["content"], quote))
            return self._nonces[nonce]

        return await self.answer("send", {"room": room} | args, act)

    async def _edit(self, request: web.Request) -> web.Response:
        args, room, message = await request.json(), request.match_info["room"], int(request.match_info["message"])

        def act() -> dict[str, Any]:
            bubble = self._find(room, message)
            bubble.text, bubble.edits = args["content"], bubble.edits + 1
            return message_of(room, bubble)

        return await self.answer("edit", {"room": room, "message": message} | args, act)

    async def _react(self, request: web.Request) -> web.Response:
        room, message, emoji = (unquote(request.match_info[key]) for key in ("room", "message", "emoji"))

        def act() -> dict[str, Any]:
            self._find(room, int(message)).reactions.append(emoji)
            return {}

        return await self.answer("react", {"room": room, "message": int(message), "emoji": emoji}, act)

    def _find(self, room: str, message: int) -> Bubble:
        if message not in self.rooms[room]:
            raise Refusal(unknown_message())
        return self.rooms[room][message]

    def _new(self, room: str, by: str, text: str, quote: int | None = None) -> Bubble:
        bubble = Bubble(1_400_000_000_000_000_000 + self.number(), by, text, quote)
        self.rooms[room][bubble.id] = bubble
        return bubble


def message_of(room: str, bubble: Bubble) -> dict[str, Any]:
    lists: dict[str, list[Any]] = {key: [] for key in ("attachments", "embeds", "mentions", "mention_roles")}
    return lists | {
        "id": str(bubble.id),
        "channel_id": room,
        "author": BOT if bubble.by == "bot" else USER,
        "content": bubble.text,
        "timestamp": "2026-01-01T00:00:00+00:00",
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "pinned": False,
        "type": 0,
    }
