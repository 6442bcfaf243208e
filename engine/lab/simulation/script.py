"""A script: settings and steps, as the seed made them; it can be written as a scenario file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from turnkeeper.engine.lab.simulation.platform import Quirks
from turnkeeper.engine.lab.simulation.player import CUT

__all__ = ["Script"]


class Script(msgspec.Struct, frozen=True):
    """Everything that makes a run what it is."""

    config: dict[str, Any]
    steps: tuple[dict[str, Any], ...]
    quirks: Quirks = Quirks()

    def write(self, file: str | Path, title: str, seed: int, breaches: list[str]) -> None:
        """Write it as a scenario file that `turnkeeper run` plays: a recording, with the breach as a comment.

        A crash in the middle of a step is beyond the scenario language; it is written after the step.
        """
        header: dict[str, Any] = {"scenario": title, "source": f"turnkeeper simulate --seeds 1 --from {seed}"}
        if self.config:
            header["config"] = self.config
        lines = [header, *({"#": f"breach: {breach}"} for breach in breaches[:5])]
        if not self.quirks.rewinds_at_once:
            lines.append({"#": "there, the host answered rewind by the rewound steps alone"})
        if self.quirks.holds_again:
            lines.append({"#": "there, the platform held every attempt, not the first alone"})
        cut: dict[str, Any] | None = None
        for step in self.steps:
            if CUT in step:
                cut = step[CUT]
                continue
            lines.append(step)
            if cut is not None:
                where = "before" if cut["before"] else "after"
                lines.append({"#": f"the process died in this step, {where} its record {cut['records']}"})
                died: dict[str, Any] = {"crash": True}
                died.update({name: cut[name] for name in ("down_ms", "reconcile") if name in cut})
                lines.append(died)
                cut = None
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        Path(file).write_text(text, encoding="utf-8")
