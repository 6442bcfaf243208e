"""What a scenario expects: commands and acks, signals, metrics, state; the first that differs ends the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine.commands import Ack
from turnkeeper.engine.lab.matching import at_path, matches, pair_up, plain
from turnkeeper.engine.lab.platform import HIDDEN, Platform
from turnkeeper.engine.lab.steps import Named, named
from turnkeeper.engine.lab.trace import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnkeeper.engine.commands import Command
    from turnkeeper.engine.signals import Signal

__all__ = ["Expectations", "Mismatch", "Unexpected"]


class Mismatch(msgspec.Struct, frozen=True):
    """The first thing that was not as expected."""

    line: int
    expected: Any
    actual: Any


class Unexpected(Exception):
    """A step was not as expected; the runner turns it into a `Mismatch`."""

    def __init__(self, expected: object, actual: object) -> None:
        super().__init__(expected, actual)
        self.expected = expected
        self.actual = actual


class Expectations:
    """Compares what a scenario says with what came.

    Args:
        platform: has what was performed.
        signals: those since the start; the list grows while the scenario runs.
        inspect: looks into a chat.
        sample: reads a sample by its written name; without it a `metrics` step cannot hold.

    """

    def __init__(
        self,
        platform: Platform,
        signals: list[Signal],
        inspect: Callable[[str], dict[str, Any]],
        sample: Callable[[str], float] | None,
    ) -> None:
        self._platform = platform
        self._came = signals
        self._inspect = inspect
        self._sample = sample
        self._covered = 0

    def check(self, kind: str, raw: dict[str, Any]) -> None:
        """Check one step; a comment says nothing.

        Raises:
            Unexpected: it does not hold.

        """
        match kind:
            case "expect":
                self._expect(raw)
            case "signals" | "never":
                self._signals(raw)
            case "metrics":
                self._metrics(raw["metrics"])
            case "state":
                self._state(raw)
            case _:
                return

    def uncovered(self) -> None:
        """Check that no command is left that no `expect` has covered.

        Raises:
            Unexpected: one is.

        """
        left = _shown(self._platform.performed[self._covered :])
        if left:
            raise Unexpected("no command that an expect has not covered", list(map(describe, left)))

    def _expect(self, raw: dict[str, Any]) -> None:
        ordered = raw.get("ordered", False)
        new = self._platform.performed[self._covered :]
        self._covered += len(new)
        shown = _shown(new)
        wanted = list(map(named, raw["expect"]))
        if not _same(wanted, list(map(_named, shown)), ordered=ordered):
            raise Unexpected(raw["expect"], list(map(describe, shown)))
        if "acks" in raw:
            acks = [command for command in new if isinstance(command, Ack)]
            wanted = [("ack", fields) for fields in raw["acks"]]
            if not _same(wanted, list(map(_named, acks)), ordered=ordered):
                raise Unexpected({"acks": raw["acks"]}, list(map(describe, acks)))

    def _signals(self, raw: dict[str, Any]) -> None:
        came = list(map(_named, self._came))
        wanted = list(map(named, raw.get("signals", [])))
        found = _subsequence(wanted, came) if raw.get("ordered", False) else pair_up(wanted, came)
        if not found:
            raise Unexpected(raw.get("signals"), [name for name, _ in came])
        banned = set(raw.get("never", []))
        bad = [name for name, _ in came if name in banned]
        if bad:
            raise Unexpected({"never": sorted(banned)}, bad)

    def _metrics(self, wanted: dict[str, float]) -> None:
        if self._sample is None:
            raise Unexpected(wanted, "no metrics are collected here; run it by `turnkeeper run`")
        actual = {name: self._sample(name) for name in wanted}
        if actual != wanted:
            raise Unexpected(wanted, actual)

    def _state(self, raw: dict[str, Any]) -> None:
        seen = self._inspect(raw.get("chat", "c1"))
        actual = {path: at_path(seen, path) for path in raw["state"]}
        if actual != raw["state"]:
            raise Unexpected(raw["state"], actual)


def _shown(commands: list[Command]) -> list[Command]:
    return [command for command in commands if not isinstance(command, HIDDEN)]


def _named(value: msgspec.Struct) -> Named:
    return str(type(value).__struct_config__.tag), plain(value)


def _same(wanted: list[Named], came: list[Named], *, ordered: bool) -> bool:
    if len(wanted) != len(came):
        return False
    if ordered:
        return all(w[0] == c[0] and matches(w[1], c[1]) for w, c in zip(wanted, came, strict=True))
    return pair_up(wanted, came)


def _subsequence(wanted: list[Named], came: list[Named]) -> bool:
    rest = iter(came)
    return all(any(w[0] == c[0] and matches(w[1], c[1]) for c in rest) for w in wanted)
