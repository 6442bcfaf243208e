"""The simulated platform's moods, the clock, and the process: what goes wrong, and when things come late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from turnkeeper.engine.commands import Send
from turnkeeper.engine.lab.simulation.world import Dice, World

if TYPE_CHECKING:
    from turnkeeper.engine.lab.simulation.player import Raw
    from turnkeeper.engine.lab.simulation.seen import Operation

__all__ = ["FAULTS", "Faults", "FaultsName", "advance", "config_for"]

FaultsName = Literal["none", "some", "many"]
"""The words of `--faults`."""


class Faults(msgspec.Struct, frozen=True):
    """How much goes wrong: what the platform and the process do to a run."""

    mood: Callable[[World], Any]
    """Chooses a `deliver` value; None: at once and well."""
    moves: tuple[tuple[int, Callable[[World], Raw | None]], ...] = ()
    """What happens beside what users and agents do, by weight in about a hundred; they have 66, the clock 16."""
    calm_percent: int = 0
    """So many runs have only the first of the moves, and whatever is no reply is settled well."""


def _well(_: World) -> None:
    """Settle at once and well."""


def _mood(world: World) -> Any:  # noqa: ANN401 - a `deliver` value
    """Choose how the platform settles what a step sends; None: at once and well."""
    way = world.rng.randrange(100)
    if way < 50:  # noqa: PLR2004 - in a hundred
        return None
    if way < 72:  # noqa: PLR2004
        return "hold"
    if way < 77:  # noqa: PLR2004
        return "unknown"
    if way < 81:  # noqa: PLR2004
        return "fail-permanent"
    if way < 86:  # noqa: PLR2004
        return {"fail": {"reason": "timeout", "times": world.pick((1, 1, 2, 9))}}
    if way < 90:  # noqa: PLR2004
        return {"fail": {"reason": "rate_limited", "retry_after_ms": world.pick((500, 3000, 40000))}}
    if way < 97:  # noqa: PLR2004
        return {"fail": {"reason": world.pick(("format", "quote_gone", "not_modified"))}}
    return {"fail": {"parts_done": world.pick((1, 2)), "permanent": world.chance(20)}}


def _bad_mood(world: World) -> Any:  # noqa: ANN401 - a `deliver` value
    """Choose how a platform on a bad day settles what a step sends."""
    times = world.pick((1, 1, 2, 9))
    return world.weighted(
        (
            (18, None),
            (34, "hold"),
            (9, "unknown"),
            (5, "fail-permanent"),
            (10, {"fail": {"reason": "timeout", "times": times}}),
            (
                14,
                {"fail": {"reason": "rate_limited", "retry_after_ms": world.pick((500, 3000, 40000)), "times": times}},
            ),
            (6, {"fail": {"reason": world.pick(("format", "quote_gone", "not_modified"))}}),
            (4, {"fail": {"parts_done": world.pick((1, 2)), "permanent": world.chance(20), "times": times}}),
        )
    )


def _settle(world: World) -> Raw | None:
    """Settle something that is held, or tell once more, or late, or of an earlier attempt."""
    held = world.player.platform.held()
    if held and world.chance(80):
        delivery = world.pick(held)
        operation = world.player.oracle.seen(delivery.split(":")[1]).operations.get(delivery)
        if operation is not None and len(operation.attempts) > 1 and world.chance(40):
            return {"settle": _once_more(world, operation)}
        return {"settle": _told(world, delivery)}
    known = [operation for chat in world.chats for operation in world.player.oracle.seen(chat.name).operations.values()]
    if not known:
        return None
    if world.chance(3):
        return {"settled": {"delivery": "reply:c1:never", "outcome": world.pick(("sent", "failed", "unknown"))}}
    return {"settle": _once_more(world, world.pick(known[-8:]))}


def _told(world: World, delivery: str) -> Raw:
    outcome = world.weighted(((58, "sent"), (30, "failed"), (12, "unknown")))
    told: Raw = {"delivery": delivery, "outcome": outcome, "chat": delivery.split(":")[1]}
    if outcome == "failed":
        told.update(
            world.weighted(
                (
                    (40, {}),
                    (25, {"permanent": True}),
                    (15, {"retry_after_ms": 2000}),
                    (10, {"reason": "format"}),
                    (10, {"reason": "quote_gone"}),
                )
            )
        )
    return told


def _once_more(world: World, operation: Operation) -> Raw:
    """Tell of something again: mostly the same, now and then the contrary."""
    attempt = world.pick(operation.attempts)
    if attempt.told in {"", "unknown"}:
        outcome = world.pick(("sent", "failed", "unknown"))
    elif world.chance(88):
        outcome = world.pick((attempt.told, attempt.told, "unknown"))
    else:
        outcome = world.pick(("sent", "failed"))
    told: Raw = {"delivery": operation.delivery, "outcome": outcome, "chat": attempt.command.chat}
    told["attempt"] = attempt.command.attempt if world.chance(97) else 40
    if outcome == "sent" and operation.messages:
        told["messages"] = list(operation.messages)
    return told


def advance(world: World) -> Raw:
    """Let time pass: a moment, a grace, a window, or long enough for everything."""
    span = world.weighted(
        (
            (30, world.rng.randrange(1, 2500)),
            (30, world.rng.randrange(2000, 9000)),
            (22, world.rng.randrange(15_000, 70_000)),
            (8, world.rng.randrange(100_000, 700_000)),
            (2, 6_000_000),
            (8, 0),
        )
    )
    return {"advance": span}


def _crash(world: World) -> Raw:
    """Let the process die between two steps; the platform may be able to say what arrived."""
    raw: Raw = {
        "crash": True,
        "down_ms": world.weighted(((60, world.rng.randrange(100, 9000)), (15, 70_000), (5, 4_000_000), (20, 0))),
    }
    if world.chance(50):
        raw["reconcile"] = _reconciliation(world)
    return raw


def _reconciliation(world: World) -> Raw:
    answers: Raw = {}
    for chat in world.chats:
        for operation in world.player.oracle.seen(chat.name).out((Send,)):
            answers[operation.delivery] = world.pick(("sent", "not_sent", "unresolved"))
    return answers


def _jump(world: World) -> Raw:
    """Let the process die, and the clock be another one when it comes up: set back, or far ahead."""
    raw = _crash(world)
    back_ms = world.weighted(((50, world.rng.randrange(1, 9000)), (30, 70_000), (20, 4_000_000)))
    if world.chance(65):
        return {**raw, "back_ms": back_ms}
    return {**raw, "down_ms": world.pick((4_000_000, 95_000_000))}


def _early_cut(world: World) -> Raw:
    """Let the process die in the middle of the next step, where most steps still are at work."""
    raw = _cut(world)
    records = world.weighted(((45, 1), (25, 2), (15, 3), (15, raw["during"]["records"])))
    return {**raw, "during": {**raw["during"], "records": records}}


def _cut(world: World) -> Raw:
    """Let the process die in the middle of the next step."""
    during = {"records": world.rng.randrange(1, 7), "before": world.chance(50)}
    raw: Raw = {"crash": True, "during": during, "down_ms": world.pick((0, 500, 70_000))}
    if world.chance(40):
        raw["reconcile"] = _reconciliation(world)
    return raw


def _reload(world: World) -> Raw:
    return {"reload": config_for(world)}


def config_for(dice: Dice) -> Raw:
    """Choose the settings of a run: mostly the defaults, with one or two things changed."""
    config: dict[str, dict[str, Any]] = {}
    for section, name, percent, values in SETTINGS:
        if dice.chance(percent):
            config.setdefault(section, {})[name] = dice.pick(values)
    if dice.chance(12):
        small = config.setdefault("limits", {})
        for _ in range(dice.rng.randrange(1, 4)):
            name, value = dice.pick(SMALL)
            small[name] = value
    return config


SETTINGS: tuple[tuple[str, str, int, tuple[Any, ...]], ...] = (
    ("attribution", "fold_proof", 6, ("off",)),
    ("delivery", "on_unknown", 14, ("resend",)),
    ("delivery", "retries", 14, (0, 1)),
    ("delivery", "settle_timeout_ms", 12, (0, 3000)),
    ("delivery", "queue_timeout_ms", 10, (4000, 30_000)),
    ("finalize", "without_stop", 8, (True,)),
    ("finalize", "final_reply", 10, ("rescue-different",)),
    ("timers", "quiet_ms", 10, (2000, 0)),
    ("timers", "retry_grace_ms", 8, (0,)),
    ("refusal", "auto_rewind", 35, (True,)),
    ("refusal", "max_rewinds", 20, (1, 2)),
    ("breaker", "failures", 35, (1, 2)),
    ("breaker", "max_rewinds", 20, (1,)),
    ("breaker", "enabled", 5, (False,)),
    ("speech", "prose", 25, ("hybrid", "explicit", "disabled")),
    ("speech", "home", 15, ("dc/C2",)),
    ("speech", "fallback", 20, ("latest-inbound",)),
    ("dedup", "window_ms", 5, (2000,)),
    ("recovery", "max_age_ms", 8, (5000,)),
    ("inbound", "receipt_window_ms", 8, (5000,)),
)
SMALL: tuple[tuple[str, int], ...] = (
    ("ledger", 3),
    ("tombstones", 2),
    ("calls", 3),
    ("contents", 2),
    ("calls_burst", 2),
    ("open_turns", 2),
    ("settled_turns", 1),
    ("previews_per_turn", 2),
    ("wakes", 2),
    ("parked", 1),
    ("occurrences", 2),
    ("outbox", 1),
    ("deliveries", 2),
    ("receipts", 2),
    ("unconfirmed", 3),
    ("channels_per_chat", 2),
    ("consumed_ids", 2),
    ("text_bytes", 6),
    ("json_depth", 1),
)
FAULTS: dict[FaultsName, Faults] = {
    "none": Faults(_well),
    "some": Faults(_mood, ((13, _settle), (2, _crash), (2, _cut), (1, _reload)), calm_percent=20),
    "many": Faults(_bad_mood, ((18, _settle), (7, _crash), (14, _early_cut), (4, _jump), (2, _reload))),
}
"""What each word stands for."""
