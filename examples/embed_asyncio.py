"""A gateway in asyncio: a question, a follow-up folded into its turn, one answer. Its duties: docs/EMBEDDING.md."""

import asyncio

from turnkeeper import ChannelRef, Engine, commands, events

CHAT, ROOM = "c1", ChannelRef("tg", "100")


class Gateway:
    """Your platform; this one prints."""

    async def perform(self, command: commands.Command) -> events.Settled | None:
        match command:
            case commands.Send():
                print(f"{command.channel}, quoting {command.quote}: {command.text}")
                return events.Settled(command.chat, command.delivery, "sent", messages=(9001,))
            case commands.TurnSettled():
                print(f"turn {command.turn_id}: {command.outcome}, delivered: {command.delivered}")
            case _:
                pass  # the other commands: see the duties
        return None


async def main() -> None:
    async with Engine({"timers": {"stop_grace_ms": 100}}, Gateway()) as engine:
        await engine.post(events.TurnOpened(CHAT, "P", channel=ROOM, message=6406))
        # The event is in the journal: confirm message 6406 to the platform, then hand it to the agent.
        await engine.post(events.InputFolded(CHAT, "F", "autosteer", channel=ROOM, message=6407))
        # The agent's tool call, as the model wrote it: it echoes the follow-up, and names both.
        reply = events.Reply(CHAT, "call-1", turn_id="F", consumed_turn_ids=["P", "F"], text="Both are done.")
        ack = await engine.ask(reply)
        print(f"the tool's result: ok={ack.ok}, message={ack.message}")
        # The agent's Stop hook: its closing words are no second answer.
        await engine.post(events.Stopped(CHAT, "In short: done."))
        await engine.turn_settled(CHAT, "P")


if __name__ == "__main__":
    asyncio.run(main())
