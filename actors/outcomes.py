"""What a gateway's call says of a delivery. Raising means failed; returning something else, that nobody knows."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

import msgspec

from turnkeeper.actors.log import log
from turnkeeper.engine.commands import Command, Reconcile, Settleable
from turnkeeper.engine.events import Settled
from turnkeeper.engine.recovery import answer_to

__all__ = ["answer_of", "settlement_of"]


def settlement_of(command: Settleable, result: Any, error: BaseException | None) -> Settled | None:  # noqa: ANN401 - whatever a gateway returns
    """Return the settlement of a command whose `perform` came back; None: the host settles it later."""
    if isinstance(error, CancelledError):
        return _settled(command, "unknown", "cancelled")
    if error is not None:
        return _settled(command, "failed", type(error).__name__)
    if result is None:
        return None
    if isinstance(result, Settled):
        return _completed(command, result)
    _log_unexpected(command, result, "Settled, or None and a settled event later")
    return _settled(command, "unknown", f"perform returned {type(result).__name__}")


def answer_of(asked: Reconcile, result: Any) -> Settled | None:  # noqa: ANN401 - whatever a gateway returns
    """Return the settlement that the answer to `reconcile` stands for; None: the host settles it later."""
    if result is None or isinstance(result, Settled):
        return result
    if result not in ("sent", "not_sent", "unresolved"):
        _log_unexpected(asked, result, '"sent", "not_sent" or "unresolved"')
        result = "unresolved"
    return answer_to(asked, result)


def _log_unexpected(command: Command, result: Any, expected: str) -> None:  # noqa: ANN401 - whatever a gateway returns
    found = type(result).__name__
    extra = {"chat": command.chat, "command": command.id}
    log.error("the gateway returned %s for %s; expected %s", found, command.id, expected, extra=extra)


def _settled(command: Settleable, outcome: Any, reason: str) -> Settled:  # noqa: ANN401 - one of three words
    return Settled(
        command.chat, command.delivery, outcome, channel=command.channel, attempt=command.attempt, reason=reason
    )


def _completed(command: Settleable, settled: Settled) -> Settled:
    """Add what the command knows and the gateway left out."""
    if settled.delivery != command.delivery:
        return settled
    return msgspec.structs.replace(
        settled,
        chat=command.chat,
        channel=command.channel if settled.channel is None else settled.channel,
        attempt=command.attempt if settled.attempt is None else settled.attempt,
    )
