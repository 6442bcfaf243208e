"""The things that are seen from outside: attempts, operations, calls, turns and follow-ups.

An attempt of an operation is *sure* once the platform told that it arrived, *gone* once it told that it did not,
and *maybe* as long as it told neither: what users see then is open, and nothing may be repeated blindly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from turnkeeper.engine.commands import Preview, Send

if TYPE_CHECKING:
    from turnkeeper.engine import events
    from turnkeeper.engine.commands import Ack, Settleable, TurnSettled
    from turnkeeper.engine.config import Config
    from turnkeeper.engine.ids import ChannelRef

__all__ = ["Attempt", "CallSeen", "InputSeen", "Operation", "TurnSeen"]


class Attempt:
    """One hand-over of an operation, and what the platform told of it."""

    __slots__ = ("at_ms", "command", "doubted", "gone_ms", "lost", "parts_done", "reason", "told")

    def __init__(self, command: Settleable, at_ms: int) -> None:
        self.command = command
        self.at_ms = at_ms
        self.told: Literal["", "sent", "failed", "unknown"] = ""
        self.parts_done = 0
        self.gone_ms: int | None = None
        """When it stopped being out: told, or forgotten by a crash."""
        self.reason = ""
        self.doubted = False
        """It was unknown for a while: told so, out too long, or lost sight of in a crash."""
        self.lost = False
        """The process that handed it over is gone."""

    @property
    def sure(self) -> bool:
        """It arrived."""
        return self.told == "sent"

    @property
    def visible(self) -> bool:
        """It arrived, or may have."""
        return self.told != "failed"

    @property
    def quotes(self) -> bool:
        """It quotes a message."""
        return isinstance(self.command, Send | Preview) and self.command.quote is not None


class Operation:
    """A send, edit, preview or reaction by its delivery, with its attempts."""

    __slots__ = ("at", "attempts", "delivery", "ended_ms", "lied", "messages")

    def __init__(self, delivery: str, at: int) -> None:
        self.delivery = delivery
        self.at = at
        """When it left first, in events."""
        self.attempts: list[Attempt] = []
        self.ended_ms: int | None = None
        self.messages: tuple[int | str, ...] = ()
        self.lied = False
        """The platform contradicted itself: nothing can be concluded."""

    @property
    def command(self) -> Any:  # noqa: ANN401 - one of four commands
        """The newest attempt's command."""
        return self.attempts[-1].command

    @property
    def sure(self) -> bool:
        """An attempt arrived."""
        return any(attempt.sure for attempt in self.attempts)

    @property
    def visible(self) -> bool:
        """An attempt arrived, or may have; the parts of one that failed half-way did."""
        return any(attempt.visible or attempt.parts_done for attempt in self.attempts)

    def went_elsewhere(self, channel: ChannelRef) -> bool:
        """An attempt went to another channel, whose receipts say nothing to this one."""
        return any(attempt.command.channel != channel for attempt in self.attempts)


class CallSeen:
    """A tool call of the agent: its event, and the acks it got."""

    __slots__ = (
        "acks",
        "at",
        "call_id",
        "decided",
        "event",
        "events",
        "failed_at",
        "failed_ms",
        "joined",
        "late",
        "owner",
        "rejected",
        "resting",
        "varied",
    )

    def __init__(self, event: events.Reply | events.Edit, at: int) -> None:
        self.call_id = event.call_id
        self.event = event
        self.at = at
        self.events = 1
        self.acks: list[Ack] = []
        self.failed_ms: int | None = None
        self.failed_at = 0
        """When it was told that its reply failed, by the clock and in events."""
        self.joined = False
        """It is answered by what another call sends, or sent."""
        self.late = False
        self.varied = False
        """Its id came again with other arguments."""
        self.owner: str | None = None
        """The turn or input that its reply is for, by what it names; "": nobody's; None: an outsider cannot say."""
        self.rejected = ""
        self.decided = False
        """Its end is in the journal: an ack that a crash lost, its retry would get again."""
        self.resting = False
        """An ack of it may be lost in a crash."""


class TurnSeen:
    """A turn that was opened, and how it ended."""

    __slots__ = (
        "asked",
        "asked_ms",
        "config",
        "ended",
        "ended_at",
        "first_stop",
        "interrupted",
        "opened",
        "opened_ms",
        "over",
        "prefixed",
        "stop",
        "stopped",
        "subagent",
        "turn_id",
        "worked_at",
        "worked_ms",
    )

    def __init__(self, opened: events.TurnOpened, at: int, config: Config, now_ms: int) -> None:
        self.turn_id = opened.turn_id
        self.opened = at
        self.opened_ms = self.worked_ms = now_ms
        """When it was opened, and when it last worked, or was found again after a crash."""
        self.worked_at = at
        """When it last worked, in events."""
        self.asked: dict[str, None] = {}
        """The questions that it waits for."""
        self.asked_ms = 0
        """When the first of them was asked."""
        self.config = config
        """A turn keeps the settings that it opened with."""
        self.ended: TurnSettled | None = None
        self.ended_at = 0
        self.interrupted = False
        self.stop = ""
        """A Stop text that names this turn and that no work followed."""
        self.stopped = False
        """A Stop came in this cycle, with words: the first one counts."""
        self.first_stop = 0
        """When a Stop came first that may be its, in events; 0: none did."""
        self.prefixed = False
        """A Stop named where its words go."""
        self.over = False
        """It was refused, it failed, or its end was told."""
        self.subagent = False


class InputSeen:
    """A follow-up, and what was told of it."""

    __slots__ = ("event", "redelivered", "told", "written")

    def __init__(self, event: events.InputFolded, at: int) -> None:
        self.event = event
        self.written = at
        self.told: list[str] = []
        self.redelivered: dict[tuple[str, int | str | None], set[str]] = {}
        """The commands that asked to hand its message over again; one may come again under its own id."""
