"""Four turns in one channel through the whole engine; two of them are refused once and twice (RULES-answers f)."""

from __future__ import annotations

from queue import Empty, SimpleQueue

import pytest

from turnkeeper import ChannelRef, Engine, commands, events

CHAT, ROOM = "c1", ChannelRef("dc", "C1")
WAIT_S = 10


class Host:
    """Performs everything at once; an agent that refuses the messages it is told to refuse."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.seen: list[commands.Command] = []
        self.settled: SimpleQueue[commands.TurnSettled] = SimpleQueue()
        self.wakes: SimpleQueue[commands.Wake] = SimpleQueue()

    def perform(self, command: commands.Command) -> events.Settled | None:
        self.seen.append(command)
        match command:
            case commands.Send() | commands.React():
                return events.Settled(
                    CHAT, command.delivery, "sent", attempt=command.attempt, messages=(len(self.seen),)
                )
            case commands.Rewind() if self.engine is not None:
                self.engine.post(events.Rewound(CHAT, command.turn_id, 1))
            case commands.Wake():
                self.wakes.put(command)
            case commands.TurnSettled():
                self.settled.put(command)
            case _:
                pass
        return None

    def live(self, message: str, *, refusals: int) -> None:
        """One message: a turn, its refusals and retries, and the answer in plain speech."""
        engine = self.engine
        assert engine is not None
        engine.post(events.Inbound(CHAT, channel=ROOM, message=message, addressed=True)).wait(WAIT_S)
        for attempt in range(refusals):
            turn_id = f"{message}-{attempt}"
            engine.post(events.TurnOpened(CHAT, turn_id)).wait(WAIT_S)
            engine.post(events.Refused(CHAT, turn_id)).wait(WAIT_S)
            assert self.settled.get(timeout=WAIT_S).outcome == "refused"
            wake = self.wakes.get(timeout=WAIT_S)
            assert (wake.channel, wake.message, wake.addressed) == (ROOM, message, True)
        engine.post(events.TurnOpened(CHAT, message)).wait(WAIT_S)
        engine.post(events.Stopped(CHAT, f"answer to {message}", turn_id=message)).wait(WAIT_S)
        settled = self.settled.get(timeout=WAIT_S)
        assert (settled.turn_id, settled.outcome, settled.delivered) == (message, "fallback", "yes")


def test_every_reply_is_published_and_no_retry_reads_a_notice() -> None:
    host = Host()
    with Engine({"refusal": {"auto_rewind": True}, "timers": {"stop_grace_ms": 20}}, host) as engine:
        host.engine = engine
        for message, refusals in (("m1", 0), ("m2", 1), ("m3", 2), ("m4", 0)):
            host.live(message, refusals=refusals)
    sends = [command for command in host.seen if isinstance(command, commands.Send)]
    assert [(send.channel, send.text, send.quote) for send in sends] == [
        (ROOM, f"answer to {message}", message) for message in ("m1", "m2", "m3", "m4")
    ]
    assert not [command for command in host.seen if isinstance(command, commands.Notice | commands.React)]
    assert [command.locus for command in host.seen if isinstance(command, commands.Record)] == [ROOM] * 3
    with pytest.raises(Empty):
        host.wakes.get_nowait()
