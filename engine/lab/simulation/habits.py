"""Habits: a few moves that belong together, as people and machines make them; drawn alone they seldom meet.

A habit is a generator of steps. The simulator plays it with other moves in between, so that it meets everything
else; where it has become senseless, it plays on, as people do. Its steps settle well unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from turnkeeper.engine.ids import delivery_key
from turnkeeper.engine.lab.simulation.mentions import mention_habits
from turnkeeper.engine.lab.simulation.player import Raw
from turnkeeper.engine.lab.simulation.world import CHANNELS, Chat, Input, World

__all__ = ["CRAMMED", "Habit", "next_of_habit"]

Habit = Callable[[World, Chat], Iterator[Raw]]
"""Steps that follow each other, drawn one by one."""
CRAMMED = {"calls": 3, "deliveries": 2, "ledger": 3}
"""So few that an old call is known by nothing but the receipt of what it sent, and an old input by its tombstone."""


def next_of_habit(world: World, chat: Chat, *, well: bool) -> Raw | None:
    """Go on with a habit, or fall into one; None if the chat has something else to do.

    `well`: the platform settles everything at once, whatever the habit says of it.
    """
    if chat.habit is None:
        if not world.chance(14):
            return None
        habit = world.weighted(OLD if world.crammed and world.chance(50) else HABITS)
        chat.habit = habit(world, chat)
    elif world.chance(30):
        return None
    raw = next(chat.habit, None)
    if raw is None:
        chat.habit = None
    elif well and "settle" in raw:
        return None
    elif well:
        return {name: value for name, value in raw.items() if name != "deliver"}
    return raw


# ---------------------------------------------------------------- what belongs together


def _open(world: World, chat: Chat) -> tuple[str, Raw]:
    """Open a turn for a message."""
    turn_id, message = f"P{world.number()}", 5000 + world.number()
    chat.turns[turn_id] = True
    chat.inputs[turn_id] = Input(turn_id, "primary", CHANNELS[0], message, None)
    return turn_id, world.event(chat, "turn_opened", turn_id=turn_id, channel=CHANNELS[0], message=message)


def _fold(world: World, chat: Chat, entry: Input | None = None) -> tuple[str, Raw]:
    """Follow up; or hand a follow-up over again."""
    if entry is None:
        entry = Input(f"F{world.number()}", "autosteer", CHANNELS[0], 5000 + world.number(), None)
        chat.inputs[entry.turn_id] = entry
    folded = world.event(
        chat, "input_folded", turn_id=entry.turn_id, source=entry.source, channel=entry.channel, message=entry.message
    )
    return entry.turn_id, folded


def _reply(world: World, chat: Chat, echoed: str, consumed: list[str] | None, **fields: object) -> tuple[str, Raw]:
    """Answer under a new call id."""
    call_id = f"k{world.number()}"
    given: Raw = {"call_id": call_id, "text": world.text(), "turn_id": echoed, **fields}
    if consumed is not None:
        given["consumed_turn_ids"] = consumed
    chat.calls.append(given)
    return call_id, world.event(chat, "reply", **given)


def _stop(world: World, chat: Chat, turn_id: str, text: str | None) -> Raw:
    return world.event(chat, "stopped", turn_id=turn_id, text=text)


def _unread(world: World, chat: Chat) -> Iterator[Raw]:
    """A follow-up that the agent never picks up, and its redelivery neither."""
    turn_id, opened = _open(world, chat)
    yield opened
    fold, folded = _fold(world, chat)
    yield folded
    yield _reply(world, chat, turn_id, [turn_id])[1]
    yield _stop(world, chat, turn_id, None)
    yield {"advance": 3000}
    yield {"advance": 25_000}
    if fold in chat.again:
        chat.again.remove(fold)
        yield _fold(world, chat, chat.inputs[fold])[1]
        yield _reply(world, chat, turn_id, [])[1]
        yield {"advance": 25_000}


def _fails_late(world: World, chat: Chat) -> Iterator[Raw]:
    """An answer of which nobody knows for long, and the turn ends meanwhile."""
    turn_id, opened = _open(world, chat)
    yield opened
    call_id, reply = _reply(world, chat, turn_id, [turn_id])
    yield {**reply, "deliver": "unknown"}
    if world.chance(50):
        yield _stop(world, chat, turn_id, world.text())
    match world.rng.randrange(4):
        case 0:
            yield world.event(chat, "refused", turn_id=turn_id)
        case 1:
            yield world.event(chat, "lost", reason="gone")
        case 2:
            yield world.event(chat, "interrupted")
            yield {"advance": 6000}
        case _:
            yield {"advance": 25_000}
    delivery = delivery_key("reply", chat.name, call_id)
    yield {"settle": {"delivery": delivery, "outcome": "failed", "chat": chat.name}}


def _slow_retry(world: World, chat: Chat) -> Iterator[Raw]:
    """An answer to a turn and its follow-up that failed; the turn's end says the same words, then the agent does."""
    turn_id, opened = _open(world, chat)
    yield opened
    fold, folded = _fold(world, chat)
    yield folded
    text = world.text()
    yield {**_reply(world, chat, fold, [turn_id, fold], text=text)[1], "deliver": "fail-permanent"}
    yield _stop(world, chat, turn_id, text)
    yield {"advance": 2500}
    yield {"advance": 6000}
    consumed = world.pick((None, [fold], [turn_id, fold]))
    yield _reply(world, chat, fold, consumed, text=text)[1]


