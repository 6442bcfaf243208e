"""The settings: one TOML file, every key typed, bounded and described (CONFIG.md).

`Config` is what a host writes; `Policy` is the part that steps read, passed to them as an argument. A
policy is data: it is journaled when the engine starts and at each reload, and a replay takes it from there.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, field

from turnkeeper.engine.errors import ConfigError
from turnkeeper.engine.ids import ChannelRef

__all__ = ["Config", "Policy", "allowed", "as_policy", "example_toml", "host_port", "load_config"]

DAY_MS = 86_400_000
PORT_MAX = 65_535
COMMENT_MAX, VALUE_MAX, FILE_MAX = 110, 80, 1 << 20
"""Longest comment line of the example, and longest value in an error, in characters."""
UNITS = {"ms": "whole milliseconds", "percent": "whole percent", "bytes": "whole bytes", "days": "whole days"}
"""Of a setting, by the last word of its name."""


def _ms(meaning: str, *, least: int = 0, most: int = 30 * DAY_MS) -> Meta:
    return Meta(ge=least, le=most, description=meaning)


def _count(meaning: str, *, least: int = 0, most: int = 10_000_000) -> Meta:
    return Meta(ge=least, le=most, description=meaning)


def _about(meaning: str, *, example: str | None = None) -> Meta:
    return Meta(description=meaning, examples=None if example is None else [example])


class Section(msgspec.Struct, frozen=True, gc=False):
    """A table of the TOML file."""


class Attribution(Section, frozen=True, gc=False):
    """Who owns a reply."""

    fold_proof: Annotated[
        Literal["consumed", "off"],
        _about('"consumed": a fold\'s reply that names one open turn is that turn\'s; "off": never, for comparison'),
    ] = "consumed"


class Timers(Section, frozen=True, gc=False):
    """When a turn ends."""

    stop_grace_ms: Annotated[int, _ms("between Stop and the turn's end")] = 2000
    quiet_ms: Annotated[int, _ms("silence that ends an answered turn")] = 18000
    retry_grace_ms: Annotated[int, _ms("for the agent's own retry of a failed final reply")] = 5000
    interrupt_grace_ms: Annotated[int, _ms("between an interrupt and the end of the turns it stopped")] = 5000
    drop_confirm_ms: Annotated[int, _ms("until an unseen fold is judged")] = 20000
    turn_idle_ms: Annotated[int, _ms("a turn without any activity ends after this", least=1)] = 600_000
    turn_max_ms: Annotated[int, _ms("no turn lives longer", least=1)] = 5_400_000
    question_max_ms: Annotated[int, _ms("an open question holds the clocks no longer")] = DAY_MS


class Finalize(Section, frozen=True, gc=False):
    """What the end of a turn sends."""

    without_stop: Annotated[
        bool, _about("the host has no Stop hook: a final reply alone arms the quiet window; set quiet_ms to 2_000")
    ] = False
    final_reply: Annotated[
        Literal["authoritative", "rescue-different"],
        _about('"rescue-different": a differing Stop text is sent beside a delivered final reply, for comparison'),
    ] = "authoritative"


class Delivery(Section, frozen=True, gc=False):
    """How a channel sends."""

    retries: Annotated[int, _count("retries of transient failures; 0 leaves them to the agent", most=100)] = 4
    backoff_ms: Annotated[
        tuple[Annotated[int, Meta(ge=0, le=DAY_MS)], ...],
        Meta(min_length=1, description="wait before each retry; the last repeats"),
    ] = (1000, 5000, 25000, 120_000)
    jitter_percent: Annotated[
        int, _count("added to the back-off, up to this; from crc32 of (delivery, attempt)", most=100)
    ] = 20
    settle_timeout_ms: Annotated[int, _ms("from an attempt's hand-over until it counts as unknown; 0: no bound")] = (
        60000
    )
    queue_timeout_ms: Annotated[int, _ms("waiting in a channel's queue until it counts as failed", least=1)] = 600_000
    on_unknown: Annotated[
        Literal["assume-sent", "resend"], _about("what an unknown outcome counts as when nobody can reconcile")
    ] = "assume-sent"
    concurrency: Annotated[int, _count("`perform` calls at once", least=1, most=10_000)] = 32


class Dedup(Section, frozen=True, gc=False):
    """When a repeat is the same answer."""

    window_ms: Annotated[int, _ms("the same content of one turn is replayed this long")] = 60000


class Refusal(Section, frozen=True, gc=False):
    """What a refusal does."""

    auto_rewind: Annotated[bool, _about("remove the refused exchange and run again")] = False
    max_rewinds: Annotated[int, _count("rewinds in one episode", least=1, most=10)] = 3
    mark: Annotated[str, _about("what react.mark carries; the host maps it to its emoji")] = "refused"


class Breaker(Section, frozen=True, gc=False):
    """The poison-history breaker."""

    enabled: Annotated[bool, _about("rewind when the history itself is rejected again and again")] = True
    failures: Annotated[int, _count("failed turns in a row before the first rewind", least=1)] = 3
    max_rewinds: Annotated[int, _count("rewinds until a turn succeeds", least=1, most=10)] = 3


class Speech(Section, frozen=True, gc=False):
    """Where plain speech lands."""

    prose: Annotated[
        Literal["locus", "hybrid", "explicit", "disabled"],
        _about("how plain text leaves: to the locus, by prefix or to the locus, by prefix only, never"),
    ] = "locus"
    fallback: Annotated[
        Literal["none", "latest-inbound"],
        _about('"latest-inbound": a turn with no place of its own speaks where the newest message came from'),
    ] = "none"
    home: Annotated[str | None, _about("home channel: where a turn with no trigger speaks", example="discord/42")] = (
        None
    )


class InboundRules(Section, frozen=True, gc=False):
    """What is remembered of what came in."""

    receipt_window_ms: Annotated[int, _ms("how long occurrences and parked anchors are remembered", least=1)] = (
        3_600_000
    )


class TranscriptRules(Section, frozen=True, gc=False):
    """What the prompt view drops."""

    fallback: Annotated[
        Literal["cover", "identical", "text"], _about("how far content tells a receipt whose marks are gone")
    ] = "cover"
    standalone: Annotated[
        Literal["hide", "context"],
        _about('"context": a receipt without an original is shown once, as labelled context'),
    ] = "hide"


class Limits(Section, frozen=True, gc=False):
    """Every bound; each tells when it decides."""

    ledger: Annotated[int, _count("inputs of a chat", least=1)] = 256
    tombstones: Annotated[int, _count("ids of inputs that left the ledger")] = 4096
    calls: Annotated[int, _count("tool calls remembered by id", least=1)] = 1024
    contents: Annotated[int, _count("answers remembered by content", least=1)] = 1024
    calls_per_s: Annotated[int, _count("tool calls a second", least=1)] = 5
    calls_burst: Annotated[int, _count("tool calls at once", least=1)] = 20
    open_turns: Annotated[int, _count("open turns of a chat", least=1)] = 50
    settled_turns: Annotated[int, _count("settled turns kept visible")] = 64
    previews_per_turn: Annotated[int, _count("snapshots of one turn")] = 200
    wakes: Annotated[int, _count("pending wakes", least=1)] = 256
    parked: Annotated[int, _count("parked anchors", least=1)] = 256
    occurrences: Annotated[int, _count("inbound occurrences remembered", least=1)] = 4096
    outbox: Annotated[int, _count("operations waiting in one channel", least=1)] = 256
    deliveries: Annotated[int, _count("deliveries whose channel is remembered", least=1)] = 1024
    receipts: Annotated[int, _count("receipts of a chat", least=1)] = 65536
    unconfirmed: Annotated[int, _count("commands of a chat whose `perform` has not returned", least=1)] = 4096
    waiters: Annotated[int, _count("callers waiting for an outcome, in the engine", least=1)] = 65536
    dead_letters: Annotated[int, _count("events set aside, in the engine", least=1)] = 1024
    chats: Annotated[int, _count("chats, in the engine", least=1, most=100_000_000)] = 1_000_000
    channels_per_chat: Annotated[int, _count("channels of a chat", least=1)] = 256
    consumed_ids: Annotated[int, _count("length of consumed_turn_ids", least=1)] = 64
    text_bytes: Annotated[int, _count("length of a text in bytes of UTF-8", least=1, most=1 << 28)] = 1_048_576
    json_depth: Annotated[int, _count("nesting of what a model wrote", least=1, most=64)] = 32
    ingress_high: Annotated[int, _count("events waiting before `post` refuses", least=1)] = 65536
    ingress_low: Annotated[int, _count("events waiting before `post` admits again")] = 49152


class JournalSettings(Section, frozen=True, gc=False):
    """Where the memory lies."""

    kind: Annotated[
        Literal["memory", "sqlite"] | None,
        _about("absent: sqlite where a path is given, else memory", example="sqlite"),
    ] = None
    path: Annotated[str | None, _about("the journal's file", example="turnkeeper.journal")] = None
    sync: Annotated[Literal["full", "normal"], _about('"normal" may lose the tail at a power cut')] = "full"
    linger_ms: Annotated[int, _ms("how long a commit waits for company", most=1000)] = 1
    snapshot_every_events: Annotated[int, _count("a snapshot after so many events bounds the replay", least=1)] = 10000
    retain_days: Annotated[int, _count("how long history is kept", least=1)] = 30


class RecoverySettings(Section, frozen=True, gc=False):
    """What a restart sends."""

    max_age_ms: Annotated[int, _ms("an older unsent answer is not sent but told")] = 3_600_000
    resend_per_s: Annotated[int, _count("unsent answers a second after a restart", least=1)] = 5


class MetricsSettings(Section, frozen=True, gc=False):
    """For hosts without an exporter."""

    addr: Annotated[str | None, _about("host:port to serve GET /metrics on; port 0: any", example="127.0.0.1:9464")] = (
        None
    )


class InvariantSettings(Section, frozen=True, gc=False):
    """Checks in production."""

    live: Annotated[bool, _about("the cheap predicates run on every event")] = True


class Deciding(msgspec.Struct, frozen=True, gc=False):
    """The sections that decide."""

    attribution: Attribution = field(default_factory=Attribution)
    timers: Timers = field(default_factory=Timers)
    finalize: Finalize = field(default_factory=Finalize)
    delivery: Delivery = field(default_factory=Delivery)
    dedup: Dedup = field(default_factory=Dedup)
    refusal: Refusal = field(default_factory=Refusal)
    breaker: Breaker = field(default_factory=Breaker)
    speech: Speech = field(default_factory=Speech)
    inbound: InboundRules = field(default_factory=InboundRules)
    limits: Limits = field(default_factory=Limits)
    recovery: RecoverySettings = field(default_factory=RecoverySettings)


class Config(Deciding, frozen=True, gc=False):
    """Everything a host can set."""

    transcript: TranscriptRules = field(default_factory=TranscriptRules)
    journal: JournalSettings = field(default_factory=JournalSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    invariants: InvariantSettings = field(default_factory=InvariantSettings)


class Policy(Deciding, frozen=True, gc=False):
    """The settings that decide, as steps read them; a turn keeps the one it opened with."""

    reconciles: bool = False
    """The gateway can say whether a delivery arrived."""


def as_policy(config: Config, *, reconciles: bool = False) -> Policy:
    """Take the deciding part out of a configuration."""
    return Policy(**{name: getattr(config, name) for name in Deciding.__struct_fields__}, reconciles=reconciles)


def load_config(source: Config | Mapping[str, object] | str | Path) -> Config:
    """Read a configuration: a `Config`, a mapping in the file's shape, or the path of a TOML file.

    Raises:
        ConfigError: what cannot be read or used, where, what is allowed and, for a key, the nearest known name.

    """
    if isinstance(source, Config):
        _read(msgspec.to_builtins(source), "config")  # what Python made was not checked when it was made
        return source
    if isinstance(source, Mapping):
        return _read(source, "config")
    try:
        with Path(source).open(encoding="utf-8") as file:
            text = file.read(FILE_MAX + 1)
        if len(text) > FILE_MAX:
            raise ConfigError(f"{source}: is longer than {FILE_MAX:_} characters; give the path of a TOML file")
        raw = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read ({error.strerror}); give the path of a TOML file") from error
    except (ValueError, RecursionError) as error:  # bad TOML, no UTF-8, a number too long to read, nested too deep
        raise ConfigError(f"{source}: is no TOML ({error}); see config.example.toml") from error
    return _read(raw, str(source))


def _read(raw: Mapping[str, object], where: str) -> Config:
    kinds: dict[str, type[Section]] = {f.name: f.type for f in msgspec.structs.fields(Config)}
    sections: dict[str, Section] = {}
    for name, values in raw.items():
        if name not in kinds:
            raise ConfigError(f"{where}: {name} is no section; {_nearest(name, '', kinds)}")
        if not isinstance(values, Mapping):
            raise ConfigError(f"{where}: {name} is {_shown(values)}; expected a table of settings, [{name}]")
        sections[name] = _section(kinds[name], values, where, name)
    config = Config(**sections)  # type: ignore[arg-type]  # each value was converted to its section's type
    for fault in _faults(config):
        raise ConfigError(f"{where}: {fault}")
    return config


def _section(kind: type[Section], values: Mapping[str, object], where: str, section: str) -> Section:
    fields = {f.name: f for f in msgspec.structs.fields(kind)}
    read: dict[str, object] = {}
    for key, value in values.items():
        name = f"{section}.{key}"
        if key not in fields:
            raise ConfigError(f"{where}: {name} (= {_shown(value)}) is no setting; {_nearest(key, section, fields)}")
        try:
            read[key] = msgspec.convert(value, type=fields[key].type)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: half a surrogate pair
            item = str(error).partition("at `$[")[2].partition("]")[0]
            if item and isinstance(value, list | tuple):
                name, value = f"{name}[{item}]", value[int(item)]  # noqa: PLW2901 - the item is at fault
            expected = allowed(fields[key].type, key)
            raise ConfigError(f"{where}: {name} is {_shown(value)}; expected {expected}") from error
    return kind(**read)


def _faults(config: Config) -> Iterator[str]:
    """Yield what is wrong with values that are each allowed, but not these, or not together."""
    low, high = config.limits.ingress_low, config.limits.ingress_high
    if low > high:
        yield f"limits.ingress_low is {low:_}; expected at most limits.ingress_high, {high:_}"
    if config.journal.kind == "sqlite" and not config.journal.path:
        yield 'journal.kind is "sqlite" and journal.path is absent; give the path of the journal\'s file'
    try:
        known = config.speech.home is None or ChannelRef.parse(config.speech.home).server
    except ValueError:
        known = None
    if not known:
        yield f'speech.home is {_shown(config.speech.home)}; expected server/id or server/id#thread, as "discord/42"'
    try:
        host_port("localhost:0" if config.metrics.addr is None else config.metrics.addr)
    except ValueError as error:
        yield f"metrics.addr is {_shown(config.metrics.addr)}; {error}"


def host_port(addr: str) -> tuple[str, int]:
    """Read `host:port`; an IPv6 host stands in brackets, which are not part of it.

    Raises:
        ValueError: there is no host, or no such port; the message shows the form.

    """
    host, _, port = addr.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    plain = host[1:-1] if bracketed else host
    is_port = port.isascii() and port.isdigit() and int(port[:6]) <= PORT_MAX
    if not is_port or not plain or (":" in plain and not bracketed):
        raise ValueError('expected host:port with a port from 0 to 65535, as "127.0.0.1:9464" or "[::1]:9464"')
    return plain, int(port)


def _nearest(name: str, section: str, known: Collection[str]) -> str:
    """Say what may have been meant: the same key of another section, else the most similar name, else all."""
    path = f"{section}." if section else ""
    same = [f"{other.name}.{name}" for other in msgspec.structs.fields(Config) if name in other.type.__struct_fields__]
    close = same or [path + one for one in difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)]
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(path + one for one in known)}"


def allowed(kind: object, name: str) -> str:
    """Say in words what a setting may be, from its type and the unit in its name."""
    base, meta = (get_args(kind)[0], get_args(kind)[1]) if get_origin(kind) is Annotated else (kind, None)
    if base is bool:
        return "true or false"
    if base is int and meta is not None:
        return f"{UNITS.get(name.rpartition('_')[2], 'an integer')} from {meta.ge:_} to {meta.le:_}"
    if get_origin(base) is tuple:
        return f"a list of at least one item, each {allowed(get_args(base)[0], name)}"
    literals = [value for part in (base, *get_args(base)) if get_origin(part) is Literal for value in get_args(part)]
    return "one of " + ", ".join(f'"{value}"' for value in literals) if literals else "a text"


def example_toml() -> str:
    """Write every setting with its default, unit and meaning: the text of `config.example.toml`."""
    lines = [
        "# Every setting of turnkeeper with its default; a file holds only what it changes.",
        "# Times end in _ms and are milliseconds. An unknown section or key is an error, never ignored.",
        "# A setting that is commented out is absent by default; what stands there is an example.",
    ]
    for section in msgspec.structs.fields(Config):
        lines += ["", "", f"# {section.type.__doc__}", f"[{section.name}]"]
        for setting in msgspec.structs.fields(section.type):
            meta, absent = get_args(setting.type)[-1], setting.default is None
            about = f"# {meta.description[:1].upper()}{meta.description[1:]}:"
            may_be = f"{allowed(setting.type, setting.name)}."
            lines += ["", f"{about} {may_be}"] if len(about + may_be) < COMMENT_MAX else ["", about, f"# {may_be}"]
            value = _shown(meta.examples[0] if absent else setting.default)
            lines.append(f"{'# ' if absent else ''}{setting.name} = {value}")
    return "\n".join([*lines, ""])


def _shown(value: object) -> str:
    """Write a value as TOML does, cut where it is long."""
    if isinstance(value, list | tuple):
        text = "[" + ", ".join(map(_shown, value[:VALUE_MAX])) + "]"
    elif isinstance(value, bool | str):
        text = json.dumps(value if isinstance(value, bool) else value[:VALUE_MAX], ensure_ascii=False)
    else:
        text = f"{value:_}" if isinstance(value, int) else repr(value)
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"
