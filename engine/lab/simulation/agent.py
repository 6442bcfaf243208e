"""The simulated agent: it answers, and echoes wrong ids; it forgets, repeats, stays silent, stops and fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnkeeper.engine.lab.simulation.world import CHANNELS, Chat, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.lab.simulation.player import Raw

__all__ = ["agent_moves"]

ODD: tuple[Any, ...] = (None, 7, "nobody", "", ["P1"], True)
"""What a model may write where an id belongs."""


def agent_moves(world: World, chat: Chat) -> Raw | None:
    """Let the agent of a chat do something; None if it makes no sense now."""
    return world.weighted(MOVES)(world, chat)


def _echoed(world: World, chat: Chat) -> Any:  # noqa: ANN401 - any JSON value
    """Choose the id that a reply echoes: often the newest input's, which may be a fold's."""
    inputs = chat.open_turns() if world.forgetful else list(chat.inputs)
    if not inputs or world.chance(12):
        return world.pick(ODD)
    recent = inputs[-4:]
    return world.pick(recent) if world.chance(85) else world.pick(inputs)


def _consumed(world: World, chat: Chat, echoed: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Choose what a reply says it answers: with its turn and fold, too many, foreign ids, no list, nothing."""
    if world.forgetful:
        return []
    way = world.rng.randrange(100)
    turns, folds = chat.open_turns(), [entry.turn_id for entry in chat.folds()[-3:]]
    if way < 45:  # noqa: PLR2004 - in a hundred
        named = [*turns[-1:], *folds[-2:]]
        return named if isinstance(echoed, str) and echoed in named else [*named, echoed]
    if way < 60:  # noqa: PLR2004
        return [*turns, *folds]
    if way < 70:  # noqa: PLR2004
        return [one for one in list(chat.inputs)[-5:] if world.chance(50)]
    if way < 76:  # noqa: PLR2004
        return world.pick(([], "P1", [7, None], ["elsewhere"], {"a": 1}))
    return None


def _reply(world: World, chat: Chat) -> Raw:
    """Answer something, with whatever ids the model happens to write."""
    echoed = _echoed(world, chat)
    consumed = _consumed(world, chat, echoed)
    fields: Raw = {"call_id": f"k{world.number()}", "text": world.text() if world.chance(92) else "Done."}
    if echoed is not None:
        fields["turn_id"] = echoed
    if consumed is not None:
        fields["consumed_turn_ids"] = consumed
    if world.chance(22):
        fields["interim"] = True
    if world.chance(5):
        fields["files"] = [f"file{world.number()}"]
        fields["text"] = fields["text"] if world.chance(50) else ""
    if world.chance(8):
        fields["reply_in"] = world.pick(CHANNELS)
    if world.chance(4):
        fields.update(
            world.pick(({"chat_id": "other"}, {"chat_id": "100"}, {"text": " "}, {"text": 7}, {"files": "x"}))
        )
    chat.calls.append(fields)
    return world.event(chat, "reply", **fields)


def _good_reply(world: World, chat: Chat) -> Raw | None:
    """Answer an open turn and its folds as an agent should."""
    turns = chat.open_turns()
    if not turns:
        return None
    turn_id = world.pick(turns)
    folds = [] if world.forgetful else [entry.turn_id for entry in chat.folds()[-3:]]
    fields: Raw = {
        "call_id": f"k{world.number()}",
        "text": world.text() if world.chance(92) else "Done.",
        "turn_id": world.pick(folds) if folds and world.chance(60) else turn_id,
        "consumed_turn_ids": [turn_id, *folds],
    }
    chat.calls.append(fields)
    return world.event(chat, "reply", **fields)


def _retry(world: World, chat: Chat) -> Raw | None:
    """Say the same again: under a new call id, the same, or the same with other words."""
    if not chat.calls:
        return None
    fields = dict(chat.calls[-1] if world.chance(75) else world.pick(chat.calls[-6:]))
    way = world.rng.randrange(10)
    if way < 6:  # noqa: PLR2004 - in ten
        fields["call_id"] = f"k{world.number()}"
        if way == 0 and chat.inputs:
            fields["turn_id"] = world.pick(list(chat.inputs))
        chat.calls.append(fields)
    elif way == 9:  # noqa: PLR2004
        fields["text"] = world.text()
    return world.event(chat, "reply", **fields)


def _edit(world: World, chat: Chat) -> Raw:
    """Edit a bubble, one that exists or one that does not."""
    message = world.pick(chat.bubbles)[1] if chat.bubbles and world.chance(85) else 999
    fields: Raw = {"call_id": f"k{world.number()}", "message": message, "text": world.text()}
    if world.chance(50) and chat.turns:
        fields["turn_id"] = world.pick(list(chat.turns))
    if world.chance(30) and chat.inputs:
        fields["consumed_turn_ids"] = [world.pick(list(chat.inputs))]
    return world.event(chat, "edit", **fields)


def _seen(world: World, chat: Chat) -> Raw | None:
    return world.event(chat, "input_seen", turn_id=world.pick(list(chat.inputs)[-4:])) if chat.inputs else None


def _activity(world: World, chat: Chat) -> Raw:
    return world.event(chat, "activity", cause="tool")


def _preview(world: World, chat: Chat) -> Raw:
    turns = list(chat.turns)
    turn_id = world.pick(turns[-3:]) if turns and world.chance(75) else None
    return world.event(chat, "preview", turn_id=turn_id, text=world.text() if world.chance(95) else " ")


def _question(world: World, chat: Chat) -> Raw:
    call_id = f"q{world.number()}"
    chat.questions.append(call_id)
    turns = chat.open_turns()
    return world.event(
        chat, "question_opened", call_id=call_id, turn_id=world.pick(turns) if turns and world.chance(60) else None
    )


def _stop(world: World, chat: Chat) -> Raw:
    """Stop with closing words: new ones, those already said, or none; for a named turn or for nobody."""
    words: str | None = world.text()
    if world.chance(25):
        words = None
    elif chat.calls and world.chance(25):
        said = world.pick(chat.calls[-2:])["text"]
        words = said if isinstance(said, str) else None
    turns = list(chat.turns)
    named = world.pick(turns[-3:]) if turns and world.chance(45) else None
    return world.event(
        chat,
        "stopped",
        text=words,
        turn_id=named,
        active=True if world.chance(4) else None,
        channel=world.pick(CHANNELS) if world.chance(12) else None,
    )


def _ended(world: World, chat: Chat) -> Raw | None:
    """End badly: refused, failed, or gone."""
    if not chat.turns or world.chance(10):
        return world.event(chat, "lost", reason="gone")
    turn_id = world.pick(list(chat.turns)[-2:])
    if world.chance(55):
        return world.event(chat, "refused", turn_id=turn_id, category=world.pick((None, "violence")))
    error = world.weighted(((60, "invalid_request"), (20, "overloaded"), (20, "configuration")))
    return world.event(chat, "failed", turn_id=turn_id, error=error, status=world.pick((None, 400, 422, 500)))


def _goes_on(world: World, chat: Chat) -> Raw | None:
    if not chat.turns:
        return None
    cause = world.pick(("provider_wait", "budget", "guard", "tool_result"))
    return world.event(chat, "turn_continued", turn_id=world.pick(list(chat.turns)), cause=cause)


MOVES: tuple[tuple[int, Callable[[World, Chat], Raw | None]], ...] = (
    (30, _reply),
    (16, _good_reply),
    (12, _retry),
    (4, _edit),
    (8, _seen),
    (6, _activity),
    (9, _preview),
    (3, _question),
    (24, _stop),
    (6, _ended),
    (3, _goes_on),
)