def _same_words(world: World, chat: Chat) -> Iterator[Raw]:
    """The same words for another message, or once as a word in between and once as the answer."""
    turn_id, opened = _open(world, chat)
    yield opened
    text = world.text()
    interim = world.chance(50)
    yield _reply(world, chat, turn_id, [turn_id], text=text, **({"interim": True} if interim else {}))[1]
    if not interim:
        turn_id, opened = _open(world, chat)
        yield opened
    yield _reply(world, chat, turn_id, None if world.chance(50) else [turn_id], text=text)[1]


def _answers_two(world: World, chat: Chat) -> Iterator[Raw]:
    """One answer to two turns that is out while the other one ends."""
    first, opened = _open(world, chat)
    yield opened
    second, opened = _open(world, chat)
    yield opened
    yield world.event(chat, "input_seen", turn_id=first)
    call_id, reply = _reply(world, chat, second, [first, second])
    yield {**reply, "deliver": "hold"}
    yield _stop(world, chat, first, None)
    yield {"advance": 3000}
    delivery = delivery_key("reply", chat.name, call_id)
    yield {"settle": {"delivery": delivery, "outcome": "sent" if world.chance(60) else "failed", "chat": chat.name}}
    yield {"advance": 20_000}


def _repeats_old_call(world: World, chat: Chat) -> Iterator[Raw]:
    """A host that repeats a call under its id, after many others."""
    turn_id, opened = _open(world, chat)
    yield opened
    yield _reply(world, chat, turn_id, [turn_id])[1]
    call = dict(chat.calls[-1])
    for _ in range(world.rng.randrange(3, 6)):
        yield _reply(world, chat, turn_id, [turn_id])[1]
    yield world.event(chat, "reply", **call)


def _answers_old(world: World, chat: Chat) -> Iterator[Raw]:
    """An agent that goes back to what was asked long ago."""
    turn_id, opened = _open(world, chat)
    yield opened
    yield _fold(world, chat)[1]
    yield _reply(world, chat, turn_id, [turn_id])[1]
    yield _stop(world, chat, turn_id, None)
    yield {"advance": 25_000}
    for _ in range(world.rng.randrange(2, 4)):
        newest, opened = _open(world, chat)
        yield opened
        yield _stop(world, chat, newest, world.text())
        yield {"advance": 3000}
    yield _open(world, chat)[1]
    yield _reply(world, chat, turn_id, None)[1]


def _told_of_first(world: World, chat: Chat) -> Iterator[Raw]:
    """A platform that tells of the first attempt when the second is out."""
    turn_id, opened = _open(world, chat)
    yield opened
    call_id, reply = _reply(world, chat, turn_id, [turn_id])
    yield {**reply, "deliver": "hold"}
    told: Raw = {"delivery": delivery_key("reply", chat.name, call_id), "chat": chat.name}
    yield {"settle": {**told, "outcome": "failed"}}
    yield {"advance": 1500}
    yield {"settle": {**told, "outcome": "sent", "attempt": 1}}


def _stops_and_is_stopped(world: World, chat: Chat) -> Iterator[Raw]:
    """Closing words, and the user interrupts."""
    turn_id, opened = _open(world, chat)
    yield opened
    yield _stop(world, chat, turn_id, world.text())
    yield world.event(chat, "interrupted")
    yield {"advance": 6000}


def _speaks_in_vain(world: World, chat: Chat) -> Iterator[Raw]:
    """Closing words that the platform refuses."""
    turn_id, opened = _open(world, chat)
    yield opened
    yield _stop(world, chat, turn_id, world.text())
    yield {"advance": 2500, "deliver": "fail-permanent"}


def _shows_and_ends(world: World, chat: Chat) -> Iterator[Raw]:
    """A turn that ends while its preview is shown, and the next one in that channel."""
    turn_id, opened = _open(world, chat)
    yield opened
    yield world.event(chat, "preview", turn_id=turn_id, text=world.text())
    if world.chance(50):
        yield world.event(chat, "refused", turn_id=turn_id)
    else:
        yield world.event(chat, "lost", reason="gone")
    turn_id, opened = _open(world, chat)
    yield opened
    yield _reply(world, chat, turn_id, [turn_id])[1]


OLD: tuple[tuple[int, Habit], ...] = ((50, _repeats_old_call), (50, _answers_old))
HABITS: tuple[tuple[int, Habit], ...] = (
    (10, _unread),
    (10, _fails_late),
    (14, _slow_retry),
    (10, _same_words),
    (8, _answers_two),
    (5, _repeats_old_call),
    (4, _stops_and_is_stopped),
    (4, _speaks_in_vain),
    (6, _shows_and_ends),
    (4, _told_of_first),
    *mention_habits(),
)
