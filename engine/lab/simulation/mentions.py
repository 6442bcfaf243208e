"""Habits of what comes in: arrivals of every shape, the turn that they wake, and how that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from turnkeeper.engine.lab.simulation.player import Raw
from turnkeeper.engine.lab.simulation.world import CHANNELS, Chat, Input, World

__all__ = ["mention_habits"]

Shape = Callable[[World, Chat, int], Iterator[Raw]]
MARKERS = ("edit", "reaction", "reaction_removed", "deletion", "notice")


def mention_habits() -> tuple[tuple[int, Callable[[World, Chat], Iterator[Raw]]], ...]:
    """List the habits with their weights."""
    return ((50, _mentioned), (4, _home), (8, _accepted_late), (4, _alike), (6, _subagent))


def _inbound(world: World, chat: Chat, channel: str | None, message: int | None, **fields: Any) -> Raw:
    return world.event(chat, "inbound", channel=channel, message=message, **fields)


def _opens(world: World, chat: Chat, source: str = "primary") -> tuple[str, Raw]:
    """Start a turn for whatever waits."""
    turn_id = f"P{world.number()}"
    chat.turns[turn_id] = True
    chat.inputs[turn_id] = Input(turn_id, source, None, None, None)
    return turn_id, world.event(chat, "turn_opened", turn_id=turn_id, source=None if source == "primary" else source)


def _ends(world: World, chat: Chat, turn_id: str) -> Iterator[Raw]:
    """Let a turn be answered, refused, or stopped; the first shows what it is for, so does each."""
    way = world.rng.randrange(10)
    if way < 5:  # noqa: PLR2004 - in ten
        yield world.event(chat, "refused", turn_id=turn_id)
    elif way < 8:  # noqa: PLR2004
        fields: Raw = {"call_id": f"k{world.number()}", "text": world.text(), "turn_id": turn_id}
        chat.calls.append(fields)
        yield world.event(chat, "reply", **fields)
    else:
        yield world.event(chat, "stopped", turn_id=turn_id, text=world.text())
        yield {"advance": 2500}


# ---------------------------------------------------------------- shapes of arrivals


def _plain(world: World, chat: Chat, message: int) -> Iterator[Raw]:
    """A message; now and then it comes twice, or names another one's id in another channel."""
    channel = CHANNELS[0]
    addressed = True if world.chance(50) else None
    yield _inbound(world, chat, channel, message, addressed=addressed, lane=world.pick((None, "push")))
    if world.chance(30):
        yield _inbound(world, chat, world.pick((channel, CHANNELS[1])), message, addressed=addressed)


def _marker(world: World, chat: Chat, message: int) -> Iterator[Raw]:
    yield _inbound(world, chat, CHANNELS[0], message, kind=world.pick(MARKERS))


def _nameless(world: World, chat: Chat, _: int) -> Iterator[Raw]:
    """A push that names no message, and has an event id."""
    yield _inbound(world, chat, world.pick(CHANNELS), None, lane="push", event_id=f"e{world.number()}")


def _coalesced(world: World, chat: Chat, message: int) -> Iterator[Raw]:
    """A create that is edited, taken back, accepted or sent again before anybody read it."""
    event_id, channel = f"e{world.number()}", world.pick(CHANNELS[:2])
    lane = world.pick((None, "push"))
    create = _inbound(world, chat, channel, message, lane=lane, event_id=event_id, addressed=True)
    yield create
    match world.rng.randrange(5):
        case 0:
            yield _inbound(
                world, chat, channel, message, lane=lane, kind="edit", first_view=True, event_id=f"e{world.number()}"
            )
        case 1:
            yield _inbound(world, chat, channel, message, lane=lane, kind="deletion", event_id=event_id)
        case 2:
            yield create
        case _:
            yield world.event(chat, "accepted", server=channel.partition("/")[0], event_id=event_id)


