"""Writes openclaw-session.jsonl: a made-up session of OpenClaw that has every shape its files take.

    python examples/make_openclaw_session.py          # writes the session and its counts beside this script
    turnkeeper transcript check examples/openclaw-session.jsonl
    turnkeeper transcript view examples/openclaw-session.jsonl

The counts that `check` must give are counted here, while writing, not taken from turnkeeper.
"""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent
SESSION = "0f6a2c1e-made-up"
CHAT = "4242"
START = datetime(2026, 7, 1, 8, 0, tzinfo=UTC)
SPENT = {"input": 812, "output": 64, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 876}
ZERO = dict.fromkeys(SPENT, 0)
REWRITTEN = {"input": 40, "output": 21}

TALK = [
    ("When does the library close?", "It closes at 20:00 on weekdays and at 14:00 on Saturdays."),
    ("And on Sundays?", "On Sundays it stays closed."),
    ("Remind me to bring the books back.", "I will remind you on Friday at 17:00."),
    ("What is the weather tomorrow?", "Tomorrow: 19 degrees, light wind, some rain after noon."),
    ("Do I need an umbrella?", "After noon, yes."),
    ("How long do I cook lentils?", "Red ones 12 minutes, brown ones 25, always without salt at first."),
    ("Thanks!", "You are welcome."),
    ("Which train should I take to be there at nine?", "The 07:42. It arrives at 08:51, platform 3."),
    ("Is it usually on time?", "In the last month it was late twice, by 6 and by 11 minutes."),
    ("Say that again, please.", "In the last month it was late twice, by 6 and by 11 minutes."),
]


