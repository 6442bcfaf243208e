"""The steps of a scenario file: what each line may hold, checked before anything runs (PROTOCOL "The scenario file").

A step is an object whose first key names it. Reading is strict: an unknown step, field or value is an error
that says what was found and what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from turnkeeper.engine.codec import EVENT_TYPES, event_from
from turnkeeper.engine.config import Config
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.events import Event
from turnkeeper.engine.lab.platform import RECONCILIATIONS, Directive, Settling, directive_from
from turnkeeper.engine.lab.runtime import During
from turnkeeper.engine.lab.vocabulary import COMMANDS, SIGNALS, check_fields, check_name
from turnkeeper.engine.ports import Reconciliation

__all__ = [
    "CHAT",
    "CHECKING",
    "Crash",
    "Named",
    "Step",
    "check_step",
    "crash_of",
    "event_of",
    "named",
    "settling_of",
    "step_kind",
]

CHAT = "c1"
"""The chat of a step that names none."""
CHANNEL = "tg/100"
PLACED = {"turn_opened", "input_folded", "inbound"}
"""Events that get the default channel where they name a message without one."""
STEPS = (
    *("advance", "settle", "deliver", "crash", "reload"),
    *("expect", "signals", "never", "metrics", "state", "complaints", "#"),
)
CHECKING = frozenset({"expect", "signals", "never", "metrics", "state", "complaints"})
"""Steps that only look: a file without them runs the same."""
EXTRAS: dict[str, frozenset[str]] = {
    "crash": frozenset({"back_ms", "down_ms", "during", "reconcile", "reload"}),
    "complaints": frozenset({"ended"}),
    "expect": frozenset({"acks", "ordered"}),
    "signals": frozenset({"never", "ordered"}),
    "never": frozenset({"signals", "ordered"}),
    "state": frozenset({"chat"}),
}
"""What may stand beside a step, apart from `deliver`, which any step may carry."""

Named = tuple[str, dict[str, Any]]
"""An expected item: the name of a command or signal, and the fields that must match."""


class Crash(msgspec.Struct, frozen=True):
    """How the process dies, and what it finds when it comes up again."""

    down_ms: int = 0
    back_ms: int = 0
    """So far somebody set the clock back meanwhile."""
    reconcile: dict[str, Reconciliation] | None = None
    """What the platform says of each delivery, by key or call id; None: it cannot be asked."""
    during: During | None = None
    """It dies in the middle of the next step; None: now."""
    config: Config | None = None
    """The configuration that the restart reads; None: the one before."""


class Step(msgspec.Struct, frozen=True):
    """One line: what it does, with everything already checked."""

    line: int
    kind: str
    """`event`, or the step's word."""
    raw: dict[str, Any]
    event: Event | None = None
    deliver: Directive | None = None
    settling: Settling | None = None
    config: Config | None = None
    """Of a reload, or of a crash whose restart reads another one."""
    crash: Crash | None = None


def step_kind(raw: dict[str, Any]) -> str:
    """Return the step's word, once nothing stands beside it that may not.

    Raises:
        DecodeError: it is no step, or something else stands beside it.

    """
    kind = next(iter(raw))
    if kind not in EVENT_TYPES and kind not in STEPS:
        raise DecodeError(f"{kind!r} is no step; expected an event type or one of {', '.join(STEPS)}")
    extra = raw.keys() - {kind, "deliver"} - EXTRAS.get(kind, frozenset())
    if extra:
        allowed = sorted({"deliver"} | EXTRAS.get(kind, frozenset()))
        raise DecodeError(f"{min(extra)!r} cannot stand beside {kind}; allowed: {', '.join(allowed)}")
    return kind


def check_step(kind: str, raw: dict[str, Any]) -> Directive | None:
    """Check every value of a step that is no event, and return its directive.

    Raises:
        DecodeError: a value is none that is allowed.

    """
    for name, value in raw.items():
        check = CHECKS.get(name)
        if check is not None:
            check(name, value)
    return directive_from(raw["deliver"]) if "deliver" in raw else None


