"""Scenarios, replay, a simulated platform, exploring, trying out a gateway; public, for hosts' own tests (docs/LAB.md).

The names below are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnkeeper.engine.lab.clock import VirtualClock
    from turnkeeper.engine.lab.explorer import Breach, Explored, Outcome, explore
    from turnkeeper.engine.lab.hosting.fake import (
        Bubble,
        ChatFailure,
        FakeChat,
        Forbidden,
        QuoteGone,
        TimedOut,
        TooManyRequests,
    )
    from turnkeeper.engine.lab.hosting.tryout import Tried, try_gateway
    from turnkeeper.engine.lab.kit import Lab, command, preview, react, send, turn_settled
    from turnkeeper.engine.lab.platform import Platform
    from turnkeeper.engine.lab.runner import Mismatch, Result, ScenarioRunner, run_scenario
    from turnkeeper.engine.lab.runtime import CellRuntime
    from turnkeeper.engine.lab.scenario import Scenario, read_scenario
    from turnkeeper.engine.lab.simulator import Simulated, simulate_seed

__all__ = [
    "Breach",
    "Bubble",
    "CellRuntime",
    "ChatFailure",
    "Explored",
    "FakeChat",
    "Forbidden",
    "Lab",
    "Mismatch",
    "Outcome",
    "Platform",
    "QuoteGone",
    "Result",
    "Scenario",
    "ScenarioRunner",
    "Simulated",
    "TimedOut",
    "TooManyRequests",
    "Tried",
    "VirtualClock",
    "command",
    "explore",
    "preview",
    "react",
    "read_scenario",
    "run_scenario",
    "send",
    "simulate_seed",
    "try_gateway",
    "turn_settled",
]

_HOMES = {
    "clock": ("VirtualClock",),
    "explorer": ("Breach", "Explored", "Outcome", "explore"),
    "hosting.fake": ("Bubble", "ChatFailure", "FakeChat", "Forbidden", "QuoteGone", "TimedOut", "TooManyRequests"),
    "hosting.tryout": ("Tried", "try_gateway"),
    "kit": ("Lab", "command", "preview", "react", "send", "turn_settled"),
    "platform": ("Platform",),
    "runner": ("Mismatch", "Result", "ScenarioRunner", "run_scenario"),
    "runtime": ("CellRuntime",),
    "scenario": ("Scenario", "read_scenario"),
    "simulator": ("Simulated", "simulate_seed"),
}
"""Where the names live."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a name may be a class or a function
    """Import a name when it is first used."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the kit, imported or not."""
    return sorted({*globals(), *__all__})
