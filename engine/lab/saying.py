"""The events of a scenario as methods: what a host posts, said in Python (PROTOCOL "Events").

Every method takes the fields of its event by name, `chat` and `deliver` among them, plays it at once, and returns
the lab, so that steps can stand in a row. A field that is unknown or of another type is a `DecodeError`.
"""

from __future__ import annotations

from typing import Any, Self

__all__ = ["EventMethods"]


class EventMethods:
    """One method an event; `say` plays it."""

    def say(self, kind: str, fields: dict[str, Any]) -> Self:
        """Play one event."""
        raise NotImplementedError

    def chat_opened(self, **fields: Any) -> Self:
        """A chat exists. Optional: a chat is made on first use."""
        return self.say("chat_opened", fields)

    def channel_registered(self, channel: str, **fields: Any) -> Self:
        """The host knows this channel; a push registers one lazily, closed."""
        return self.say("channel_registered", {"channel": channel, **fields})

    def server_removed(self, server: str, **fields: Any) -> Self:
        """A platform adapter is gone, its channels with it."""
        return self.say("server_removed", {"server": server, **fields})

    def inbound(self, message: int | str | None = None, **fields: Any) -> Self:
        """Something was delivered into the agent's history."""
        return self.say("inbound", {"message": message, **fields})

    def accepted(self, server: str, event_id: str, **fields: Any) -> Self:
        """The acknowledgement of a coalesced occurrence succeeded, or failed."""
        return self.say("accepted", {"server": server, "event_id": event_id, **fields})

    def wake(self, reason: str, **fields: Any) -> Self:
        """A demand to run that is for no message: timer, batch, render, notice, module."""
        return self.say("wake", {"reason": reason, **fields})

    def turn_opened(self, turn_id: str, **fields: Any) -> Self:
        """The agent starts a new turn; with channel or message the pair is given, else merged from wakes."""
        return self.say("turn_opened", {"turn_id": turn_id, **fields})

    def turn_continued(self, turn_id: str, cause: str, **fields: Any) -> Self:
        """Another physical start of the same turn: provider_wait, budget, guard, tool_result."""
        return self.say("turn_continued", {"turn_id": turn_id, "cause": cause, **fields})

    def input_folded(self, turn_id: str, source: str, **fields: Any) -> Self:
        """A follow-up was injected into the running turn."""
        return self.say("input_folded", {"turn_id": turn_id, "source": source, **fields})

    def input_seen(self, turn_id: str, **fields: Any) -> Self:
        """The agent provably read this input."""
        return self.say("input_seen", {"turn_id": turn_id, **fields})

    def speech_moved(self, turn_id: str, channel: str, cause: str, **fields: Any) -> Self:
        """A re-pin or channel_open moved where the turn's plain speech lands."""
        return self.say("speech_moved", {"turn_id": turn_id, "channel": channel, "cause": cause, **fields})

    def reply(self, text: Any = "", *, call_id: str = "", **fields: Any) -> Self:  # noqa: ANN401
        """The agent called its reply tool; without `call_id` each call is one of its own: call-1, call-2 …."""
        return self.say("reply", {"call_id": call_id or self.next_call(), "text": text, **fields})

    def edit(self, message: int | str, text: Any = "", *, call_id: str = "", **fields: Any) -> Self:  # noqa: ANN401
        """The agent edits a bubble that it sent; `call_id` as for a reply."""
        given = {"call_id": call_id or self.next_call(), "message": message, "text": text}
        return self.say("edit", {**given, **fields})

    def preview(self, text: str, **fields: Any) -> Self:
        """A snapshot of the answer being written."""
        return self.say("preview", {"text": text, **fields})

    def question_opened(self, call_id: str, **fields: Any) -> Self:
        """The agent waits for the user; clocks that would end the turn stand still."""
        return self.say("question_opened", {"call_id": call_id, **fields})

    def question_answered(self, call_id: str, **fields: Any) -> Self:
        """The user answered."""
        return self.say("question_answered", {"call_id": call_id, **fields})

    def activity(self, cause: str, **fields: Any) -> Self:
        """Proof that the agent is working: a hook, a tool call."""
        return self.say("activity", {"cause": cause, **fields})

    def stopped(self, text: str = "", **fields: Any) -> Self:
        """The agent ended a cycle with this last message."""
        return self.say("stopped", {"text": text, **fields})

    def refused(self, turn_id: str, **fields: Any) -> Self:
        """The model ended the reply with a content-policy refusal."""
        return self.say("refused", {"turn_id": turn_id, **fields})

    def failed(self, turn_id: str, error: str, **fields: Any) -> Self:
        """The turn failed (not a refusal). The breaker knows `invalid_request` and `configuration`."""
        return self.say("failed", {"turn_id": turn_id, "error": error, **fields})

    def interrupted(self, **fields: Any) -> Self:
        """The user stopped the agent."""
        return self.say("interrupted", fields)

    def lost(self, reason: str, **fields: Any) -> Self:
        """The agent process is gone."""
        return self.say("lost", {"reason": reason, **fields})

    def unstick(self, **fields: Any) -> Self:
        """An operator forces the rewind loop on an idle agent."""
        return self.say("unstick", fields)

    def quiesced(self, **fields: Any) -> Self:
        """Maintenance begins: wakes park."""
        return self.say("quiesced", fields)

    def resumed(self, **fields: Any) -> Self:
        """Maintenance ends: parked wakes merge into the next start."""
        return self.say("resumed", fields)

    def rewound(self, turn_id: str, removed: int, **fields: Any) -> Self:
        """How many exchanges a `rewind` removed; 0: nothing was left."""
        return self.say("rewound", {"turn_id": turn_id, "removed": removed, **fields})

    def next_call(self) -> str:
        """Make the id of a call that names none."""
        raise NotImplementedError