def event_of(kind: str, fields: object) -> Event:
    """Read an event, with the scenario's default chat and channel.

    Raises:
        DecodeError: a field is unknown, missing, or of another type.

    """
    if not isinstance(fields, dict):
        raise DecodeError(f"{kind} is {fields!r}; expected an object of fields")
    given = {"type": kind, "chat": CHAT, **fields}
    if kind in PLACED and given.get("message") is not None and "channel" not in given:
        given["channel"] = CHANNEL
    return event_from(given)


def settling_of(value: object) -> Settling:
    """Read a `settle` step.

    Raises:
        DecodeError: a field is unknown, missing, or of another type.

    """
    try:
        return msgspec.convert(value, Settling)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise DecodeError(f"settle: {error}") from error


def crash_of(raw: dict[str, Any], config: Config | None = None) -> Crash:
    """Read a crash step that was checked; `config` is what its `reload` stands for.

    Raises:
        DecodeError: `during` is no place in a step.

    """
    try:
        during = msgspec.convert(raw["during"], During) if "during" in raw else None
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise DecodeError(f"during: {error}") from error
    return Crash(raw.get("down_ms", 0), raw.get("back_ms", 0), raw.get("reconcile"), during, config)


def named(item: object) -> Named:
    """Read an expected item: a name, or a name with fields.

    Raises:
        DecodeError: it is neither.

    """
    if isinstance(item, str):
        return item, {}
    if isinstance(item, dict) and len(item) == 1:
        name, fields = next(iter(item.items()))
        if isinstance(fields, dict):
            return str(name), fields
    raise DecodeError(f"{item!r} is no expected item; write a name or {{name: {{fields}}}}")


# ------------------------------------------------------------ values


def _milliseconds(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DecodeError(f"{name} is {value!r}; expected milliseconds, 0 or more")


def _flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise DecodeError(f"{name} is {value!r}; expected true or false")


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise DecodeError(f"{name} is {value!r}; expected a text")


def _objects(name: str, value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise DecodeError(f"{name} is {value!r}; expected a list of objects")


def _commands(name: str, value: object) -> None:
    _objects(name, value)
    for item in value if isinstance(value, list) else ():
        if len(item) != 1 or not isinstance(next(iter(item.values())), dict):
            raise DecodeError(f'{name}: {item!r} is no command; write {{"send": {{…}}}}')
        kind, fields = named(item)
        check_name("command", kind, COMMANDS)
        check_fields(kind, fields, COMMANDS)


def _acks(name: str, value: object) -> None:
    _objects(name, value)
    for fields in value if isinstance(value, list) else ():
        check_fields("ack", fields, COMMANDS)


def _items(name: str, value: object) -> None:
    if not isinstance(value, list):
        raise DecodeError(f"{name} is {value!r}; expected a list")
    for item in value:
        kind, fields = named(item)
        check_name("signal", kind, SIGNALS)
        check_fields(kind, fields, SIGNALS)


def _names(name: str, value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise DecodeError(f"{name} is {value!r}; expected a list of signal names")
    for kind in value:
        check_name("signal", kind, SIGNALS)


def _texts(name: str, value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise DecodeError(f"{name} is {value!r}; expected a list of texts")


def _object(name: str, value: object) -> None:
    if not isinstance(value, dict):
        raise DecodeError(f"{name} is {value!r}; expected an object")


def _samples(name: str, value: object) -> None:
    _object(name, value)
    for sample, number in value.items() if isinstance(value, dict) else ():
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise DecodeError(f"{name}: {sample} is {number!r}; expected a number")


def _answers(name: str, value: object) -> None:
    _object(name, value)
    for key, answer in value.items() if isinstance(value, dict) else ():
        if answer not in RECONCILIATIONS:
            raise DecodeError(f"{name}: {key} is {answer!r}; expected one of {', '.join(RECONCILIATIONS)}")


CHECKS: dict[str, Callable[[str, object], None]] = {
    "advance": _milliseconds,
    "crash": _flag,
    "down_ms": _milliseconds,
    "back_ms": _milliseconds,
    "during": _object,
    "complaints": _texts,
    "ended": _flag,
    "reconcile": _answers,
    "expect": _commands,
    "acks": _acks,
    "ordered": _flag,
    "signals": _items,
    "never": _names,
    "metrics": _samples,
    "state": _object,
    "chat": _text,
}
