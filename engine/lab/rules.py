"""Every decision table of the engine, by owner, with the question it answers.

The list is written out, and a test looks for a table that is missing from it. `rule_pages` makes
`docs/rules/` from it; `turnkeeper explain-rules` prints it.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

import msgspec

from turnkeeper.engine.channel import tables as channel
from turnkeeper.engine.chat import answer_tables as answers
from turnkeeper.engine.chat import rewind_tables as rewinds
from turnkeeper.engine.chat import tables as chat
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.table import DecisionTable
from turnkeeper.engine.transcript import appending, lookup, marks, merging, repeats, standalone
from turnkeeper.engine.turn import tables as turn

__all__ = ["OWNERS", "RULES", "SYMPTOMS", "OwnerRules", "Rule", "Symptom", "rule_named"]


class Rule(msgspec.Struct, frozen=True):
    """A table, and what a reader would ask to find it."""

    table: DecisionTable[Any]
    asks: str

    @property
    def slug(self) -> str:
        """The name of its page."""
        return re.sub(r"[^a-z0-9]+", "-", self.table.name).strip("-")

    @property
    def code(self) -> str:
        """The file where a row is changed, from the project's root."""
        return self.table.facts.__module__.removeprefix("turnkeeper.").replace(".", "/") + ".py"


class OwnerRules(msgspec.Struct, frozen=True):
    """The rules of one owner."""

    owner: str
    about: str
    rules: tuple[Rule, ...]


OWNERS = (
    OwnerRules(
        "chat, replies",
        "The chat owns the ledger of inputs. It decides whose a reply, a call and a Stop is.",
        (
            Rule(chat.ATTRIBUTION, "Who owns a reply?"),
            Rule(chat.CALL, "What becomes of a tool call whose id is known?"),
            Rule(chat.SAMENESS, "Is this reply the same answer as an earlier one?"),
            Rule(chat.STOP, "Whose Stop is it?"),
            Rule(chat.DROP, "What is an input that nobody confirmed?"),
        ),
    ),
    OwnerRules(
        "chat, what comes in",
        "The chat also knows what was said where: the anchor, the pending wakes, and where plain speech lands.",
        (
            Rule(answers.OCCURRENCE, "Was this delivered before?"),
            Rule(answers.ANCHOR, "Does a delivery move the latest-inbound anchor?"),
            Rule(answers.COMMIT, "What does an acceptance do to the anchor?"),
            Rule(answers.WAKE, "Does a delivery wake the agent, and with what?"),
            Rule(answers.MERGE_CHANNEL, "Several wakes make one turn: which channel does it answer in?"),
            Rule(answers.MERGE_MESSAGE, "Several wakes make one turn: which message does it answer?"),
            Rule(answers.LOCUS, "Where does a turn's plain speech land?"),
            Rule(answers.NOTICE, "Is the agent told where its speech lands?"),
            Rule(rewinds.REWIND, "Is a refused or failed turn taken back and run again?"),
            Rule(rewinds.REWOUND, "What follows when the host has rewound?"),
            Rule(rewinds.UNSTICK, "May an operator force a rewind now?"),
        ),
    ),
    OwnerRules(
        "turn",
        "A turn owns its pair, its quote and its record, and decides how it ends. Its phases: docs/turn.mmd.",
        (
            Rule(turn.DELIVERY, "How does a turn end, and what is sent then?"),
            Rule(turn.FINAL, "What becomes of the last words beside a delivered final reply?"),
            Rule(turn.PROSE, "Where does plain speech leave?"),
            Rule(turn.REFUSAL, "What does a refusal show?"),
        ),
    ),
    OwnerRules(
        "channel",
        "A channel sends in order, one at a time, and takes settlements.",
        (
            Rule(channel.SETTLEMENT, "What does a settlement mean?"),
            Rule(channel.FAILURE, "What follows a failed send?"),
        ),
    ),
    OwnerRules(
        "transcript",
        "A library beside the owners: receipts are recorded, and never shown to the model.",
        (
            Rule(marks.MARKS, "Is this transcript entry a receipt?"),
            Rule(standalone.STANDALONE, "How does a receipt stay out of the prompt?"),
            Rule(repeats.ADJACENCY, "What ends the comparison with the message before?"),
            Rule(repeats.REPEATS, "Is an assistant message dropped from the prompt as a repeat?"),
            Rule(appending.APPENDS, "What happens to a receipt that is appended?"),
            Rule(merging.MERGES, "What happens to an entry that a merge brings?"),
            Rule(lookup.STANDINGS, "Did this answer go out?"),
            Rule(lookup.AFTER_CRASH, "What may a sender do with an intent it finds after a crash?"),
        ),
    ),
)
"""The rules by owner, in the order of the docs."""

