"""A stand-in for an agent, with a tool to reply and a Stop hook: it works in threads, one for each turn.

What it does depends on the message that starts a turn:
"Move …": it shows what it writes, waits for a follow-up, answers both in one reply that names the follow-up, and sums up;
"Fix …": it edits the bubble it sent last, and says no more; "Curse …": its model refuses; anything else: it answers.
"""

import threading
from queue import SimpleQueue

from turnkeeper import Engine, commands, events

PATIENCE_S = 60


class Agent:
    def __init__(self, answer: str = "Moved to 07:00. And yes, it skips weekends.") -> None:
        self.answer = answer
        self.previews = False
        """Whether its platform shows what it writes."""
        self.inputs_read = threading.Semaphore(0)
        self.turns_over = threading.Semaphore(0)
        self.acks: list[commands.Ack] = []
        self.engine: Engine | None = None
        self._inputs: dict[str, SimpleQueue[str]] = {}
        self._read: set[str] = set()

    def start(self, engine: Engine) -> None:
        self.engine = engine

    # ------------------------------------------------------------ what the host does with it

    def busy(self, chat: str) -> bool:
        """Say whether it works on a turn: then a message is a follow-up."""
        return chat in self._inputs

    def knows(self, turn_id: str) -> bool:
        """Say whether it was handed this input: then the platform repeats itself."""
        return turn_id in self._read

    def hand(self, chat: str, turn_id: str, text: str) -> None:
        """Hand an input over, its id beside it. Never waits."""
        self._read.add(turn_id)
        if chat in self._inputs:
            self._inputs[chat].put(turn_id)
        else:
            self._inputs[chat] = SimpleQueue()
            threading.Thread(target=self._work, args=(chat, turn_id, text), daemon=True).start()
        self.inputs_read.release()

    def turn_over(self, settled: commands.TurnSettled) -> None:
        self.turns_over.release()

    # ------------------------------------------------------------ what it does

    def _work(self, chat: str, turn_id: str, text: str) -> None:
        engine, word = self.engine, text.split(maxsplit=1)[0]
        assert engine is not None
        if word == "Curse":
            del self._inputs[chat]
            engine.post(events.Refused(chat, turn_id, "policy")).wait(PATIENCE_S)
            return
        if word == "Fix":
            last = self.acks[-1].message
            assert last is not None
            self._call(events.Edit(chat, f"call-{turn_id}", last, text.partition(": ")[2], turn_id=turn_id))
        elif word == "Move":
            if self.previews:
                engine.post(events.Preview(chat, "Moved to …", turn_id)).wait(PATIENCE_S)
            follow_up = self._inputs[chat].get(timeout=PATIENCE_S)
            both = [turn_id, follow_up]
            self._call(events.Reply(chat, f"call-{turn_id}", follow_up, consumed_turn_ids=both, text=self.answer))
        else:
            self._call(events.Reply(chat, f"call-{turn_id}", turn_id, consumed_turn_ids=[turn_id], text=self.answer))
        del self._inputs[chat]
        engine.post(events.Stopped(chat, "" if word == "Fix" else "To sum up: it is done.")).wait(PATIENCE_S)

    def _call(self, call: events.Reply | events.Edit) -> None:
        assert self.engine is not None
        self.acks.append(self.engine.call(call, PATIENCE_S))
