"""Mutants that change nothing anybody could see, each with its reason; everything else must be killed."""

from __future__ import annotations

__all__ = ["EQUIVALENT"]

HOST = "a scenario's host always removes one exchange, at once; tests/answers/test_rewound.py kills it"
EQUIVALENT: dict[str, str] = {
    "occurrence / new: flipped to RETRACTION": "there is no occurrence to take back",
    "anchor / A5-nameless: flipped to PARK": "there is no message to park",
    "commit / unparked: flipped to LATE": "there is nothing to commit",
    "wake / B5-nameless: flipped to PAIR": "the message it would carry is none, or has no channel",
    "locus / none: flipped to HOME": "the home it would name is none",
    "rewound / unasked: flipped to WAKE": "there is no shed turn to run again",
    "rewound / F5-nothing: flipped to NOTHING": HOST,
    "rewound / F5-breaker: flipped to WAKE": HOST,
    "unstick / F2-rewind: flipped to BEGINS": HOST,
    "refusal / ephemeral: flipped to REACT": "a subagent's pair is empty: there is nothing to mark",
    "refusal / no-message: flipped to REACT": "there is no message to mark",
    "sameness / new: flipped to JOIN": "there is no earlier delivery to join",
    "settlement / overtaken-sent: flipped to IGNORE": (
        "a scenario's platform holds no second attempt; tests/channel/test_attempts.py kills it"
    ),
    "settlement / confirmed: flipped to CORRECT": "what was told decides, sent or failed, not which of the two it is called",
    "settlement / still-unknown: flipped to DUPLICATE": "both do nothing",
    "settlement / failed-again: flipped to IGNORE": "both do nothing",
    "failure / not-sent: deleted": "only a permanent failure falls to another row, and a reconciliation is never permanent",
}