def _batch(world: World, chat: Chat, message: int) -> Iterator[Raw]:
    """A debounced push whose wake comes later, as one of a batch; or a request that it is put into."""
    delivery = world.pick(("debounced", "debounced", "assembled"))
    yield _inbound(world, chat, CHANNELS[0], message, lane="push", delivery=delivery)
    yield world.event(chat, "wake", reason="batch", channel=CHANNELS[0])


def _timer(world: World, chat: Chat, _: int) -> Iterator[Raw]:
    yield world.event(chat, "wake", reason="timer", channel=world.pick((None, None, CHANNELS[1])))


SHAPES: tuple[tuple[int, Shape], ...] = (
    (30, _plain),
    (14, _marker),
    (10, _nameless),
    (26, _coalesced),
    (12, _batch),
    (8, _timer),
)


def _mentioned(world: World, chat: Chat) -> Iterator[Raw]:
    """One to three arrivals, in quiet times or not, and the turn for them."""
    if world.chance(12):
        yield world.event(chat, "chat_opened", home=CHANNELS[0])
    quiet = world.chance(20)
    if quiet and not chat.quiet:
        chat.quiet = True
        yield world.event(chat, "quiesced")
    for _ in range(world.weighted(((20, 1), (65, 2), (15, 3)) if quiet else ((50, 1), (35, 2), (15, 3)))):
        # What may be taken for another while it is parked is of one shape.
        shape = _plain if quiet and world.chance(50) else world.weighted(SHAPES)
        yield from shape(world, chat, 5000 + world.number())
    if quiet and world.chance(85):
        chat.quiet = False
        yield world.event(chat, "resumed")
    turn_id, opened = _opens(world, chat)
    yield opened
    if world.chance(15):
        yield from _plain(world, chat, 5000 + world.number())
        yield world.event(chat, "turn_continued", turn_id=turn_id, cause="tool_result")
    yield from _ends(world, chat, turn_id)


def _home(world: World, chat: Chat) -> Iterator[Raw]:
    """In a chat with a home, an edit that is the first that anybody sees of a message."""
    yield world.event(chat, "chat_opened", home=CHANNELS[0])
    yield _inbound(world, chat, CHANNELS[0], 5000 + world.number(), kind="edit", first_view=True)
    turn_id, opened = _opens(world, chat)
    yield opened
    yield from _ends(world, chat, turn_id)


def _accepted_late(world: World, chat: Chat) -> Iterator[Raw]:
    """A create whose acceptance comes after the next message."""
    event_id, channel = f"e{world.number()}", world.pick(CHANNELS[:2])
    lane = world.pick((None, "push"))
    yield _inbound(world, chat, channel, 5000 + world.number(), lane=lane, event_id=event_id)
    yield _inbound(world, chat, CHANNELS[0], 5000 + world.number())
    yield world.event(chat, "accepted", server=channel.partition("/")[0], event_id=event_id)


def _alike(world: World, chat: Chat) -> Iterator[Raw]:
    """Two servers and two event ids that read the same when they are joined."""
    part = f"{world.number()}"
    yield _inbound(world, chat, "tg/100", 5000 + world.number(), lane="push", event_id=f"9:{part}")
    yield _inbound(world, chat, "tg:9/100", 5000 + world.number(), lane="push", event_id=part)
    yield world.event(chat, "accepted", server="tg", event_id=f"9:{part}")


def _subagent(world: World, chat: Chat) -> Iterator[Raw]:
    """A subagent is refused, after a message that was for its parent; or an operator takes a chat for one of those."""
    if world.chance(15):
        yield world.event(chat, "chat_opened", ephemeral=True)
        yield world.event(chat, "unstick")
        yield world.event(chat, "chat_opened")
        return
    yield _inbound(world, chat, CHANNELS[0], 5000 + world.number())
    turn_id, opened = _opens(world, chat, "subagent")
    yield opened
    yield world.event(chat, "refused", turn_id=turn_id)
