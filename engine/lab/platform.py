"""A simulated platform: it takes what it is told to perform, and settles it as the scenario says.

It plays the host and the chat platform in one, is complete, and can be used by hosts' own tests. It settles
by events of its own, which the runner posts after the run that sent; what is held waits for a `settle` step.
"""

from __future__ import annotations

from threading import Lock
from typing import Literal, get_args

import msgspec

from turnkeeper.engine.commands import Ack, Command, Edit, Preview, React, Reconcile, Rewind, Send, Settleable
from turnkeeper.engine.errors import DecodeError
from turnkeeper.engine.events import Event, Rewound, Settled
from turnkeeper.engine.ids import MessageId, delivery_key
from turnkeeper.engine.ports import Reconciliation

__all__ = ["FIRST_MESSAGE", "RECONCILIATIONS", "Directive", "Fault", "Platform", "Settling", "directive_from"]

FIRST_MESSAGE = 9001
"""The first message id that a platform gives."""
RECONCILIATIONS: tuple[Reconciliation, ...] = get_args(Reconciliation)
"""The answers to `reconcile`."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a send fails, and how often."""

    reason: str | None = None
    retry_after_ms: int | None = None
    permanent: bool = False
    parts_done: int | None = None
    times: int = 1


class Directive(msgspec.Struct, frozen=True):
    """How the platform settles an operation."""

    way: Literal["ok", "fail", "unknown", "hold"] = "ok"
    fault: Fault = Fault()


def directive_from(raw: object) -> Directive:
    """Read a `deliver` value.

    Raises:
        DecodeError: it is none of the words or the map that are allowed.

    """
    if raw == "fail-permanent":
        return Directive("fail", Fault(permanent=True))
    if isinstance(raw, str) and raw in {"ok", "fail", "unknown", "hold"}:
        return Directive(raw)  # type: ignore[arg-type]
    if isinstance(raw, dict) and list(raw) == ["fail"]:
        try:
            return Directive("fail", msgspec.convert(raw["fail"], Fault))
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise DecodeError(f"deliver.fail: {error}") from error
    raise DecodeError(
        f'deliver is {raw!r}; expected "ok", "fail", "fail-permanent", "unknown", "hold" or {{"fail": …}}'
    )


