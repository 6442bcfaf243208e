"""One answer per turn, for chat gateways that drive an agent.

The names below are imported when they are first used: `import turnkeeper.engine` alone loads neither pykka nor
prometheus_client. `events`, `commands`, `signals` and `errors` are the modules of `turnkeeper.engine`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnkeeper.actors.misuse import Misuse
    from turnkeeper.actors.release import DeadLetter
    from turnkeeper.actors.system import Engine
    from turnkeeper.actors.waiting import Admission
    from turnkeeper.engine import commands, errors, events, signals
    from turnkeeper.engine.config import Config, load_config
    from turnkeeper.engine.errors import (
        ConfigError,
        DecodeError,
        EngineError,
        InvariantViolated,
        JournalError,
        Locked,
        NotRunning,
        Overloaded,
        SchemaTooNew,
        SetAside,
        TableError,
    )
    from turnkeeper.engine.ids import ChannelRef
    from turnkeeper.engine.journal import Journal, MemoryJournal
    from turnkeeper.engine.ports import Clock, Gateway, Reconciling

__all__ = [
    "Admission",
    "ChannelRef",
    "Clock",
    "Config",
    "ConfigError",
    "DeadLetter",
    "DecodeError",
    "Engine",
    "EngineError",
    "Gateway",
    "InvariantViolated",
    "Journal",
    "JournalError",
    "Locked",
    "MemoryJournal",
    "Misuse",
    "NotRunning",
    "Overloaded",
    "Reconciling",
    "SchemaTooNew",
    "SetAside",
    "TableError",
    "commands",
    "errors",
    "events",
    "load_config",
    "signals",
]

_MODULES = frozenset({"commands", "errors", "events", "signals"})
_HOMES = {
    "Admission": "actors.waiting",
    "ChannelRef": "engine.ids",
    "Clock": "engine.ports",
    "Config": "engine.config",
    "DeadLetter": "actors.release",
    "Engine": "actors.system",
    "Gateway": "engine.ports",
    "Journal": "engine.journal",
    "MemoryJournal": "engine.journal",
    "Misuse": "actors.misuse",
    "Reconciling": "engine.ports",
    "load_config": "engine.config",
}
"""Where a name lives; one that is not here is an error, in `engine.errors`."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a name may be a class, a function or a module
    """Import a name of the face when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _MODULES:
        found: Any = import_module(f"{__name__}.engine.{name}")
    else:
        found = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'engine.errors')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the face, imported or not."""
    return sorted({*globals(), *__all__})
