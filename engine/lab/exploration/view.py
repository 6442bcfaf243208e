"""What users, the agent and the host saw on one branch: each channel in its order, every end, every answer to a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine import codec
from turnkeeper.engine.commands import Ack, Edit, Preview, React, Send, Settleable, TurnSettled
from turnkeeper.engine.events import Settled

if TYPE_CHECKING:
    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.events import Event

__all__ = ["View", "outcome_of", "written"]

Line = tuple[int, tuple[Settleable, ...]]
"""A checksum, and the operations of one channel."""


class View:
    """What was seen so far. A copy shares everything that did not change."""

    __slots__ = ("acks", "channels", "ends", "told")

    def __init__(self) -> None:
        self.channels: dict[str, Line] = {}
        self.told: dict[tuple[str, int], str] = {}
        """(delivery, attempt) → what the platform told first that is certain; that it arrived, whenever."""
        self.ends: dict[str, tuple[TurnSettled, ...]] = {}
        self.acks: dict[str, tuple[str, ...]] = {}

    def fork(self) -> View:
        """Return a copy that goes its own way."""
        copy = View()
        copy.channels, copy.told = self.channels.copy(), self.told.copy()
        copy.ends, copy.acks = self.ends.copy(), self.acks.copy()
        return copy

    def performed(self, command: Command) -> None:
        """Take in what was handed over; what a restart repeats is the same again."""
        if isinstance(command, Send | Edit | Preview | React):
            plain = msgspec.structs.replace(command, id="")
            crc, line = self.channels.get(str(command.channel), (0, ()))
            crc = codec.checksum(crc.to_bytes(4, "big") + codec.encode(plain))
            self.channels[str(command.channel)] = (crc, (*line, plain))
        elif isinstance(command, TurnSettled):
            key = f"{command.chat}/{command.turn_id}"
            known = self.ends.get(key, ())
            if all(one.id != command.id for one in known):
                self.ends[key] = (*known, command)
        elif isinstance(command, Ack):
            key = f"{command.chat}/{command.call_id}"
            self.acks[key] = (*self.acks.get(key, ()), _answer(command))

    def heard(self, event: Event) -> None:
        """Take in what the platform told."""
        if isinstance(event, Settled):
            key = (event.delivery, event.attempt or 1)
            if event.outcome == "sent" or self.told.get(key, "unknown") == "unknown":
                self.told[key] = "parts" if event.outcome == "failed" and event.parts_done else event.outcome

    def mark(self) -> tuple[object, ...]:
        """Return what was seen, for comparing branches."""
        return (
            tuple(sorted((name, crc) for name, (crc, _) in self.channels.items())),
            tuple(sorted(self.told.items())),
            tuple(sorted((key, tuple(end.outcome for end in ends)) for key, ends in self.ends.items())),
            tuple(sorted(self.acks.items())),
        )


def _answer(command: Ack) -> str:
    return (command.delivery or "ok") if command.ok else f"error: {command.error}"


SHOWN = ("type", "text", "files", "mark", "quote", "purpose", "turn_id", "interim", "format", "replaces_preview")


def outcome_of(view: View) -> dict[str, Any]:
    """Return what was seen in the end, as plain values; what certainly failed was not seen."""
    return {
        "channels": {name: _line(view, line) for name, (_, line) in sorted(view.channels.items())},
        "turns": {key: [end.outcome for end in ends] for key, ends in sorted(view.ends.items())},
        "acks": {key: list(acks) for key, acks in sorted(view.acks.items())},
    }


def _line(view: View, line: tuple[Settleable, ...]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for command in line:
        told = view.told.get((command.delivery, command.attempt), "unknown")
        if told == "failed":
            continue
        raw = msgspec.to_builtins(command)
        seen = {name: raw[name] for name in SHOWN if name in raw}
        if told != "sent":
            seen["arrived"] = told
        last = shown[-1] if shown else None
        if last is not None and isinstance(command, Preview) and _same_bubble(last, seen):
            shown[-1] = {**seen, **({"quote": last["quote"]} if "quote" in last else {})}
        else:
            shown.append(seen)
    return shown


def _same_bubble(last: dict[str, Any], seen: dict[str, Any]) -> bool:
    """A later snapshot takes the place of an earlier one of its turn."""
    return bool(last["type"] == "preview" and last["turn_id"] == seen["turn_id"] and "quote" not in seen)


def written(outcome: dict[str, Any]) -> list[str]:
    """Write an outcome as lines for a reader."""
    lines = [f"{name}: {_said(one)}" for name, line in outcome["channels"].items() for one in line]
    lines += [f"turn {key}: {' and '.join(ends)}" for key, ends in outcome["turns"].items()]
    return lines + [f"call {key}: {', '.join(acks)}" for key, acks in outcome["acks"].items()]


def _said(one: dict[str, Any]) -> str:
    what = one.get("purpose") or one["type"]
    said = one.get("text") or ", ".join(one.get("files", ())) or one.get("mark", "")
    notes = [f"turn {one['turn_id']}"] if "turn_id" in one else []
    notes += [f"quoting {one['quote']}"] if "quote" in one else []
    notes += [name for name in ("interim", "replaces_preview") if one.get(name)]
    notes += [f"arrived: {one['arrived']}"] if "arrived" in one else []
    return f"{what} {said!r} ({', '.join(notes)})" if notes else f"{what} {said!r}"
