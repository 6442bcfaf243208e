"""A gateway with threads: `perform` returns at once, a worker sends and settles. Its duties: docs/EMBEDDING.md."""

from queue import SimpleQueue
from threading import Event, Thread

from turnkeeper import ChannelRef, Engine, commands, events

CHAT, ROOM = "c1", ChannelRef("tg", "100")


class Gateway:
    def __init__(self) -> None:
        self.outbox: SimpleQueue[commands.Send | None] = SimpleQueue()
        self.over = Event()

    def perform(self, command: commands.Command) -> None:
        if isinstance(command, commands.Send):
            self.outbox.put(command)  # settled by the worker, later
        elif isinstance(command, commands.TurnSettled):
            print(f"turn {command.turn_id}: {command.outcome}, delivered: {command.delivered}")
            self.over.set()


def work(engine: Engine, outbox: "SimpleQueue[commands.Send | None]") -> None:
    for message, send in enumerate(iter(outbox.get, None), start=9001):
        print(f"{send.channel}, quoting {send.quote}: {send.text}")
        engine.post(events.Settled(send.chat, send.delivery, "sent", attempt=send.attempt, messages=(message,)))


if __name__ == "__main__":
    gateway = Gateway()
    with Engine({"timers": {"stop_grace_ms": 100}}, gateway) as engine:
        Thread(target=work, args=(engine, gateway.outbox), daemon=True).start()
        engine.post(events.TurnOpened(CHAT, "P", channel=ROOM, message=6406)).wait(10)  # now confirm 6406
        ack = engine.call(events.Reply(CHAT, "call-1", turn_id="P", text="Done."), timeout_s=60)
        print(f"the tool's result: ok={ack.ok}, message={ack.message}")
        engine.post(events.Stopped(CHAT, "I have answered.")).wait(10)
        gateway.over.wait(10)
        gateway.outbox.put(None)
