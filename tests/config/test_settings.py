"""Every key with its default, the example file, and what of a configuration decides."""

import tomllib
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from turnkeeper.engine import codec
from turnkeeper.engine.config import Config, Policy, as_policy, example_toml, load_config
from turnkeeper.engine.errors import ConfigError
from turnkeeper.engine.journal import Body

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "config.example.toml"
ABSENT = None

# The list of settings, copied from the specification: key → default.
KEYS: dict[str, object] = {
    "attribution.fold_proof": "consumed",
    "timers.stop_grace_ms": 2000,
    "timers.quiet_ms": 18000,
    "timers.retry_grace_ms": 5000,
    "timers.interrupt_grace_ms": 5000,
    "timers.drop_confirm_ms": 20000,
    "timers.turn_idle_ms": 600000,
    "timers.turn_max_ms": 5400000,
    "timers.question_max_ms": 86400000,
    "finalize.without_stop": False,
    "finalize.final_reply": "authoritative",
    "delivery.retries": 4,
    "delivery.backoff_ms": (1000, 5000, 25000, 120000),
    "delivery.jitter_percent": 20,
    "delivery.settle_timeout_ms": 60000,
    "delivery.queue_timeout_ms": 600000,
    "delivery.on_unknown": "assume-sent",
    "delivery.concurrency": 32,
    "dedup.window_ms": 60000,
    "refusal.auto_rewind": False,
    "refusal.max_rewinds": 3,
    "refusal.mark": "refused",
    "breaker.enabled": True,
    "breaker.failures": 3,
    "breaker.max_rewinds": 3,
    "speech.prose": "locus",
    "speech.fallback": "none",
    "speech.home": ABSENT,
    "inbound.receipt_window_ms": 3600000,
    "transcript.fallback": "cover",
    "transcript.standalone": "hide",
    "limits.ledger": 256,
    "limits.tombstones": 4096,
    "limits.calls": 1024,
    "limits.contents": 1024,
    "limits.calls_per_s": 5,
    "limits.calls_burst": 20,
    "limits.open_turns": 50,
    "limits.settled_turns": 64,
    "limits.previews_per_turn": 200,
    "limits.wakes": 256,
    "limits.parked": 256,
    "limits.occurrences": 4096,
    "limits.outbox": 256,
    "limits.deliveries": 1024,
    "limits.receipts": 65536,
    "limits.unconfirmed": 4096,
    "limits.waiters": 65536,
    "limits.dead_letters": 1024,
    "limits.chats": 1000000,
    "limits.channels_per_chat": 256,
    "limits.consumed_ids": 64,
    "limits.text_bytes": 1048576,
    "limits.json_depth": 32,
    "limits.ingress_high": 65536,
    "limits.ingress_low": 49152,
    "journal.kind": ABSENT,
    "journal.path": ABSENT,
    "journal.sync": "full",
    "journal.linger_ms": 1,
    "journal.snapshot_every_events": 10000,
    "journal.retain_days": 30,
    "recovery.max_age_ms": 3600000,
    "recovery.resend_per_s": 5,
    "metrics.addr": ABSENT,
    "invariants.live": True,
}

WORDS = {
    "attribution.fold_proof": ["consumed", "off"],
    "finalize.final_reply": ["authoritative", "rescue-different"],
    "delivery.on_unknown": ["assume-sent", "resend"],
    "speech.prose": ["locus", "hybrid", "explicit", "disabled"],
    "speech.fallback": ["none", "latest-inbound"],
    "transcript.fallback": ["cover", "identical", "text"],
    "transcript.standalone": ["hide", "context"],
    "journal.kind": ["memory", "sqlite"],
    "journal.sync": ["full", "normal"],
}


def dotted(config: Config) -> dict[str, object]:
    """Flatten a configuration: key path → value."""
    tables = msgspec.to_builtins(config)
    return {f"{section}.{key}": value for section, values in tables.items() for key, value in values.items()}


def as_table(key: str, value: object) -> dict[str, object]:
    section, _, name = key.partition(".")
    return {section: {name: value}}


def test_the_defaults_are_those_of_the_specification() -> None:
    assert dotted(Config()) == KEYS


