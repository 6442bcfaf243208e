"""The scenario file: JSON Lines, a header and one step a line (PROTOCOL "The scenario file").

A step is an object whose first key names it. Reading is strict: an unknown step, field or value is an error
with file, line, what was found and what is allowed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from turnkeeper.engine.codec import EVENT_TYPES, event_from
from turnkeeper.engine.config import Config, load_config
from turnkeeper.engine.errors import ConfigError, DecodeError
from turnkeeper.engine.events import Event
from turnkeeper.engine.lab.platform import FIRST_MESSAGE, Directive, Settling, directive_from

__all__ = ["CHAT", "Scenario", "Step", "is_transcript", "lines_of", "read_scenario", "scenario_config"]

CHAT = "c1"
CHANNEL = "tg/100"
LINE_MAX_BYTES = 16 << 20
PLACED = {"turn_opened", "input_folded", "inbound"}
"""Events that get the default channel where they name a message without one."""
STEPS = ("advance", "settle", "deliver", "crash", "reload", "expect", "signals", "never", "metrics", "state", "#")
EXTRAS: dict[str, frozenset[str]] = {
    "crash": frozenset({"down_ms", "reconcile"}),
    "expect": frozenset({"acks", "ordered"}),
    "signals": frozenset({"never", "ordered"}),
    "never": frozenset({"signals", "ordered"}),
    "state": frozenset({"chat"}),
}
"""What may stand beside a step, apart from `deliver`, which any step may carry."""


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


class Scenario(msgspec.Struct, frozen=True):
    """A file, read and checked."""

    file: str
    name: str
    config: Config
    steps: tuple[Step, ...]
    next_message: int = FIRST_MESSAGE
    source: str = ""

    @property
    def recording(self) -> bool:
        """A file without any `expect` only runs and prints."""
        return not any(step.kind == "expect" for step in self.steps)


def lines_of(file: str | Path) -> list[tuple[int, dict[str, Any]]]:
    """Read a JSON Lines file.

    Raises:
        DecodeError: it cannot be read, or a line is no JSON object; the text names file and line.

    """
    try:
        text = Path(file).read_bytes().decode("utf-8")
    except OSError as error:
        raise DecodeError(f"{file}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DecodeError(f"{file}: is no UTF-8 text ({error.reason} at byte {error.start})") from error
    found: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if len(line) > LINE_MAX_BYTES:
            raise DecodeError(f"{file}:{number}: the line is longer than {LINE_MAX_BYTES} bytes")
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"{file}:{number}: is no JSON ({error}); one object a line") from error
        if not isinstance(value, dict) or not value:
            raise DecodeError(f"{file}:{number}: expected a JSON object with at least one key")
        found.append((number, value))
    if not found:
        raise DecodeError(f'{file}: is empty; the first line is a header, {{"scenario": "…"}}')
    return found


def is_transcript(lines: list[tuple[int, dict[str, Any]]]) -> bool:
    """Say whether the header is that of a transcript scenario."""
    return "transcript" in lines[0][1]


def read_scenario(file: str | Path, lines: list[tuple[int, dict[str, Any]]] | None = None) -> Scenario:
    """Read and check a scenario.

    Raises:
        DecodeError: file, line, what is wrong and what is allowed.

    """
    lines = lines_of(file) if lines is None else lines
    number, header = lines[0]
    where = f"{file}:{number}"
    if not isinstance(header.get("scenario"), str):
        raise DecodeError(f'{where}: the first line is the header, {{"scenario": "what it shows"}}')
    unknown = header.keys() - {"scenario", "source", "config", "platform"}
    if unknown:
        raise DecodeError(
            f"{where}: {min(unknown)} is no field of the header; allowed: scenario, source, config, platform"
        )
    return Scenario(
        str(file),
        header["scenario"],
        scenario_config(header.get("config", {}), where),
        tuple(_step(f"{file}:{at}", at, raw) for at, raw in lines[1:]),
        next_message=_first_message(header.get("platform", {}), where),
        source=str(header.get("source", "")),
    )


def _first_message(platform: object, where: str) -> int:
    if not isinstance(platform, dict) or platform.keys() - {"next_message"}:
        raise DecodeError(f'{where}: platform is {platform!r}; expected {{"next_message": 6408}}')
    first = platform.get("next_message", FIRST_MESSAGE)
    if not isinstance(first, int) or isinstance(first, bool):
        raise DecodeError(f"{where}: platform.next_message is {first!r}; expected an integer")
    return first


def scenario_config(raw: object, where: str, changes: dict[str, dict[str, object]] | None = None) -> Config:
    """Read a configuration of a scenario: without jitter unless it says so, and with `changes` on top.

    Raises:
        DecodeError: a setting cannot be used.

    """
    if not isinstance(raw, dict):
        raise DecodeError(f"{where}: config is {raw!r}; expected an object in the shape of the TOML file")
    merged: dict[str, Any] = {"delivery": {"jitter_percent": 0}}
    for layer in (raw, changes or {}):
        for section, values in layer.items():
            merged[section] = {**merged.get(section, {}), **values} if isinstance(values, dict) else values
    try:
        return load_config(merged)
    except ConfigError as error:
        raise DecodeError(f"{where}: {error}") from error


def _step(where: str, line: int, raw: dict[str, Any]) -> Step:
    kind = next(iter(raw))
    if kind not in EVENT_TYPES and kind not in STEPS:
        raise DecodeError(f"{where}: {kind!r} is no step; expected an event type or one of {', '.join(STEPS)}")
    extra = raw.keys() - {kind, "deliver"} - EXTRAS.get(kind, frozenset())
    if extra:
        allowed = sorted({"deliver"} | EXTRAS.get(kind, frozenset()))
        raise DecodeError(f"{where}: {min(extra)!r} cannot stand beside {kind}; allowed: {', '.join(allowed)}")
    try:
        deliver = directive_from(raw["deliver"]) if "deliver" in raw else None
        if kind in EVENT_TYPES:
            return Step(line, "event", raw, event=_event(kind, raw[kind]), deliver=deliver)
        return _own_step(where, line, kind, raw, deliver)
    except DecodeError as error:
        raise DecodeError(f"{where}: {error}") from error


def _own_step(where: str, line: int, kind: str, raw: dict[str, Any], deliver: Directive | None) -> Step:
    value = raw[kind]
    settling, config = None, None
    if kind == "advance" and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise DecodeError(f"advance is {value!r}; expected milliseconds, 0 or more")
    if kind == "settle":
        settling = _settling(value)
    if kind == "reload":
        config = scenario_config(value, where)
    if kind in {"expect", "signals", "never"} and not isinstance(value, list):
        raise DecodeError(f"{kind} is {value!r}; expected a list")
    if kind in {"metrics", "state"} and not isinstance(value, dict):
        raise DecodeError(f"{kind} is {value!r}; expected an object")
    if kind == "expect":
        for item in value:
            if not isinstance(item, dict) or len(item) != 1 or not isinstance(next(iter(item.values())), dict):
                raise DecodeError(f'expect: {item!r} is no command; write {{"send": {{…}}}}')
    return Step(line, kind, raw, deliver=deliver, settling=settling, config=config)


def _settling(value: object) -> Settling:
    try:
        return msgspec.convert(value, Settling)
    except msgspec.ValidationError as error:
        raise DecodeError(f"settle: {error}") from error


def _event(kind: str, fields: object) -> Event:
    if not isinstance(fields, dict):
        raise DecodeError(f"{kind} is {fields!r}; expected an object of fields")
    given = {"type": kind, "chat": CHAT, **fields}
    if kind in PLACED and given.get("message") is not None and "channel" not in given:
        given["channel"] = CHANNEL
    return event_from(given)
