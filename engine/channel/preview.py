"""The live preview of a channel: one turn has it, one snapshot is out at a time (RULES-replies A9).

Snapshots are cosmetic: one that cannot leave now is dropped, never queued. The first bubble quotes; the
final reply of the preview's own turn replaces the bubble and repeats its quote; a reply of any other turn
leaves it alone. A bubble whose fate is open when the final leaves is detached: it stays as it is.
"""

from __future__ import annotations

import msgspec

from turnkeeper.engine import commands
from turnkeeper.engine.channel.state import ChannelState, Item, Mark, Preview
from turnkeeper.engine.ids import delivery_key, turn_at
from turnkeeper.engine.protocol import Draft, QuoteGiven, QuoteSettled, QuoteWanted, Settlement, ShowPreview
from turnkeeper.engine.signals import LimitReached, PreviewTurnMismatch, PreviewUnattributed

__all__ = ["detach", "give_back", "meet", "settle", "show", "start"]

replace = msgspec.structs.replace


def show(draft: Draft[ChannelState], told: ShowPreview) -> None:
    """Show a snapshot, or drop it."""
    state = draft.state
    live = state.preview
    if live is not None and live.turn_id != told.turn_id:
        draft.signal(PreviewUnattributed(chat=state.chat, turn_id=told.turn_id))
        draft.count("previews", "unattributed")
        return
    shown = state.snapshots.get(told.turn_id, 0)
    limit = draft.at.policy.limits.previews_per_turn
    if shown >= limit:
        if shown == limit:
            draft.set(snapshots={**state.snapshots, told.turn_id: shown + 1})
            draft.signal(LimitReached(chat=state.chat, turn_id=told.turn_id, limit="previews_per_turn"))
        return
    busy = state.out is not None or bool(state.queue) or draft.at.now_ms < state.hold_until_ms
    if busy or (live is not None and (live.flight or live.text)):
        return
    if live is None:
        draft.count("previews", "opened")
        draft.set(preview=Preview(told.turn_id, text=told.text))
        key = delivery_key("preview", state.chat, told.turn_id, shown + 1)
        draft.tell(turn_at(state.chat, told.turn_id), QuoteWanted(key, told.turn_id, state.ref))
    else:
        _emit(draft, live, told.text)


def start(draft: Draft[ChannelState], given: QuoteGiven) -> None:
    """Send the first snapshot, with the quote that its turn gave."""
    live = draft.state.preview
    if live is None or not live.text:
        return
    live = replace(live, quote=given.quote, participant=given.participant)
    _emit(draft, live, live.text)


def _emit(draft: Draft[ChannelState], live: Preview, text: str) -> None:
    state = draft.state
    count = state.snapshots.get(live.turn_id, 0) + 1
    key = delivery_key("preview", state.chat, live.turn_id, count)
    first = not live.shown
    out = Mark("preview", draft.at.now_ms, turn_id=live.turn_id, reserved=first and live.quote is not None)
    draft.set(
        preview=replace(live, flight=key, text=""),
        snapshots={**state.snapshots, live.turn_id: count},
        loose={**state.loose, key: out},
    )
    draft.command(
        commands.Preview(
            chat=state.chat,
            delivery=key,
            channel=state.ref,
            turn_id=live.turn_id,
            text=text,
            quote=live.quote if first else None,
            participant=live.participant if first else None,
        )
    )


def settle(draft: Draft[ChannelState], out: Mark, told: Settlement) -> None:
    """Take in what became of a snapshot; a failed one is not tried again."""
    state = draft.state
    if out.reserved:
        spent = told.outcome != "failed"
        draft.tell(turn_at(state.chat, out.turn_id), QuoteSettled(told.delivery, out.turn_id, spent))
    live = state.preview
    if live is None or live.flight != told.delivery:
        return
    if live.shown or told.outcome == "sent":
        draft.set(preview=replace(live, flight="", shown=True))
    else:
        # A first bubble that failed leaves nothing to edit; one of unknown fate cannot be edited.
        draft.set(preview=None)


def meet(draft: Draft[ChannelState]) -> None:
    """The front item is about to leave: what becomes of the live preview."""
    item, live = draft.state.out, draft.state.preview
    if item is None or live is None or item.kind != "send" or item.took is not None:
        return
    if not item.owned or item.turn_id != live.turn_id:
        if item.purpose == "reply":
            draft.count("previews", "mismatch")
            draft.signal(PreviewTurnMismatch(chat=draft.state.chat, turn_id=item.turn_id, preview_turn_id=live.turn_id))
        return
    if item.interim or not live.shown:
        draft.count("previews", "detached")
        draft.set(preview=None)
    else:
        draft.count("previews", "replaced")
        took = replace(item, took=live, quote=live.quote, participant=live.participant)
        draft.set(preview=None, out=took)


def give_back(draft: Draft[ChannelState], item: Item) -> None:
    """A final that was to replace a preview failed for good: the bubble is live again for the next one."""
    if item.took is not None and draft.state.preview is None and item.took.turn_id in draft.state.snapshots:
        draft.set(preview=replace(item.took, flight=""))


def detach(draft: Draft[ChannelState], turn_id: str, *, ended: bool = True) -> None:
    """The turn is over, or the process restarted: its bubble stays as it is, and the channel's preview is free."""
    state = draft.state
    if ended and turn_id in state.snapshots:
        draft.set(snapshots={key: count for key, count in state.snapshots.items() if key != turn_id})
    if state.preview is not None and state.preview.turn_id == turn_id:
        draft.count("previews", "detached")
        draft.set(preview=None)