def test_the_example_file_is_what_the_code_says() -> None:
    """Change a setting in engine/config/sections.py, then write the file anew:
    `python -c "from turnkeeper.engine.config import example_toml; print(example_toml(), end='')" > config.example.toml`
    """
    assert EXAMPLE.read_text(encoding="utf-8") == example_toml()


def test_the_example_file_loads_to_the_defaults() -> None:
    assert load_config(EXAMPLE) == Config()
    assert load_config(str(EXAMPLE)) == Config()


def test_every_setting_stands_in_the_example_once_with_its_comment() -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    section, found = "", []
    for line, before in zip(lines[1:], lines, strict=False):
        if line.startswith("["):
            section = line.strip("[]")
        elif " = " in line and not line.endswith("."):
            found.append(f"{section}.{line.removeprefix('# ').partition(' ')[0]}")
            assert before.startswith("# "), f"{line} has no comment"
            assert before.endswith(".")
    assert sorted(found) == sorted(KEYS)
    assert max(map(len, lines)) <= 110


def test_what_is_commented_out_can_be_switched_on() -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    settings = [line.removeprefix("# ") for line in lines if " = " in line and not line.endswith(".")]
    switched = [line for line in lines if line.startswith("[") or line in settings]
    text = "\n".join(line.removeprefix("# ") if line.removeprefix("# ") in settings else line for line in lines)
    config = load_config(tomllib.loads(text))
    assert len(settings) == len(KEYS)
    assert len(switched) < len(KEYS) + 15
    assert (config.speech.home, config.journal.kind, config.metrics.addr) == ("discord/42", "sqlite", "127.0.0.1:9464")


def test_comments_name_unit_and_every_word() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    for key in KEYS:
        name = key.rpartition(".")[2]
        comment = text.partition(f"{name} = ")[0].rpartition("\n\n")[2]
        assert not name.endswith("_ms") or "milliseconds" in comment, key
    for key, words in WORDS.items():
        listed = ", ".join(f'"{word}"' for word in words)
        assert f"one of {listed}." in text, key


@pytest.mark.parametrize("key", WORDS)
def test_every_word_is_taken(key: str) -> None:
    for word in WORDS[key]:
        table = as_table(key, word)
        if word == "sqlite":
            table = {"journal": {"kind": "sqlite", "path": "x"}}
        assert dotted(load_config(table))[key] == word


@pytest.mark.parametrize("key", [key for key, value in KEYS.items() if type(value) is int])
def test_bounds_are_inclusive(key: str) -> None:
    section, _, name = key.partition(".")
    kinds = {f.name: f.type for f in msgspec.structs.fields(type(getattr(Config(), section)))}
    meta = get_args(kinds[name])[1]
    for value in (meta.ge, meta.le):
        if key not in {"limits.ingress_low", "limits.ingress_high"}:
            assert dotted(load_config(as_table(key, value)))[key] == value
    for value in (meta.ge - 1, meta.le + 1):
        with pytest.raises(ConfigError, match=f"{key} is "):
            load_config(as_table(key, value))


def test_the_two_watermarks_may_meet() -> None:
    assert load_config({"limits": {"ingress_low": 10, "ingress_high": 10}}).limits.ingress_low == 10


def test_a_configuration_passes_as_it_is_and_is_checked() -> None:
    config = load_config({"timers": {"quiet_ms": 5}})
    assert load_config(config) is config
    wrong = msgspec.structs.replace(config, timers=msgspec.structs.replace(config.timers, quiet_ms=-1))
    with pytest.raises(ConfigError, match=r"config: timers\.quiet_ms is -1; expected whole milliseconds from 0 to"):
        load_config(wrong)


def test_a_policy_holds_what_decides_and_survives_the_journal() -> None:
    config = load_config({"attribution": {"fold_proof": "off"}, "journal": {"linger_ms": 9}})
    policy = as_policy(config, reconciles=True)
    assert policy.attribution.fold_proof == "off"
    assert policy.reconciles
    assert codec.decode(codec.encode(Body(configured=policy)), Body).configured == policy
    undecided = set(Config.__struct_fields__) - set(Policy.__struct_fields__)
    assert undecided == {"transcript", "journal", "metrics", "invariants"}
