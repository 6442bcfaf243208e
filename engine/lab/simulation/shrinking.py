"""Shrinking: leave out steps, then settings, while the same breach remains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnkeeper.engine.lab.simulation.script import Script

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["shrink"]

replace = msgspec.structs.replace


def shrink(script: Script, fails: Callable[[Script], bool]) -> Script:
    """Return a script in which no step can be left out; the same one if it does not fail again."""
    if not fails(script):
        return script
    script = _shorter(script, fails)
    script = _plainer(script, fails)
    return _calmer(_shorter(script, fails), fails)


def _shorter(script: Script, fails: Callable[[Script], bool]) -> Script:
    """Leave out ever smaller runs of steps (ddmin)."""
    size = max(1, len(script.steps) // 2)
    while True:
        at = 0
        while at < len(script.steps):
            steps = script.steps[:at] + script.steps[at + size :]
            shorter = replace(script, steps=steps)
            if steps and fails(shorter):
                script = shorter
            else:
                at += size
        if size == 1:
            return script
        size = max(1, size // 2)


def _plainer(script: Script, fails: Callable[[Script], bool]) -> Script:
    """Leave out settings."""
    for section, settings in tuple(script.config.items()):
        for name in settings:
            rest = {key: value for key, value in script.config[section].items() if key != name}
            config = {**script.config, section: rest}
            plainer = replace(script, config={key: value for key, value in config.items() if value})
            if section in script.config and fails(plainer):
                script = plainer
    return script


def _calmer(script: Script, fails: Callable[[Script], bool]) -> Script:
    """Let the platform settle well wherever its mood does not matter."""
    for index, step in enumerate(script.steps):
        if "deliver" in step and len(step) > 1:
            calm = {key: value for key, value in step.items() if key != "deliver"}
            calmer = replace(script, steps=(*script.steps[:index], calm, *script.steps[index + 1 :]))
            if fails(calmer):
                script = calmer
    return script
