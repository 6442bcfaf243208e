"""A platform's flood wait: it holds the whole channel, whatever met it (RULES-replies A8)."""

from __future__ import annotations

import msgspec

from turnkeeper.engine.channel.state import ChannelState
from turnkeeper.engine.protocol import Draft

__all__ = ["HOLD_MAX_MS", "hold"]

HOLD_MAX_MS = 86_400_000
"""A flood wait holds a channel no longer than a day, whatever the platform says."""


def hold(draft: Draft[ChannelState], wait_ms: int) -> None:
    """Let nothing leave for so long, a send that waits for its retry neither."""
    state = draft.state
    until_ms = max(state.hold_until_ms, draft.at.now_ms + min(max(0, wait_ms), HOLD_MAX_MS))
    out = state.out
    if out is not None and out.phase == "waiting" and out.until_ms < until_ms:
        out = msgspec.structs.replace(out, until_ms=until_ms)
    draft.set(hold_until_ms=until_ms, out=out)
