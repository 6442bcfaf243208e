"""Simulated users and hosts: messages, fast follow-ups, edits, reactions, interrupts, several channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnkeeper.engine.lab.simulation.world import CHANNELS, Chat, Input, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.lab.simulation.player import Raw

__all__ = ["again", "open_turn", "rewind_loop", "users_move"]

KINDS = ("edit", "reaction", "reaction_removed", "deletion", "notice")


def users_move(world: World, chat: Chat) -> Raw | None:
    """Let a user or the host of a chat do something; None if it makes no sense now."""
    return world.weighted(MOVES)(world, chat)


def _channel(world: World) -> str:
    return CHANNELS[0] if world.chance(65) else world.pick(CHANNELS)


def _message(world: World) -> int:
    return 5000 + world.number()


def _participant(world: World) -> str | None:
    return "someone@s" if world.chance(20) else None


def open_turn(world: World, chat: Chat) -> Raw | None:
    """Start a turn for a message, or for whatever is pending."""
    if len(chat.open_turns()) >= 3 and world.chance(80):  # noqa: PLR2004 - more is rare
        return None
    turn_id = f"P{world.number()}"
    source = "primary" if world.chance(90) else world.pick(("system", "subagent"))
    channel, message = (_channel(world), _message(world)) if world.chance(80) else (None, None)
    if source == "subagent":
        channel, message = None, None
    chat.turns[turn_id] = True
    chat.inputs[turn_id] = Input(turn_id, source, channel, message, None)
    return world.event(
        chat,
        "turn_opened",
        turn_id=turn_id,
        source=None if source == "primary" else source,
        channel=channel,
        message=message,
        participant=_participant(world) if channel else None,
    )


def _fold(world: World, chat: Chat) -> Raw | None:
    """Follow up while the agent works."""
    if not chat.open_turns() and world.chance(80):
        return None
    turn_id = f"F{world.number()}"
    source = world.weighted(((60, "autosteer"), (15, "edit-fold"), (15, "inject"), (10, "system")))
    into = None
    if world.chance(25) and chat.turns:
        into = world.pick(list(chat.turns))
    elif world.chance(3):
        into = "nobody"
    channel = _channel(world)
    message = None if source == "system" else _message(world)
    chat.inputs[turn_id] = Input(turn_id, source, channel, message, into)
    return world.event(
        chat,
        "input_folded",
        turn_id=turn_id,
        source=source,
        into=into,
        channel=channel,
        message=message,
        participant=_participant(world),
    )


def again(world: World, chat: Chat) -> Raw | None:
    """Hand an input over again, as the engine asked: folded into a running turn, or as a turn of its own."""
    if not chat.again:
        return None
    entry = chat.inputs.get(chat.again.pop(0))
    if entry is None:
        return None
    if chat.open_turns() and world.chance(60):
        return world.event(
            chat,
            "input_folded",
            turn_id=entry.turn_id,
            source=entry.source,
            channel=entry.channel,
            message=entry.message,
        )
    chat.turns[entry.turn_id] = True
    return world.event(chat, "turn_opened", turn_id=entry.turn_id, channel=entry.channel, message=entry.message)


def _repeat(world: World, chat: Chat) -> Raw | None:
    """Open or fold an id that was used before."""
    if not chat.inputs:
        return None
    entry = world.pick(list(chat.inputs.values()))
    if world.chance(50):
        return world.event(chat, "turn_opened", turn_id=entry.turn_id, channel=entry.channel, message=entry.message)
    return world.event(chat, "input_folded", turn_id=entry.turn_id, source="autosteer", channel=CHANNELS[0], message=1)


def _inbound(world: World, chat: Chat) -> Raw | None:
    """Say something that does not start a turn by itself."""
    kind = "message" if world.chance(60) else world.pick(KINDS)
    event_id = f"e{world.number()}" if world.chance(30) else None
    if chat.unaccepted and world.chance(25):
        event_id = world.pick(chat.unaccepted)[1]
    channel: str | None = _channel(world) if world.chance(92) else world.pick((None, "?/100"))
    lane = "push" if world.chance(35) else None
    message = world.weighted(((80, _message(world)), (10, None), (10, 4000)))
    if event_id is not None and channel is not None:
        chat.unaccepted.append((channel.partition("/")[0], event_id))
    return world.event(
        chat,
        "inbound",
        channel=channel,
        message=message,
        kind=None if kind == "message" else kind,
        lane=lane,
        addressed=True if world.chance(40) else None,
        wakes=False if world.chance(15) else None,
        first_view=True if kind == "edit" and world.chance(50) else None,
        event_id=event_id,
        delivery=world.weighted(((80, None), (10, "debounced"), (10, "assembled"))),
    )


def _accepted(world: World, chat: Chat) -> Raw | None:
    if not chat.unaccepted:
        return None
    server, event_id = world.pick(chat.unaccepted)
    return world.event(chat, "accepted", server=server, event_id=event_id, ok=False if world.chance(20) else None)


def _wake(world: World, chat: Chat) -> Raw:
    channel = world.weighted(((50, None), (40, CHANNELS[0]), (10, CHANNELS[1])))
    return world.event(chat, "wake", reason=world.pick(("timer", "batch")), channel=channel)


def _interrupt(world: World, chat: Chat) -> Raw:
    return world.event(chat, "interrupted")


def _answer(world: World, chat: Chat) -> Raw:
    call_id = chat.questions.pop() if chat.questions else "q0"
    return world.event(chat, "question_answered", call_id=call_id)


def _speech(world: World, chat: Chat) -> Raw | None:
    if not chat.turns:
        return None
    turn_id = world.pick(list(chat.turns))
    cause = world.pick(("re_pin", "channel_open"))
    return world.event(chat, "speech_moved", turn_id=turn_id, channel=world.pick(CHANNELS), cause=cause)


def _directory(world: World, chat: Chat) -> Raw:
    """Register a channel, remove a server, or say where the chat is at home."""
    match world.rng.randrange(8):
        case 0:
            return world.event(chat, "server_removed", server=world.pick(("dc", "wa")))
        case 1:
            home, ephemeral = world.pick((None, CHANNELS[0], CHANNELS[1])), world.chance(30)
            return world.event(chat, "chat_opened", home=home, ephemeral=ephemeral or None)
        case _:
            return world.event(
                chat,
                "channel_registered",
                channel=world.pick(CHANNELS),
                inbound_only=True if world.chance(40) else None,
                note="Read only." if world.chance(20) else None,
            )


def _quiesce(world: World, chat: Chat) -> Raw:
    chat.quiet = not chat.quiet
    return world.event(chat, "quiesced" if chat.quiet else "resumed")


def _unstick(world: World, chat: Chat) -> Raw:
    cap = world.pick((None, 1, 2))
    return world.event(chat, "unstick", max_rewinds=cap, report_to=CHANNELS[0] if world.chance(60) else None)


def _rewound(world: World, chat: Chat) -> Raw | None:
    """Answer a rewind; or tell of one that nobody asked for."""
    turn_id = chat.rewinds.pop(0) if chat.rewinds else f"P{world.rng.randrange(30)}"
    return world.event(chat, "rewound", turn_id=turn_id, removed=0 if world.chance(30) else 1)


def rewind_loop(world: World, chat: Chat) -> Raw | None:
    """Go round in a poisoned history: the turn ends badly, the exchange is removed, the next turn begins."""
    if chat.rewinds:
        return _rewound(world, chat)
    if not chat.open_turns():
        return _unstick(world, chat) if world.chance(35) else open_turn(world, chat)
    turn_id = chat.open_turns()[-1]
    if world.chance(60):
        return world.event(chat, "refused", turn_id=turn_id)
    status = world.pick((400, 400, 422, None, 429, 500))
    return world.event(chat, "failed", turn_id=turn_id, error="invalid_request", status=status)


MOVES: tuple[tuple[int, Callable[[World, Chat], Raw | None]], ...] = (
    (30, open_turn),
    (34, _fold),
    (12, again),
    (3, _repeat),
    (14, _inbound),
    (6, _accepted),
    (4, _wake),
    (5, _interrupt),
    (5, _answer),
    (3, _speech),
    (3, _directory),
    (3, _quiesce),
    (3, _unstick),
    (4, _rewound),
)
