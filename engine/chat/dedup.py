"""When a call is one that was answered already: by its id, or by its content inside one turn (A2, A6).

Text is compared only inside one proven turn, and only to suppress; it never decides an owner.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

import msgspec

from turnkeeper.engine.chat import memory
from turnkeeper.engine.chat.state import ChatState, Outbound
from turnkeeper.engine.chat.tables import SAMENESS, Prior, Sameness, SamenessFacts
from turnkeeper.engine.protocol import Draft

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnkeeper.engine.ids import MessageId
    from turnkeeper.engine.table import Decision

__all__ = ["ToolCall", "content_key", "remember_content", "same", "spoken_key", "take_token"]

ChatDraft = Draft[ChatState]


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A reply or edit as the rules read it; what the model wrote is checked but not trusted."""

    call_id: str
    tool: Literal["reply", "edit"]
    digest: str
    """Of all arguments as the model wrote them."""
    echoed: object
    consumed: tuple[str, ...]
    """The strings in `consumed_turn_ids`; empty if it is no list."""
    contract: bool
    """The field was used, whatever it held."""
    text: str
    files: tuple[str, ...]
    interim: bool
    chat_id: object
    target: MessageId | None = None
    fault: str = ""
    """The field that cannot be used."""
    limit: str = ""
    """The limit that the fault is about."""

    @property
    def blank(self) -> bool:
        """Nothing to say: text empty or only white space, and no files."""
        return not self.files and not self.text.strip()

    @property
    def named(self) -> tuple[str, ...]:
        """The inputs it names, each once."""
        echoed = (self.echoed,) if isinstance(self.echoed, str) else ()
        return tuple(dict.fromkeys((*echoed, *self.consumed)))


def digest(*parts: str) -> str:
    """Return a short digest of parts; stable between processes. No two lists of parts run together."""
    written = "".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(written.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _said(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def content_key(owner_id: str, call: ToolCall) -> str:
    """Return the key of a content: owner, tool, interim flag, text, files and the edited message."""
    target = "" if call.target is None else str(call.target)
    return digest("said", owner_id, call.tool, str(call.interim), _said(call.text), target, *call.files)


def spoken_key(turn_id: str, text: str, files: tuple[str, ...]) -> str:
    """Return the key of a fallback or rescue: its turn, text and files."""
    return digest("spoken", turn_id, _said(text), *files)


def remember_content(draft: ChatDraft, key: str, delivery: str) -> None:
    """Remember which delivery said this."""
    limit = ("contents", draft.at.policy.limits.contents)
    # Said again it is the newest: it leaves last.
    draft.set(contents=memory.kept(draft, draft.state.contents.drop(key), key, delivery, limit))


def same(
    draft: ChatDraft, call: ToolCall, keys: tuple[str, ...], window_ms: int, *, late: bool
) -> tuple[Decision[Sameness], str]:
    """Decide whether this was said already (table SAMENESS); returns the decision and that delivery."""
    prior, delivery = _prior(draft, call, keys, window_ms, late=late)
    known = draft.state.outbound.get(delivery)
    newer = known is not None and any(_tick(draft.state, ident) > known.tick for ident in call.named)
    decision = SAMENESS.decide(SamenessFacts(prior, newer))
    draft.decided(decision)
    return decision, delivery


def _tick(state: ChatState, turn_id: str) -> int:
    entry = state.ledger.get(turn_id)
    return 0 if entry is None else entry.tick


def _prior(draft: ChatDraft, call: ToolCall, keys: tuple[str, ...], window_ms: int, *, late: bool) -> tuple[Prior, str]:
    """Find the same content: of the owner, or of the end of a turn that a late reply echoes or consumes."""
    prior = Prior.NONE
    delivery = ""
    for said in keys:
        key, known = _remembered(draft.state, said)
        if known is not None:
            prior, delivery = _standing(known, recent=draft.at.now_ms - known.ended_ms < window_ms), key
            break
    if late and call.tool == "reply" and prior in {Prior.NONE, Prior.OLD}:
        for turn_id in _ended(draft.state, call.named):
            key, known = _remembered(draft.state, spoken_key(turn_id, call.text, call.files))
            if known is not None:
                return Prior.SPOKEN if known.outcome == "sent" else _standing(known, recent=True), key
    return prior, delivery


def _remembered(state: ChatState, content: str) -> tuple[str, Outbound | None]:
    """Return the delivery that said this, unless it failed."""
    delivery = state.contents.get(content)
    known = state.outbound.get(delivery) if delivery is not None else None
    return delivery or "", None if known is None or known.outcome == "failed" else known


def _ended(state: ChatState, ids: Iterable[str]) -> list[str]:
    """List the turns among these that are settling or settled, and the turns they were merged into."""
    turns: list[str] = []
    for ident in ids:
        entry = state.ledger.get(ident)
        turns += [ident] if entry is None or not entry.merged else [ident, entry.merged]
    return turns


def _standing(known: Outbound, *, recent: bool) -> Prior:
    if known.outcome == "in flight":
        return Prior.IN_FLIGHT
    if known.outcome == "unknown":
        return Prior.UNKNOWN
    return Prior.RECENT if recent else Prior.OLD


def take_token(draft: ChatDraft) -> bool:
    """Take one call from the chat's token bucket, in thousandths of a call (A10)."""
    limits, state, now = draft.at.policy.limits, draft.state, draft.at.now_ms
    full = limits.calls_burst * 1000
    gained = max(0, now - state.tokens_ms) * limits.calls_per_s
    have = full if state.tokens is None else min(full, state.tokens + gained)
    taken = have >= 1000  # noqa: PLR2004 - one call in thousandths
    draft.set(tokens=have - 1000 if taken else have, tokens_ms=now)
    return taken
