"""The settings: one TOML file, every key typed, bounded and described (CONFIG.md).

`Config` is what a host writes; `Policy` is the part that steps read, passed to them as an argument. A
policy is data: it is journaled when the engine starts and at each reload, and a replay takes it from there.
"""

from __future__ import annotations

from turnkeeper.engine.config.reading import allowed, example_toml, host_port, load_config
from turnkeeper.engine.config.sections import Config, Dedup, Limits, Policy, TranscriptRules, as_policy

__all__ = [
    "Config",
    "Dedup",
    "Limits",
    "Policy",
    "TranscriptRules",
    "allowed",
    "as_policy",
    "example_toml",
    "host_port",
    "load_config",
]
