"""The transcript library: receipts survive everything and never enter the prompt (RULES-transcript)."""

from turnkeeper.engine.table import DecisionTable
from turnkeeper.engine.transcript.appending import APPENDS, Append, Appended, Delivered
from turnkeeper.engine.transcript.entries import (
    Boundary,
    ContextLine,
    Entry,
    Item,
    Prompted,
    Receipt,
    Row,
    Summary,
    Utterance,
    Voice,
    read_entry,
)
from turnkeeper.engine.transcript.fallback import Dropped
from turnkeeper.engine.transcript.faults import (
    MergeConflict,
    RouteDiffers,
    TranscriptError,
    UnknownEntry,
    UnknownSession,
)
from turnkeeper.engine.transcript.lookup import AFTER_CRASH, STANDINGS, CrashFacts, Recovery
from turnkeeper.engine.transcript.marks import MARKS
from turnkeeper.engine.transcript.merging import MERGES
from turnkeeper.engine.transcript.openclaw import (
    Damaged,
    Prompt,
    SessionFile,
    pack_session,
    read_prompts,
    read_session,
    unpack_session,
    write_session,
)
from turnkeeper.engine.transcript.records import Record, Route, logical_key
from turnkeeper.engine.transcript.repeats import ADJACENCY, REPEATS
from turnkeeper.engine.transcript.standalone import STANDALONE
from turnkeeper.engine.transcript.store import Answer, Sessions, Store
from turnkeeper.engine.transcript.view import PromptView, Report, prompt_view

__all__ = [
    "AFTER_CRASH",
    "TABLES",
    "Answer",
    "Append",
    "Appended",
    "Boundary",
    "ContextLine",
    "CrashFacts",
    "Damaged",
    "Delivered",
    "Dropped",
    "Entry",
    "Item",
    "MergeConflict",
    "Prompt",
    "PromptView",
    "Prompted",
    "Receipt",
    "Record",
    "Recovery",
    "Report",
    "Route",
    "RouteDiffers",
    "Row",
    "SessionFile",
    "Sessions",
    "Store",
    "Summary",
    "TranscriptError",
    "UnknownEntry",
    "UnknownSession",
    "Utterance",
    "Voice",
    "logical_key",
    "pack_session",
    "prompt_view",
    "read_entry",
    "read_prompts",
    "read_session",
    "unpack_session",
    "write_session",
]

TABLES: tuple[DecisionTable[object], ...] = (  # the docs are written from these
    MARKS,
    APPENDS,
    ADJACENCY,
    REPEATS,
    STANDALONE,
    MERGES,
    STANDINGS,
    AFTER_CRASH,
)
"""The tables of the library; docs/rules/ is written from these."""
