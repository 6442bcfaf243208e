"""A journal's records as a recording: the same story as steps of a scenario file, for `turnkeeper run`.

What the host posted becomes an event step; what became of a delivery, a `settle` step; a restart, a `crash`
step with what the platform answered; time that passed, an `advance`. Deadlines, hand-overs and confirmations
are left out: whoever runs the recording makes them again. What a simulated host does by itself (`rewound`) and
what no step can say (the settlement of something that was never handed over) is left as a comment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine.config import Policy
from turnkeeper.engine.events import Rewound, Settled
from turnkeeper.engine.lab.steps import PLACED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from turnkeeper.engine.events import Event
    from turnkeeper.engine.journal import Record

__all__ = ["recording_of"]

Step = dict[str, Any]
TOLD = ("outcome", "attempt", "messages", "reason", "retry_after_ms", "permanent", "parts_done")
"""What a `settle` step takes over from the event."""


def recording_of(records: Callable[[], Iterable[Record]], name: str) -> Iterator[Step]:
    """Yield the lines of a recording; `records` is asked twice for the same records."""
    answers = _answers(records())
    writer = Writer(answers)
    policies = (record.body.configured for record in records() if record.body.configured is not None)
    policy = next(policies, Policy())
    writer.policy = policy
    yield {"scenario": name, "source": "turnkeeper journal dump", "config": _config(policy)}
    yield {"deliver": "hold"}
    for record in records():
        yield from writer.steps(record)
    yield from writer.end()


def _config(policy: Policy) -> Step:
    plain: Step = msgspec.to_builtins(policy)
    plain.pop("reconciles", None)
    return {name: {k: v for k, v in section.items() if v is not None} for name, section in plain.items()}


class Flights:
    """Which deliveries are with the host."""

    def __init__(self) -> None:
        self.out: dict[str, None] = {}
        self.known: set[str] = set()

    def note(self, record: Record) -> None:
        """Take in a record that was applied."""
        body = record.body
        if body.handed is not None:
            self.out[body.handed.delivery] = None
            self.known.add(body.handed.delivery)
        elif isinstance(body.event, Settled):
            self.out.pop(body.event.delivery, None)


def _answers(records: Iterable[Record]) -> dict[int, dict[str, str]]:
    """Find what the platform said at each restart of what was with the host then, by the restart's place."""
    flights = Flights()
    found: dict[int, dict[str, str]] = {}
    asked: dict[str, int] = {}
    for record in records:
        event = record.body.event
        if record.body.recovered is not None:
            asked = dict.fromkeys(flights.out, record.seq)
        elif isinstance(event, Settled) and event.delivery in asked:
            answer = "not_sent" if event.reason == "not_sent" else "sent" if event.outcome == "sent" else "unresolved"
            found.setdefault(asked.pop(event.delivery), {})[event.delivery] = answer
        flights.note(record)
    return found


class Writer:
    """Writes one record after the other."""

    def __init__(self, answers: dict[int, dict[str, str]]) -> None:
        self.policy = Policy()
        self._answers = answers
        self._answered: dict[str, str] = {}
        """What the restart before said, and the records that follow it say once more."""
        self._flights = Flights()
        self._at_ms: int | None = None
        self._passed_ms = 0

    def steps(self, record: Record) -> Iterator[Step]:
        """Yield what a record was, as steps."""
        self._passed_ms += 0 if self._at_ms is None else max(0, record.at_ms - self._at_ms)
        self._at_ms = record.at_ms
        body = record.body
        if record.outcome == "set_aside":
            yield {"#": f"record {record.seq} was set aside"}
        elif body.recovered is not None:
            yield from self._restart(record)
        elif body.configured is not None:
            if _config(body.configured) != _config(self.policy):
                yield from self._advance()
                yield {"reload": _config(body.configured)}
            self.policy = body.configured
        else:
            # A deadline that came, a hand-over: it did before what follows, a restart above all.
            yield from self._advance()
            if body.event is not None:
                yield self._event(body.event)
        self._flights.note(record)

    def end(self) -> Iterator[Step]:
        """Yield what is left: the time that passed until the last record."""
        return self._advance()

    def _advance(self) -> Iterator[Step]:
        if self._passed_ms:
            yield {"advance": self._passed_ms}
            self._passed_ms = 0

    def _restart(self, record: Record) -> Iterator[Step]:
        step: Step = {"crash": True, "down_ms": self._passed_ms}
        self._passed_ms = 0
        self._answered = dict(self._answers.get(record.seq, {}))
        if self.policy.reconciles:
            step["reconcile"] = dict(self._answered)
        else:
            self._answered = {}
        yield step

    def _event(self, event: Event) -> Step:
        if isinstance(event, Settled):
            return self._settle(event)
        if isinstance(event, Rewound):
            return {"#": f"rewound {event.turn_id}: {event.removed}"}
        fields: Step = msgspec.to_builtins(event)
        kind = str(fields.pop("type"))
        if kind in PLACED and "channel" not in fields:
            fields["channel"] = None
        return {kind: fields}

    def _settle(self, event: Settled) -> Step:
        if self._answered.pop(event.delivery, None) is not None:
            return {"#": f"settled {event.delivery}: {event.outcome}, by reconciliation"}
        if event.delivery not in self._flights.known:
            return {"#": f"settled {event.delivery}: {event.outcome}, never handed over"}
        told = {name: getattr(event, name) for name in TOLD}
        plain: Step = msgspec.to_builtins({name: value for name, value in told.items() if value is not None})
        return {"settle": {"chat": event.chat, "delivery": event.delivery, **plain}}
