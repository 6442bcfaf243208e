"""A platform as a process of its own sees it: users write, answers arrive, and it never crashes.

It hands every event to the gateway again until the gateway confirmed it, takes messages, writes down what users
saw in the order in which they saw it, and can say whether a message arrived. Some messages it refuses for the
moment, and some answers it holds back for a while, so that a crash finds messages that arrived and are unconfirmed.
"""

from __future__ import annotations

import json
import selectors
import socket
import threading
from random import Random
from typing import TYPE_CHECKING, Any

from tests.crash.script import CHATS, Turn, story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.crash.script import Item

HELD_MAX = 3
IDLE_S = 0.003


class Chat:
    """The story of one chat, and how far the gateway confirmed it."""

    def __init__(self, seed: int, name: str) -> None:
        self.turns: list[Turn] = []
        self._story = story(seed, name)
        self._items: Iterator[Item] = iter(())
        self.item: Item | None = None

    def next(self, *, ending: bool) -> None:
        """The item was confirmed: go on; at the end with no new turn."""
        self.item = next(self._items, None)
        if self.item is None and not ending:
            self.turns.append(next(self._story))
            self._items = self.turns[-1].items()
            self.item = next(self._items)


class Line:
    """One connection of a gateway."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.read = sock, b""
        self.open = True

    def lines(self) -> list[dict[str, Any]]:
        """Return whatever can be read now."""
        try:
            while data := self.sock.recv(65536):
                self.read += data
            self.open = False
        except BlockingIOError:
            pass
        except OSError:
            self.open = False
        *whole, self.read = self.read.split(b"\n")
        return [json.loads(line) for line in whole]

    def write(self, value: dict[str, Any]) -> None:
        """Say something, if there is still somebody."""
        try:
            self.sock.setblocking(True)
            self.sock.sendall(json.dumps(value).encode() + b"\n")
            self.sock.setblocking(False)
        except OSError:
            self.open = False


class Platform:
    """Runs on a thread of the test's process; the gateways are other processes."""

    def __init__(self, path: Path, seed: int) -> None:
        self.seen: list[dict[str, Any]] = []
        """What users saw, in order."""
        self.told: list[dict[str, Any]] = []
        """Terminals of turns, in order, repeated ones too."""
        self.chats = {f"c{n}": Chat(seed, f"c{n}") for n in range(CHATS)}
        self.ending = False
        self.confirmed = 0
        self.failure: BaseException | None = None
        self._rng = Random(seed)
        self._message = 9000
        self._held: list[tuple[Line, dict[str, Any]]] = []
        self._feed: Line | None = None
        self._selector = selectors.DefaultSelector()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        self._server.setblocking(False)
        self._selector.register(self._server, selectors.EVENT_READ, None)
        self._closing = False
        self._thread = threading.Thread(target=self._main, daemon=True)
        for chat in self.chats.values():
            chat.next(ending=False)
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._closing = True
        self._thread.join(10)
        self._server.close()

    def _main(self) -> None:
        try:
            while not self._closing:
                self._once()
        except BaseException as error:  # noqa: BLE001 - the test reads it
            self.failure = error

    def _once(self) -> None:
        ready = self._selector.select(IDLE_S)
        for key, _ in ready:
            if key.data is None:
                sock, _ = self._server.accept()
                sock.setblocking(False)
                self._selector.register(sock, selectors.EVENT_READ, Line(sock))
            else:
                self._read(key.data)
        if not ready:
            self._let_go(0)

    def _read(self, line: Line) -> None:
        for said in line.lines():
            HANDLERS[said["op"]](self, line, said)
        if not line.open:
            self._selector.unregister(line.sock)
            line.sock.close()

    def _read_all(self) -> None:
        """Take in what killed gateways had written, before saying what arrived."""
        for key in tuple(self._selector.get_map().values()):
            if key.data is not None and key.data.open:
                self._read(key.data)

    # ------------------------------------------------------------ what gateways say

    def _on_feed(self, line: Line, said: dict[str, Any]) -> None:
        self._feed = line
        for name in self.chats:
            self._push(name)

    def _push(self, name: str) -> None:
        item = self.chats[name].item
        if self._feed is not None and item is not None:
            self._feed.write({"event": item})
        self._stop_if_done()

    def _on_confirm(self, line: Line, said: dict[str, Any]) -> None:
        chat = self.chats[said["event"]["chat"]]
        if chat.item == said["event"]:
            self.confirmed += 1
            chat.next(ending=self.ending)
            self._push(said["event"]["chat"])

    def _on_deliver(self, line: Line, said: dict[str, Any]) -> None:
        if self._rng.random() < 0.1:
            line.write({"id": said["id"], "outcome": "failed", "reason": "flaky"})
            return
        self._message += 1
        self.seen.append({**said, "made": self._message})
        answer = {"id": said["id"], "outcome": "sent", "messages": [self._message]}
        if self._rng.random() < 0.4:
            self._held.append((line, answer))
            self._let_go(HELD_MAX)
        else:
            line.write(answer)

    def _let_go(self, most: int) -> None:
        while len(self._held) > most:
            line, answer = self._held.pop(0)
            line.write(answer)

    def _on_reconcile(self, line: Line, said: dict[str, Any]) -> None:
        self._read_all()
        arrived = any(one["delivery"] == said["delivery"] for one in self.seen)
        line.write({"id": said["id"], "answer": "sent" if arrived else "not_sent"})

    def _on_told(self, line: Line, said: dict[str, Any]) -> None:
        self.told.append(said)
        line.write({"id": said["id"]})
        self._stop_if_done()

    # ------------------------------------------------------------ the end

    def end(self) -> None:
        """No new turn begins; once every turn was told, the gateway is asked to stop. From the test's thread."""
        self.ending = True

    def _stop_if_done(self) -> None:
        if not self.ending or self._feed is None or any(chat.item is not None for chat in self.chats.values()):
            return
        ended = {said["turn"] for said in self.told}
        if all(turn.name in ended for turn in self.turns()):
            self._feed.write({"stop": True})

    def left(self) -> str:
        """Say what a last life that does not end waits for."""
        ended = {said["turn"] for said in self.told}
        items = [chat.item for chat in self.chats.values() if chat.item is not None]
        return f"unconfirmed: {items}; untold: {[turn.name for turn in self.turns() if turn.name not in ended]}"

    def turns(self) -> list[Turn]:
        """Every turn that was admitted."""
        return [turn for chat in self.chats.values() for turn in chat.turns]


HANDLERS: dict[str, Callable[[Platform, Line, dict[str, Any]], None]] = {
    "feed": Platform._on_feed,
    "confirm": Platform._on_confirm,
    "deliver": Platform._on_deliver,
    "reconcile": Platform._on_reconcile,
    "told": Platform._on_told,
}
