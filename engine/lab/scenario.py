"""The scenario file: JSON Lines, a header and one step a line (PROTOCOL "The scenario file")."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from turnkeeper.engine.codec import EVENT_TYPES
from turnkeeper.engine.config import Config, load_config
from turnkeeper.engine.errors import ConfigError, DecodeError
from turnkeeper.engine.lab.lines import Line, lines_of
from turnkeeper.engine.lab.platform import FIRST_MESSAGE
from turnkeeper.engine.lab.simulation.platform import Quirks
from turnkeeper.engine.lab.steps import CHAT, CHECKING, Step, check_step, crash_of, event_of, settling_of, step_kind

__all__ = [
    "CHAT",
    "Changes",
    "Scenario",
    "Step",
    "as_recording",
    "is_transcript",
    "lines_of",
    "read_scenario",
    "scenario_config",
    "step_of",
]

Changes = Mapping[str, Mapping[str, object]]
"""Settings by section and key, laid over a file's own."""


class Scenario(msgspec.Struct, frozen=True):
    """A file, read and checked."""

    file: str
    name: str
    config: Config
    steps: tuple[Step, ...]
    next_message: int = FIRST_MESSAGE
    source: str = ""
    quirks: Quirks = Quirks()
    """In what the simulated host differs from the usual one."""

    @property
    def judged(self) -> bool:
        """The simulator's oracle watches."""
        return any(step.kind == "complaints" for step in self.steps)

    @property
    def dies_within(self) -> bool:
        """The process dies in the middle of a step."""
        return any(step.crash is not None and step.crash.during is not None for step in self.steps)

    @property
    def recording(self) -> bool:
        """A file without any `expect` only runs and prints."""
        return not any(step.kind == "expect" for step in self.steps)

    @property
    def checked(self) -> bool:
        """Something in it can fail: an expectation of any kind."""
        return any(step.kind in CHECKING for step in self.steps)


def is_transcript(lines: list[Line]) -> bool:
    """Say whether the header is that of a transcript scenario."""
    return "transcript" in lines[0][1]


def read_scenario(file: str | Path, lines: list[Line] | None = None, changes: Changes | None = None) -> Scenario:
    """Read and check a scenario.

    Args:
        file: its path, or the name for errors where `lines` are given.
        lines: what it holds, where it was read before.
        changes: settings that apply instead of the file's, in its header and in each of its reloads.

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
        scenario_config(header.get("config", {}), where, changes),
        tuple(step_of(f"{file}:{at}", at, raw, changes) for at, raw in lines[1:]),
        next_message=_first_message(header.get("platform", {}), where),
        quirks=_quirks(header.get("platform", {}), where),
        source=str(header.get("source", "")),
    )


def as_recording(scenario: Scenario) -> Scenario:
    """Return the same story without what it expects."""
    return msgspec.structs.replace(scenario, steps=tuple(step for step in scenario.steps if step.kind not in CHECKING))


def _first_message(platform: object, where: str) -> int:
    if not isinstance(platform, dict) or platform.keys() - {"next_message", *Quirks.__struct_fields__}:
        raise DecodeError(f'{where}: platform is {platform!r}; expected {{"next_message": 6408}}')
    first = platform.get("next_message", FIRST_MESSAGE)
    if not isinstance(first, int) or isinstance(first, bool):
        raise DecodeError(f"{where}: platform.next_message is {first!r}; expected an integer")
    return first


def _quirks(platform: dict[str, Any], where: str) -> Quirks:
    try:
        return msgspec.convert({key: value for key, value in platform.items() if key != "next_message"}, Quirks)
    except msgspec.ValidationError as error:
        raise DecodeError(f"{where}: platform: {error}") from error


def scenario_config(raw: object, where: str, changes: Changes | None = None) -> Config:
    """Read a configuration of a scenario: without jitter unless it says so, and with `changes` on top.

    Raises:
        DecodeError: a setting cannot be used.

    """
    if not isinstance(raw, dict):
        raise DecodeError(f"{where}: config is {raw!r}; expected an object in the shape of the TOML file")
    merged: dict[str, Any] = {"delivery": {"jitter_percent": 0}}
    for layer in (raw, changes or {}):
        for section, values in layer.items():
            known = merged.get(section, {})
            both = isinstance(values, Mapping) and isinstance(known, Mapping)
            merged[section] = {**known, **values} if both else values
    try:
        return load_config(merged)
    except ConfigError as error:
        raise DecodeError(f"{where}: {error}") from error


def step_of(where: str, line: int, raw: dict[str, Any], changes: Changes | None = None) -> Step:
    """Read and check one step.

    Raises:
        DecodeError: where it stands, what is wrong and what is allowed.

    """
    try:
        kind = step_kind(raw)
        if kind in EVENT_TYPES:
            deliver = check_step(kind, {"deliver": raw["deliver"]}) if "deliver" in raw else None
            return Step(line, "event", raw, event=event_of(kind, raw[kind]), deliver=deliver)
        deliver = check_step(kind, raw)
        settling = settling_of(raw[kind]) if kind == "settle" else None
        config = scenario_config(raw["reload"], "reload", changes) if "reload" in raw else None
        crash = crash_of(raw, config) if kind == "crash" else None
    except DecodeError as error:
        raise DecodeError(f"{where}: {error}") from error
    return Step(line, kind, raw, deliver=deliver, settling=settling, config=config, crash=crash)
