"""What users and agents do in a crash test: the same story for the same seed, one chat at a time."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

CHATS = 8
Item = dict[str, Any]


class Turn:
    """One turn of a script: what is posted, and what users must see of it."""

    def __init__(self, chat: str, number: int, rng: Random) -> None:
        self.chat, self.number = chat, number
        self.name = f"{chat}-t{number}"
        self.channel = f"tg/{chat}-{rng.randrange(2)}"
        self.message = number * 10 + 1
        self.kind = rng.choice(["reply", "reply", "fallback", "interim", "fold"])
        self.replies = {"reply": 1, "fallback": 0, "interim": 2, "fold": 1}[self.kind]

    @property
    def keys(self) -> list[str]:
        """The deliveries of its replies, in order."""
        return [f"reply:{self.chat}:{self.name}-c{n}" for n in range(self.replies)]

    @property
    def answers(self) -> list[str]:
        """The deliveries that users must see."""
        return self.keys or [f"fallback:{self.chat}:{self.name}"]

    def items(self) -> Iterator[Item]:
        """Yield the events of the turn, in order."""
        place = {"channel": self.channel, "message": self.message}
        yield {"type": "turn_opened", "chat": self.chat, "turn_id": self.name, **place}
        echoed, consumed = self.name, None
        if self.kind == "fold":
            echoed, consumed = f"{self.name}-f", [self.name, f"{self.name}-f"]
            fold = {"turn_id": echoed, "into": self.name, "source": "autosteer"}
            yield {"type": "input_folded", "chat": self.chat, **fold, **place, "message": self.message + 1}
        for n in range(self.replies):
            call = {"call_id": f"{self.name}-c{n}", "turn_id": echoed, "text": f"answer {n} of {self.name}"}
            also = {} if consumed is None else {"consumed_turn_ids": consumed}
            yield {"type": "reply", "chat": self.chat, **call, **also, "interim": n + 1 < self.replies}
        yield {"type": "stopped", "chat": self.chat, "turn_id": self.name, "text": f"closing words of {self.name}"}


def story(seed: int, chat: str) -> Iterator[Turn]:
    """Yield the turns of a chat, without end."""
    rng, number = Random(f"{seed} {chat}"), 0
    while True:
        number += 1
        yield Turn(chat, number, rng)
