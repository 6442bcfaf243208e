"""Every metric, with the closed set of values of each label (PROTOCOL "Metrics").

Label values are the words of the rules: event types, outcomes, rows of decision tables. None is an id or
a text, so the number of series is fixed (docs/adr/0012). docs/METRICS.md lists the same, held equal by test.
"""

from __future__ import annotations

from typing import get_args

from turnkeeper.engine.commands import Outcome, Purpose, RewindCause
from turnkeeper.engine.config import Limits
from turnkeeper.engine.events import Event
from turnkeeper.engine.ids import Kind
from turnkeeper.engine.invariants import PREDICATES
from turnkeeper.metrics.series import Family

__all__ = [
    "BAD_COUNT",
    "COUNTERS",
    "DELIVERY_SECONDS",
    "ERRORS",
    "EVENT_SECONDS",
    "EVENT_TYPES",
    "FINALIZATION_WAIT_SECONDS",
    "GAUGES",
    "HISTOGRAMS",
    "INVARIANTS",
    "TURN_SECONDS",
    "UNLISTED",
]

EVENT_TYPES: dict[type, str] = {kind: kind.__struct_config__.tag for kind in get_args(Event)}
FOLD_SOURCES = ("autosteer", "edit-fold")
SOURCES = ("primary", *FOLD_SOURCES, "inject", "system", "subagent")

UNLISTED = "unlisted"
"""The label of an invariant or error that no list names."""
BAD_COUNT = "closed_labels"
"""A step counted a metric, or a label value, that this file does not have."""
INVARIANTS = (*(check.__name__ for checks in PREDICATES.values() for check in checks), BAD_COUNT, UNLISTED)
ERRORS = (
    "AssertionError",
    "AttributeError",
    "DecodeError",
    "IndexError",
    "InvariantViolated",
    "KeyError",
    "LookupError",
    "NotImplementedError",
    "OverflowError",
    "RecursionError",
    "RuntimeError",
    "StopIteration",
    "TypeError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "ValidationError",
    "ValueError",
    "ZeroDivisionError",
    UNLISTED,
)
"""Classes of what a step may raise; the log and `dead_letters()` have the error itself."""

COUNTERS = (
    Family("events", "Events admitted and run, set aside or not.", {"type": tuple(EVENT_TYPES.values())}),
    Family(
        "replies",
        "Replies by who owned them: recorded on a turn, or delivered without one.",
        {
            "owner": ("echoed-open", "proven-fold", "late", "only-open", "orphan", "autonomous"),
            "interim": ("true", "false"),
        },
    ),
    Family(
        "fold_replies_attributed",
        "Delivered replies that echoed a fold and were recorded on the turn that the acknowledgement proves.",
        {"source": FOLD_SOURCES},
    ),
    Family("turns_settled", "Turns by how they ended.", {"outcome": get_args(Outcome)}),
    Family(
        "rescues",
        "What the engine sent at a turn's end that was no reply call.",
        {"kind": ("fallback", "consumed-rescue", "interim-rescue", "reply-rescue", "final-different")},
    ),
    Family(
        "deliveries",
        "Sends that ended, retries included in one.",
        {"purpose": get_args(Purpose), "outcome": ("sent", "failed", "unknown")},
    ),
    Family("quotes", "What became of the quotes of inputs.", {"event": ("reserved", "spent", "released")}),
    Family(
        "inputs",
        "Inputs that left the open states of the ledger.",
        {"state": ("resolved", "dropped", "fold-suspected", "superseded", "unconfirmed", "cancelled")},
    ),
    Family(
        "previews",
        "Live previews.",
        {"event": ("opened", "replaced", "detached", "mismatch", "unattributed")},
    ),
    Family("refusals", "Refused turns by their mark.", {"mark": ("marked", "no-message", "rewound", "ephemeral")}),
    Family("rewinds", "Rewinds asked for.", {"cause": get_args(RewindCause)}),
    Family(
        "anchor_commits",
        "Parked anchors whose occurrence was accepted: moved, or late behind a newer one.",
        {"result": ("moved", "late")},
    ),
    Family(
        "prompt_messages",
        "Messages of prompt views: kept, or dropped and by which rule.",
        {"reason": ("kept", "receipt", "standalone", "e0", "e1", "e2")},
    ),
    Family("prompts", "Prompt views: clean, or something was dropped.", {"result": ("clean", "cleaned")}),
    Family("late_replies", "Replies that echoed an input that is no open turn.", {"source": SOURCES}),
    Family(
        "late_then_rescued",
        "A late fold reply, then a fallback or rescue of the turn it was folded into: two answers. Must trend to 0.",
        {"source": FOLD_SOURCES},
    ),
    Family(
        "stop_texts",
        "What became of the agent's last words of a turn.",
        {"result": ("sent", "equal", "suppressed-different", "empty")},
    ),
    Family(
        "failure_records",
        "Durable records of refused and failed turns.",
        {"kind": ("refusal", "failure"), "locus": ("named", "none")},
    ),
    Family("speech_unrouted", "Plain speech with no channel: not sent."),
    Family("limit_reached", "Decisions of a bound of [limits].", {"limit": Limits.__struct_fields__}),
    Family("set_aside", "Events whose step raised; undone and never applied.", {"error": ERRORS}),
    Family("invariant_violations", "Broken invariants: a bug. Must stay 0.", {"invariant": INVARIANTS}),
)
"""Counters; the name on the wire is `turnkeeper_<name>_total`. Labels are in the order of the steps' counts."""

GAUGES = (
    Family("open_turns", "Turns opened and not yet settled."),
    Family("deliveries_in_flight", "Sends and edits handed to the host and not yet settled."),
    Family("live_actors", "Owners that are awake as actors.", {"kind": get_args(Kind)}),
    Family("ingress_depth_max", "Events waiting in the longest queue of one chat."),
    Family("config_last_reload_successful", "1: the last reload took effect. 0: it was refused.", starts=1),
)
"""Gauges; the name on the wire is `turnkeeper_<name>`."""

EVENT_SECONDS = Family("event_seconds", "From the sequence number of a record to the end of its run.")
DELIVERY_SECONDS = Family("delivery_seconds", "From the hand-over of a send or edit to its settlement, per attempt.")
TURN_SECONDS = Family("turn_seconds", "From turn_opened to turn_settled.")
FINALIZATION_WAIT_SECONDS = Family(
    "finalization_wait_seconds", "How long ends of turns waited for what was in flight; ends that did not wait: none."
)
HISTOGRAMS = (EVENT_SECONDS, DELIVERY_SECONDS, TURN_SECONDS, FINALIZATION_WAIT_SECONDS)
"""Histograms without labels; the name on the wire is `turnkeeper_<name>`."""