class Settling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `settle` step: which held operation, and what became of it."""

    outcome: Literal["sent", "failed", "unknown"]
    chat: str = "c1"
    call_id: str | None = None
    turn_id: str | None = None
    purpose: str | None = None
    delivery: str | None = None
    attempt: int | None = None
    messages: tuple[MessageId, ...] | None = None
    reason: str | None = None
    retry_after_ms: int | None = None
    permanent: bool = False
    parts_done: int | None = None

    def names(self) -> list[str]:
        """Return the delivery keys that this may name."""
        if self.delivery is not None:
            return [self.delivery]
        if self.call_id is not None:
            return [delivery_key(form, self.chat, self.call_id) for form in ("reply", "edit")]
        return []

    def fits(self, command: Settleable) -> bool:
        """Say whether this names the operation by its turn and purpose; `preview` and `react` are purposes too."""
        if self.purpose is None or command.chat != self.chat or isinstance(command, Edit):
            return False
        if isinstance(command, React):
            return self.purpose == "react" and command.delivery == delivery_key("react", self.chat, self.turn_id or "")
        purpose = command.purpose if isinstance(command, Send) else "preview"
        return (command.turn_id, purpose) == (self.turn_id, self.purpose)


class Platform:
    """Performs commands and settles them; safe to be called by several threads.

    Args:
        next_message: the first message id it gives.

    """

    def __init__(self, next_message: int = FIRST_MESSAGE) -> None:
        self.performed: list[Command] = []
        """Everything performed, in order; what a restart repeats under its old id is not listed again."""
        self.visible: list[tuple[str, Settleable]] = []
        """What users saw, in order: (what happened, the command)."""
        self.default = Directive()
        self.step = Directive()
        """How the operations that enter a queue in the current step are settled."""
        self.reconciliation: dict[str, Reconciliation] = {}
        self._next = next_message
        self._lock = Lock()
        self._ids: set[str] = set()
        self._directives: dict[str, Directive] = {}
        self._attempts: dict[str, int] = {}
        self._bubbles: dict[str, MessageId] = {}
        self._out: list[tuple[tuple[int, int], Event]] = []
        self._held: dict[str, Settleable] = {}

    def plan(self, deliveries: list[str]) -> None:
        """Fix how these are settled: they entered their queue in the current step."""
        with self._lock:
            for delivery in deliveries:
                self._directives.setdefault(delivery, self.step)

    def perform(self, command: Command) -> None:
        """Take a command; settlements come later, as events."""
        with self._lock:
            if command.id not in self._ids:
                self._ids.add(command.id)
                self.performed.append(command)
            if isinstance(command, Rewind):
                self._answer(command, Rewound(command.chat, command.turn_id, 1))
            elif isinstance(command, Send | Edit | Preview | React):
                self._operate(command)

    def reconcile(self, delivery: str) -> Reconciliation:
        """Say what the scenario says of a delivery, by call id or by key."""
        call = delivery.rpartition(":")[2]
        return self.reconciliation.get(delivery) or self.reconciliation.get(call) or "unresolved"

    def _operate(self, command: Settleable) -> None:
        directive = self._directives.setdefault(command.delivery, self.step)
        attempt = self._attempts.get(command.delivery, 0) + 1
        self._attempts[command.delivery] = attempt
        if directive.way == "hold" and attempt == 1:
            self._held[command.delivery] = command
        elif directive.way == "unknown" and attempt == 1:
            self.visible.append(("unknown", command))
            self._answer(command, self._settled(command, "unknown"))
        elif directive.way == "fail" and attempt <= directive.fault.times:
            self._answer(command, self._failed(command, directive.fault))
        else:
            self._arrive(command, None)

    def _arrive(self, command: Settleable, messages: tuple[MessageId, ...] | None) -> None:
        self.visible.append(("sent", command))
        made = messages if messages is not None else self._made_by(command)
        self._answer(command, self._settled(command, "sent", messages=made))

    def _made_by(self, command: Settleable) -> tuple[MessageId, ...]:
        """Give message ids in order of success; an edit keeps its bubble's, a reaction has none."""
        if isinstance(command, Edit):
            return (command.message,)
        if isinstance(command, React):
            return ()
        if isinstance(command, Preview) and command.turn_id in self._bubbles and command.quote is None:
            return (self._bubbles[command.turn_id],)
        message = self._next
        self._next += 1
        if isinstance(command, Preview):
            self._bubbles[command.turn_id] = message
        return (message,)

    def _settled(
        self,
        command: Settleable,
        outcome: Literal["sent", "failed", "unknown"],
        *,
        messages: tuple[MessageId, ...] = (),
    ) -> Settled:
        return Settled(
            command.chat,
            command.delivery,
            outcome,
            channel=command.channel,
            attempt=command.attempt,
            messages=messages,
        )

    def _failed(self, command: Settleable, fault: Fault) -> Settled:
        return msgspec.structs.replace(
            self._settled(command, "failed"),
            reason=fault.reason,
            retry_after_ms=fault.retry_after_ms,
            permanent=fault.permanent,
            parts_done=fault.parts_done,
        )

    def _answer(self, command: Command, event: Event) -> None:
        seq, _, n = command.id.partition(".")
        self._out.append(((int(seq), int(n)), event))

    def take(self) -> Event | None:
        """Take the next event that the platform wants posted: in the order of the commands it answers."""
        with self._lock:
            if not self._out:
                return None
            self._out.sort(key=_order)
            return self._out.pop(0)[1]

    def lose_answers(self) -> None:
        """The host crashed before it could post what the platform answered."""
        with self._lock:
            self._out.clear()

    def settle(self, told: Settling) -> Settled:
        """Settle something held, or tell once more what became of something that is not.

        Raises:
            DecodeError: no operation of that name was ever performed.

        """
        with self._lock:
            for key in told.names() or self._meant(told):
                command = self._held.pop(key, None) or self._latest(key)
                if command is not None:
                    return self._resolve(command, told)
        named = " or ".join(told.names()) or f"turn {told.turn_id}, purpose {told.purpose}"
        raise DecodeError(f"settle: nothing was handed over under {named}")

    def _meant(self, told: Settling) -> list[str]:
        """List what a turn and a purpose name: what is held, oldest first, then what was performed last."""
        held = [key for key, command in self._held.items() if told.fits(command)]
        done = [one.delivery for one in reversed(self.performed) if isinstance(one, Settleable) and told.fits(one)]
        return [*held, *done[:1]]

    def _latest(self, delivery: str) -> Settleable | None:
        for command in reversed(self.performed):
            if isinstance(command, Send | Edit | Preview | React) and command.delivery == delivery:
                return command
        return None

    def _resolve(self, command: Settleable, told: Settling) -> Settled:
        messages = told.messages
        if told.outcome == "sent":
            self.visible.append(("sent", command))
            messages = messages if messages is not None else self._made_by(command)
        return Settled(
            command.chat,
            command.delivery,
            told.outcome,
            channel=command.channel,
            attempt=told.attempt if told.attempt is not None else command.attempt,
            messages=messages or (),
            reason=told.reason,
            retry_after_ms=told.retry_after_ms,
            permanent=told.permanent,
            parts_done=told.parts_done,
        )


def _order(waiting: tuple[tuple[int, int], Event]) -> tuple[int, int]:
    return waiting[0]


HIDDEN = (Ack, Reconcile)
"""Commands that `expect` does not list: acks have their own list, a reconcile asks and shows nothing."""
