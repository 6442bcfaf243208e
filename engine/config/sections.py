"""The sections and keys: each typed, bounded and described; and the part of them that decides."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

__all__ = [
    "Attribution",
    "Breaker",
    "Config",
    "Deciding",
    "Dedup",
    "Delivery",
    "Finalize",
    "InboundRules",
    "InvariantSettings",
    "JournalSettings",
    "Limits",
    "MetricsSettings",
    "Policy",
    "RecoverySettings",
    "Refusal",
    "Section",
    "Speech",
    "Timers",
    "TranscriptRules",
    "as_policy",
]

DAY_MS = 86_400_000


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