RULES = tuple(rule for group in OWNERS for rule in group.rules)
"""All rules, in that order."""


class Symptom(msgspec.Struct, frozen=True):
    """Something that is seen from outside, and the rows that decide it, as `table: row`."""

    seen: str
    rows: tuple[str, ...]


SYMPTOMS = (
    Symptom("a reply went to another turn than the id it names", ("attribution: proven-fold",)),
    Symptom(
        "a reply was delivered but recorded on no turn (`late_reply_correlated`)",
        ("attribution: late-fold", "attribution: late-other"),
    ),
    Symptom("a reply was sent without a quote", ("attribution: orphan", "attribution: autonomous")),
    Symptom("a reply was acknowledged but nothing was sent", ("sameness: replayed", "known call: sent")),
    Symptom("a reply waits for the outcome of another (`reply_joined`)", ("sameness: joined", "known call: in-flight")),
    Symptom(
        "the agent's last words were not sent (`stop_text_suppressed`)",
        ("final: suppressed", "delivery: consumed", "delivery: interim-noop", "prose: disabled"),
    ),
    Symptom(
        "the agent's last words were sent as an answer",
        ("delivery: fallback", "delivery: consumed-rescue", "delivery: interim-rescue", "final: different"),
    ),
    Symptom("a failed reply was sent again", ("failure: transient", "delivery: reply-rescue")),
    Symptom("a turn ended and the user got nothing", ("delivery: silent", "delivery: undelivered")),
    Symptom("a Stop had no effect (`stop_foreign`, `stop_unattributed`)", ("stop: foreign", "stop: unattributed")),
    Symptom("a follow-up was handed to the agent again (`redeliver`)", ("drop check: dropped",)),
    Symptom(
        "a follow-up was never answered and not handed over again",
        ("drop check: superseded", "drop check: fold-suspected", "drop check: unconfirmed"),
    ),
    Symptom("a channel holds everything back", ("failure: flood-wait", "failure: transient")),
    Symptom("nobody knows whether a send arrived (`delivery_unknown`)", ("settlement: unknown",)),
    Symptom("a refusal has no mark", ("refusal: rewound", "refusal: no-message", "refusal: interrupted")),
    Symptom("a refused turn was run again", ("rewind: F1-auto", "rewind: F2-unstick", "rewind: F3-breaker")),
    Symptom("a message did not wake the agent", ("wake: gate", "wake: B13b", "occurrence: duplicate")),
    Symptom("a turn has a channel but no message to answer", ("merge: message: M3-different", "wake: B7-marker")),
    Symptom("the anchor did not move", ("anchor: A7-marker", "anchor: A2-parked", "commit: A10-late")),
    Symptom("plain speech went nowhere", ("locus: none", "prose: unprefixed", "prose: disabled")),
    Symptom(
        "a message is missing from the prompt",
        ("repeats in a prompt: R21-E0", "repeats in a prompt: R21-E1", "receipts in a prompt: R17-hide"),
    ),
)
"""Where to look first, from what an operator sees; a test holds the rows to the tables."""


def rule_named(name: str) -> Rule:
    """Return a rule by its table's name or the name of its page.

    Raises:
        DecodeError: there is none; the text gives the nearest.

    """
    for rule in RULES:
        if name.lower() in {rule.table.name, rule.slug}:
            return rule
    names = [rule.table.name for rule in RULES]
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    raise DecodeError(f"{name!r} is no table; {f'did you mean {close[0]}?' if close else 'known: ' + ', '.join(names)}")
