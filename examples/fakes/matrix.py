"""A Matrix homeserver's client API: sync, send with transaction ids, edits, reactions, its rate limit."""

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Any

from aiohttp import web

from examples.fakes.platform import Bubble, Failure, Platform, Refusal, said

BOT, USER = "@bot:local", "@user:local"
API = "/_matrix/client/{version}"


def refused(status: int, code: str, text: str) -> Failure:
    return Failure(status, {"errcode": code, "error": text})


def too_many(retry_after_ms: int) -> Failure:
    body = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": retry_after_ms}
    return Failure(429, body, {"Retry-After": str(-(-retry_after_ms // 1000))})


FORBIDDEN = refused(403, "M_FORBIDDEN", "You are not allowed to post in this room")
NOT_FOUND = refused(404, "M_NOT_FOUND", "Unknown event")


class Matrix(Platform):
    """Rooms that user and bot have joined. The same transaction id twice is one event."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._transactions: dict[str, str] = {}

    async def user_says(self, room: str, text: str) -> str:
        event_id = self._append(room, USER, "m.room.message", {"msgtype": "m.text", "body": text})
        self.rooms[room][event_id] = Bubble(event_id, "user", text)
        await self.changed()
        return event_id

    # ------------------------------------------------------------ the API

    def routes(self) -> Iterator[web.RouteDef]:
        yield web.get(f"{API}/sync", self._sync)
        yield web.put(f"{API}/rooms/{{room}}/send/{{kind}}/{{txn}}", self._send)

    async def _sync(self, request: web.Request) -> web.Response:
        since = int(request.query.get("since", "s0")[1:])
        until = monotonic() + int(request.query.get("timeout", 0)) / 1000
        async with self._changed:
            while len(self.events) <= since and monotonic() < until:
                try:
                    await asyncio.wait_for(self._changed.wait(), max(0.0, until - monotonic()))
                except TimeoutError:
                    break
        joined: dict[str, Any] = {}
        for room, event in self.events[since:]:
            empty: dict[str, Any] = {part: {"events": []} for part in ("state", "ephemeral", "account_data")}
            timeline = {"events": [], "limited": False, "prev_batch": f"s{since}"}
            joined.setdefault(room, empty | {"timeline": timeline, "summary": {}})["timeline"]["events"].append(event)
        return said({"next_batch": f"s{len(self.events)}", "rooms": {"join": joined}})

    async def _send(self, request: web.Request) -> web.Response:
        room, kind, txn = (request.match_info[key] for key in ("room", "kind", "txn"))
        content = await request.json()

        def act() -> dict[str, Any]:
            if txn not in self._transactions:
                self._show(room, kind, content)
                self._transactions[txn] = self._append(room, BOT, kind, content)
                if kind == "m.room.message" and "m.new_content" not in content:
                    reply = content.get("m.relates_to", {}).get("m.in_reply_to", {}).get("event_id")
                    event_id = self._transactions[txn]
                    self.rooms[room][event_id] = Bubble(event_id, self.bot, content["body"], reply)
            return {"event_id": self._transactions[txn]}

        return await self.answer(kind, {"room": room, "txn": txn, "content": content}, act)

    def _show(self, room: str, kind: str, content: dict[str, Any]) -> None:
        """Change what an edit or a reaction is about."""
        relation = content.get("m.relates_to", {})
        if kind == "m.reaction":
            self._find(room, relation["event_id"]).reactions.append(relation["key"])
        elif relation.get("rel_type") == "m.replace":
            bubble = self._find(room, relation["event_id"])
            bubble.text, bubble.edits = content["m.new_content"]["body"], bubble.edits + 1

    def _find(self, room: str, event_id: str) -> Bubble:
        if event_id not in self.rooms[room]:
            raise Refusal(NOT_FOUND)
        return self.rooms[room][event_id]

    def _append(self, room: str, by: str, kind: str, content: dict[str, Any]) -> str:
        event = {"event_id": f"$event{self.number()}", "sender": by, "type": kind, "content": content}
        self.events.append((room, event | {"origin_server_ts": 1_790_000_000_000}))
        return event["event_id"]  # type: ignore[return-value]  # the one text among them