class Writer:
    """Writes entries, hangs each below the one before, and counts what a reader must find."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()
        self.parent: str | None = None
        self.number = 0

    def put(self, kind: str, *, side: bool = False, parentless: bool = False, **fields: object) -> str:
        """Write one entry and return its id."""
        self.number += 1
        ident = f"{self.number:08x}"
        when = (START + timedelta(seconds=37 * self.number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry: dict[str, object] = {"type": kind, "id": ident, "parentId": self.parent, "timestamp": when, **fields}
        if parentless:
            del entry["parentId"]
        if side:
            entry["appendMode"] = "side"
        else:
            self.parent = ident
        self.lines.append(json.dumps(entry, ensure_ascii=False))
        return ident

    def message(
        self, role: str, content: object, *, side: bool = False, parentless: bool = False, **more: object
    ) -> str:
        """Write a message."""
        return self.put("message", side=side, parentless=parentless, message={"role": role, "content": content, **more})

    def user(self, content: object, **more: bool) -> str:
        """Write what a user said."""
        self.counts["messages"] += 1
        return self.message("user", content, timestamp=1_782_892_800_000 + self.number, **more)

    def answer(self, text: str, *blocks: object, stop: str = "stop") -> str:
        """Write what the model said."""
        self.counts["messages"] += 1
        content = [*([text_block(text)] if text else []), *blocks]
        return self.message(
            "assistant", content, api="anthropic-messages", provider="anthropic", model="claude-made-up",
            usage=SPENT, stopReason=stop,
        )  # fmt: skip

    def mirror(self, text: str, key: str | None, kind: str | None = "channel-final", **more: object) -> str:
        """Write a receipt as OpenClaw does."""
        self.counts["messages"] += 1
        self.counts["receipts"] += 1
        mark = (
            {}
            if kind is None
            else {"openclawDeliveryMirror": {"kind": kind, "sourceMessageId": str(6400 + self.number)}}
        )
        keyed = {} if key is None else {"idempotencyKey": key}
        return self.message(
            "assistant", [text_block(text)], api="openclaw-transcript",
            **{"provider": "openclaw", "model": "delivery-mirror", "usage": ZERO, "stopReason": "stop", **keyed, **mark, **more},
        )  # fmt: skip

    def stripped(self, text: str, reason: str) -> str:
        """Write a receipt that a rebuild stripped: role, content and a usage of its own."""
        self.counts["messages"] += 1
        self.counts[reason] += 1
        return self.message("assistant", [text_block(text)], usage=REWRITTEN)


def text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def key(number: int) -> str:
    return f"telegram-final:{SESSION}:{CHAT}:{6400 + number}:0"


def ordinary_turns(w: Writer) -> None:
    """Each answer delivered, each delivery recorded; repeats across user turns that are no doubles."""
    for number, (question, reply) in enumerate(TALK):
        w.user(question if number % 2 else [text_block(question)])
        w.answer(reply, {"type": "thinking", "thinking": "Short answer.", "thinkingSignature": "c2ln"})
        w.mirror(reply, key(number))
        w.counts["receipt"] += 1


def lists(w: Writer) -> None:
    """Small talk without deliveries: a session that was read in a terminal."""
    for number in range(1, 8):
        w.user(f"Note number {number}: call the garage.")
        w.answer("Noted.")


def stripped_turns(w: Writer) -> None:
    """What a rebuild left of receipts: doubled pairs that a filter on provider and model lets through."""
    for number, (question, reply) in enumerate(TALK[:9]):
        w.user(question)
        w.answer(reply)
        if number % 3 == 0:
            w.put("custom", customType="cache-ttl", data={"ttl": 300})
        w.stripped(reply if number % 2 else f"{reply} ", "e0" if number % 2 else "e1")
        w.counts["pairs"] += 1
    w.user("How do I get to the harbour?")
    w.answer("[[reply_to_current]] Take line 4.\n\nGet out at Old Harbour.\n\nThe pier is on the left.")
    for chunk in ("Take line 4.", "Get out at Old Harbour.", "The pier is on the left."):
        w.stripped(chunk, "e2")


def receipts_of_every_kind(w: Writer) -> None:
    """Kinds, the sibling, chunks, media, keys, and marks that lost their company."""
    w.user("Send me the map.")
    w.answer("Here it is.", {"type": "image", "mimeType": "image/png", "data": "bWFwZS11cA==", "alt": None})
    w.mirror("harbour-map.png", "channel-final:6431:single")
    w.counts["receipt"] += 1
    w.user("And the timetable?")
    w.answer("Line 4: every 12 minutes. Line 7: every 20 minutes.")
    for part, chunk in enumerate(("Line 4: every 12 minutes.", "Line 7: every 20 minutes."), start=1):
        w.mirror(chunk, f"channel-final:6432:{part}")
        w.counts["receipt"] += 1
    w.user("ok")
    w.answer("Good.")
    w.mirror("Good.", "channel-final:6433:single", "channel-final-suppressed")
    w.mirror("Good.", None, None)  # provider and model alone
    w.mirror("Good.", None, provider=None, model=None, usage=REWRITTEN)  # the kind alone
    w.counts["receipt"] += 3
    w.counts["leaked"] += 1
    w.counts["pairs"] += 1
    w.user("Any news from the workshop?")
    w.mirror("The workshop called: the bicycle is ready.", "announce:v1:child-7:run-3", "message-tool-source-reply")
    w.mirror(
        "Daily summary: nothing due.",
        f"cron-direct-delivery:v1:exec-9:telegram:bot:{CHAT}:",
        "cron-direct-delivery-context",
    )
    w.mirror("Session settings changed.", None, None, model="gateway-injected")
    w.counts["standalone"] += 3
    w.answer("Yes: the bicycle is ready.")
    w.counts["messages"] += 1
    w.counts["receipts"] += 1
    w.counts["receipt"] += 1
    w.put(
        "message", side=True,
        message={"role": "assistant", "content": [text_block("Yes: the bicycle is ready.")], "usage": ZERO},
        receipt={
            "key": "reply:c1:call-17", "source_entry_id": w.parent, "answers": [6436],
            "route": {"channel": "telegram", "account": "bot", "chat": CHAT, "thread": None}, "part": [1, 1],
            "platform_ids": [9001], "state": "sent", "reason": None, "at": 1_782_893_000_000,
        },
    )  # fmt: skip


def tools(w: Writer) -> None:
    """A receipt between a call and its result, and a call that never got one."""
    w.user("Book the 07:42 for tomorrow.")
    w.answer(
        "One moment.",
        {"type": "toolCall", "id": "toolu_01", "name": "book", "arguments": {"train": "07:42"}},
        stop="toolUse",
    )
    w.mirror("One moment.", "channel-final:6437:single")
    w.counts["receipt"] += 1
    result(w, "toolu_01", "booked, seat 61")
    w.answer("Booked: seat 61.")
    w.mirror("Booked: seat 61.", "channel-final:6437:2")
    w.counts["receipt"] += 1
    w.user("And back?")
    w.answer("", {"type": "tool_use", "id": "toolu_02", "name": "book", "input": {}}, stop="toolUse")
    w.counts["unpaired"] += 1
    w.user("Never mind.")
    w.answer("NO_REPLY")


def result(w: Writer, call_id: str, text: str) -> None:
    w.counts["messages"] += 1
    w.message("toolResult", [text_block(text)], toolCallId=call_id, toolName="book", isError=False)


def navigation(w: Writer) -> None:
    """Bookkeeping, an abandoned branch, a leaf, a side entry, entries without a parent, a receipt as the leaf."""
    w.put("session_info", name="Everyday questions")
    w.put("model_change", provider="anthropic", modelId="claude-made-up")
    w.put("thinking_level_change", thinkingLevel="low")
    here = w.parent
    abandoned(w)
    w.put("leaf", targetId=here, appendParentId=here, appendMode="side")
    w.parent = here
    w.put("branch_summary", fromId=here, summary="Tried to explain the tides; the user took another way.")
    w.put("label", targetId=here, label="before the tides")
    w.counts["messages"] += 1
    w.put("custom_message", customType="reminder", content="The user prefers short answers.", display=False)
    w.user("What is for dinner?", parentless=True)
    w.answer("Lentils.")
    w.mirror("Lentils.", key(90))  # becomes the leaf: the next turn hangs below it
    w.counts["receipt"] += 1
    w.user("Again?")
    w.answer("Again.")
    w.put(
        "message",
        side=True,
        message={"role": "assistant", "content": "A note on the side, in no prompt.", "usage": SPENT},
    )


def abandoned(w: Writer) -> None:
    """Turns that the leaf left behind: in the file, in no prompt; their receipts are found all the same."""
    before = w.counts.copy()
    w.user("Explain the tides.")
    w.answer("The moon pulls, the earth turns.")
    w.mirror("The moon pulls, the earth turns.", key(80))
    receipts = w.counts["receipts"]
    w.counts = before
    w.counts["receipts"] = receipts


def oddities(w: Writer) -> None:
    """A line cut in the middle, an answer that says everything twice, and a twin nobody can know."""
    w.user("")
    w.answer("Did you want to say something?")
    w.lines.append('{"type":"message","id":"torn","parentId":"')
    w.counts["damaged"] += 1
    w.user("Tell me about the pier.")
    passage = "The pier was built in 1911, burnt down in 1954, and was rebuilt by the town's own carpenters, in oak."
    w.answer(f"{passage}\n\n{passage}")
    w.counts["self_repeats"] += 1
    w.user("A picture?")
    w.answer("Gladly.", {"type": "image", "mimeType": "image/png", "data": "cGllcg=="})
    w.stripped("pier.png", "undecidable")


def earlier(w: Writer) -> None:
    """A first part that a compaction replaced: out of the prompt, its receipts still findable."""
    before = w.counts.copy()
    for number, (question, reply) in enumerate(TALK + TALK[:4]):
        w.user(question)
        w.answer(reply)
        w.mirror(reply, f"channel-final:{6300 + number}:single")
        if number % 2:
            w.stripped(reply, "e0")
    receipts = w.counts["receipts"]
    w.counts = before
    w.counts["receipts"] = receipts
    kept = w.user("Good morning!")
    w.answer("Good morning. What can I do?")
    w.put(
        "compaction",
        summary="They talked about the library, trains and lentils.",
        firstKeptEntryId=kept,
        tokensBefore=5120,
    )


def make() -> tuple[list[str], dict[str, int]]:
    """Return the lines and the counts that `turnkeeper transcript check --json` must give."""
    w = Writer()
    header = {
        "type": "session",
        "version": 3,
        "id": SESSION,
        "timestamp": "2026-07-01T08:00:00.000Z",
        "cwd": "/home/made-up",
    }
    w.lines.append(json.dumps(header))
    for part in (earlier, lists, ordinary_turns, stripped_turns, receipts_of_every_kind, tools, navigation, oddities):
        part(w)
    return w.lines, dict(sorted(w.counts.items()))


if __name__ == "__main__":
    session_lines, counted = make()
    (HERE / "openclaw-session.jsonl").write_text("\n".join(session_lines) + "\n", encoding="utf-8")
    (HERE / "openclaw-session.counts.json").write_text(json.dumps(counted, indent=2) + "\n", encoding="utf-8")
    print(f"{len(session_lines)} lines, {counted}")
