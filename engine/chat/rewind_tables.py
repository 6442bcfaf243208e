"""The chat's decisions about rewinds and the operator's unstick, as tables (RULES-answers f)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from turnkeeper.engine.table import ANY, DecisionTable, Row

__all__ = [
    "REWIND",
    "REWOUND",
    "UNSTICK",
    "RewindFacts",
    "Rewinding",
    "RewoundFacts",
    "Then",
    "UnstickFacts",
    "Unstuck",
]


class Rewinding(StrEnum):
    """What a refused or failed turn leads to."""

    NONE = "no rewind"
    AUTO = "auto_rewind"
    UNSTICK = "unstick"
    BREAKER = "poison_breaker"
    GIVE_UP = "no rewind, the episode is over"


class RewindFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of REWIND."""

    ended: Literal["refused", "failed"]
    chats: bool
    """The turn is the chat's own: no subagent's, and not interrupted."""
    forced: bool
    """An unstick is under way."""
    enabled: bool
    """refused: auto-rewind is on · failed: the breaker matches (count, error, status)."""
    budget: bool
    """The budget of that cause is not used up."""


# fmt: off
REWIND: DecisionTable[Rewinding] = DecisionTable("rewind", RewindFacts, [
    #                     ended      chats  forced enabled budget
    Row("not-the-chats",  (ANY,       False, ANY,   ANY,   ANY),   Rewinding.NONE,    "a subagent's or an interrupted turn: only the record is written"),
    Row("F2-unstick",     ("refused", True,  True,  ANY,   True),  Rewinding.UNSTICK, "the operator forces it"),
    Row("F5-unstick",     ("refused", True,  True,  ANY,   False), Rewinding.GIVE_UP, "the cap is reached: told, and marked"),
    Row("F1-auto",        ("refused", True,  False, True,  True),  Rewinding.AUTO,    "the exchange is removed and run again"),
    Row("F5-auto",        ("refused", True,  False, True,  False), Rewinding.GIVE_UP, "the budget is used up: marked"),
    Row("plain",          ("refused", True,  False, False, ANY),   Rewinding.NONE,    "auto-rewind is off"),
    Row("F3-breaker",     ("failed",  True,  ANY,   True,  True),  Rewinding.BREAKER, "the history itself is rejected again and again; an unstick ends, the breaker goes on (F15)"),
    Row("F3-cap",         ("failed",  True,  ANY,   True,  False), Rewinding.NONE,    "the cap is reached: only logged"),
    Row("F3-other",       ("failed",  True,  ANY,   False, ANY),   Rewinding.NONE,    "nothing else sheds"),
], source="RULES-answers f")
# fmt: on


class Then(StrEnum):
    """What follows the host's `rewound`."""

    WAKE = "wake"
    GIVE_UP = "mark, and tell the operator who forced it"
    NOTHING = "nothing"


class RewoundFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of REWOUND."""

    asked: bool
    """A rewind of that turn is awaited."""
    removed: bool
    """At least one exchange was removed."""
    cause: Literal["auto_rewind", "unstick", "poison_breaker"]


# fmt: off
REWOUND: DecisionTable[Then] = DecisionTable("rewound", RewoundFacts, [
    Row("unasked",    (False, ANY,   ANY),              Then.NOTHING, "no rewind of that turn is awaited"),
    Row("F6-retry",   (True,  True,  ANY),              Then.WAKE,    "run again for what the shed turn answered"),
    Row("F5-nothing", (True,  False, ("auto_rewind", "unstick")), Then.GIVE_UP, "nothing was left to remove"),
    Row("F5-breaker", (True,  False, "poison_breaker"), Then.NOTHING, "a failed turn gets no mark (O6)"),
], source="RULES-answers f, F5, F6, O11")
# fmt: on


class Unstuck(StrEnum):
    """What an operator's unstick leads to."""

    BEGINS = "the forced loop begins"
    REFUSED = "refused"


class UnstickFacts(msgspec.Struct, frozen=True, gc=False):
    """The columns of UNSTICK."""

    subagent: bool
    busy: bool
    """A turn of the chat has not told its terminal."""
    forced: bool
    """An unstick is under way."""
    rewinding: bool
    """The host's `rewound` is awaited."""


# fmt: off
UNSTICK: DecisionTable[Unstuck] = DecisionTable("unstick", UnstickFacts, [
    #                subagent busy   forced rewinding
    Row("subagent",  (True,   ANY,   ANY,   ANY),   Unstuck.REFUSED, "a subagent is run by its parent alone"),
    Row("F2-busy",   (False,  True,  ANY,   ANY),   Unstuck.REFUSED, "a turn is open"),
    Row("F2-forced", (False,  False, True,  ANY),   Unstuck.REFUSED, "an unstick is under way"),
    Row("F2-rewind", (False,  False, False, True),  Unstuck.REFUSED, "a rewind is under way"),
    Row("F2-idle",   (False,  False, False, False), Unstuck.BEGINS,  "the agent is idle: the loop begins"),
], source="RULES-answers f, F2")
# fmt: on
