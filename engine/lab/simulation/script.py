"""A script: settings and steps, as the seed made them; it can be written as a scenario file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine.lab.simulation.platform import Quirks

if TYPE_CHECKING:
    from turnkeeper.engine.lab.simulation.player import Player

__all__ = ["Script"]


class Script(msgspec.Struct, frozen=True):
    """Everything that makes a run what it is."""

    config: dict[str, Any]
    steps: tuple[dict[str, Any], ...]
    quirks: Quirks = Quirks()

    def write(self, file: str | Path, title: str, source: str, played: Player) -> None:
        """Write it as a scenario file that `turnkeeper run` plays, and that fails for as long as the breach is there.

        Args:
            file: where to.
            title: what it shows.
            source: the command that found it.
            played: who played it, up to the breach.

        """
        header: dict[str, Any] = {"scenario": title, "source": source}
        if self.config:
            header["config"] = self.config
        if self.quirks != Quirks():
            header["platform"] = msgspec.to_builtins(self.quirks)
        lines = [header, *({"#": f"breach: {breach}"} for breach in played.breaches[:5]), *played.steps]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        Path(file).write_text(text, encoding="utf-8")
