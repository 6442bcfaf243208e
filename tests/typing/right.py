"""A small host, typed as strictly as the checkers can: it has no errors. It is also run, by test_typing.py."""

import asyncio
from collections.abc import Sequence
from typing import assert_never, assert_type

from turnkeeper import Admission, ChannelRef, Config, Engine, Gateway, Overloaded, commands, events, load_config


class Host:
    """A gateway with an async `perform`, that can be asked what arrived."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def perform(self, command: commands.Command) -> events.Settled | None:
        match command:
            case commands.Send() | commands.Preview():
                self.said.append(command.text)
                return settled(command, [len(self.said)])
            case commands.Edit() | commands.React():
                return settled(command, [command.message])
            case commands.TurnSettled():
                assert_type(command.outcome, commands.Outcome)
            case commands.Rewind() | commands.Wake() | commands.Notice() | commands.Record() | commands.Redeliver():
                pass
            case commands.Reconcile() | commands.Ack():
                pass
            case _:
                assert_never(command)
        return None

    async def reconcile(self, delivery: str) -> str:
        return "unresolved"


class PlainHost:
    """A gateway with a plain `perform`, which settles later."""

    def perform(self, command: commands.Command) -> None:
        return None


def settled(command: commands.Settleable, messages: Sequence[int | str]) -> events.Settled:
    return events.Settled(command.chat, command.delivery, "sent", messages=tuple(messages))


def config() -> Config:
    return load_config({"timers": {"stop_grace_ms": 0}})


async def main() -> list[str]:
    host = Host()
    gateway: Gateway = host
    async with Engine(config(), gateway) as engine:
        try:
            admission = await engine.post(events.TurnOpened("c1", "P", channel=ChannelRef("tg", "100"), message="7"))
        except Overloaded:
            return []
        assert_type(admission, Admission)
        assert_type(admission.seq, int | None)
        ack = await engine.ask(events.Reply("c1", "k1", turn_id="P", text="Done.", consumed_turn_ids=["P"]))
        assert_type(ack, commands.Ack)
        await engine.post(events.Stopped("c1", "Done."))
        over = await engine.turn_settled("c1", "P")
        assert_type(over, commands.TurnSettled)
    return host.said


def threaded() -> str | int | None:
    with Engine("turnkeeper.toml", PlainHost()) as engine:
        engine.post(events.Activity("c1", "a hook")).wait(10)
        return engine.call(events.Edit("c1", "k2", 9001, "better"), timeout_s=60).message


if __name__ == "__main__":
    print(asyncio.run(main()))
