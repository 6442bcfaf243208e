"""What was decided and why: ids and lengths, never text (PROTOCOL "Signals").

Each signal names the table row that decided it. Metrics, `explain` and scenarios read these.
"""

from __future__ import annotations

import msgspec

from turnkeeper.engine.ids import ChannelRef, MessageId

__all__ = [
    "AnchorCommitLate",
    "AnchorMoved",
    "CeilingResolved",
    "ConsumedAckFallbackRescued",
    "DeliveryUnknown",
    "DigestDiffers",
    "DuplicateInbound",
    "DuplicateTurn",
    "FailedReplyRescued",
    "FinalizationWaited",
    "FoldReplyAttributed",
    "FoldSuspected",
    "InputAcked",
    "InputCancelled",
    "InputDropped",
    "InputSeen",
    "InputSuperseded",
    "InputUnconfirmed",
    "InterimOnlyFinalRescued",
    "LateReplyCorrelated",
    "LimitReached",
    "OrphanReplyUnattributed",
    "PreviewTurnMismatch",
    "PreviewUnattributed",
    "QuietFinalize",
    "QuoteReleased",
    "QuoteReserved",
    "QuoteSpent",
    "ReactionFailed",
    "ReceiptTextDiffers",
    "Recovered",
    "RefusalMarked",
    "RefusalUnmarked",
    "ReplyJoined",
    "ReplyRejected",
    "ReplyReplayed",
    "RewindQueued",
    "SetAside",
    "SettlementContradicts",
    "Signal",
    "SignalBase",
    "SpeechArchived",
    "SpeechUnrouted",
    "StopForeign",
    "StopGraceCancelled",
    "StopTextSuppressed",
    "StopUnattributed",
    "TurnDeliveryResolved",
    "TurnResolvedByStop",
    "UnsentTooOld",
    "UnstickRefused",
]


class SignalBase(msgspec.Struct, frozen=True, gc=False, tag_field="type", omit_defaults=True, kw_only=True):
    """What every signal carries."""

    chat: str = ""
    table: str = ""
    row: str = ""
    why: str = ""


class OfTurn(SignalBase, frozen=True, gc=False, kw_only=True):
    """About a turn or a ledgered input."""

    turn_id: str | None = None


class OfDelivery(SignalBase, frozen=True, gc=False, kw_only=True):
    """About one outbound operation."""

    delivery: str
    turn_id: str | None = None


class InputAcked(OfTurn, frozen=True, gc=False, tag="input_acked", kw_only=True):
    """The reply that consumed this input was delivered."""


class InputSeen(OfTurn, frozen=True, gc=False, tag="input_seen", kw_only=True):
    """The agent provably read this input."""


class InputDropped(OfTurn, frozen=True, gc=False, tag="input_dropped", kw_only=True):
    """Nobody picked the input up."""

    source: str


class InputSuperseded(OfTurn, frozen=True, gc=False, tag="input_superseded", kw_only=True):
    """A primary written later was read first."""


class InputUnconfirmed(OfTurn, frozen=True, gc=False, tag="input_unconfirmed", kw_only=True):
    """An injected or system input was never confirmed; it is not handed over again."""


class FoldSuspected(OfTurn, frozen=True, gc=False, tag="fold_suspected", kw_only=True):
    """The agent never used the acknowledgement contract, so a fold cannot be told from a drop."""


class InputCancelled(OfTurn, frozen=True, gc=False, tag="input_cancelled", kw_only=True):
    """The user's interrupt took the input away."""


class FoldReplyAttributed(SignalBase, frozen=True, gc=False, tag="fold_reply_attributed", kw_only=True):
    """A delivered reply that echoed a fold was recorded on the turn it proves."""

    echoed_turn_id: str
    effective_turn_id: str
    source: str
    interim: bool


class LateReplyCorrelated(OfTurn, frozen=True, gc=False, tag="late_reply_correlated", kw_only=True):
    """A reply echoed an input that is no open turn; it answers that input and is recorded nowhere."""

    source: str
    ended: bool = False
    """A message of the turn came after its end."""


class OrphanReplyUnattributed(SignalBase, frozen=True, gc=False, tag="orphan_reply_unattributed", kw_only=True):
    """No id to trust and several open turns: delivered, recorded nowhere."""

    call_id: str


class PreviewTurnMismatch(OfTurn, frozen=True, gc=False, tag="preview_turn_mismatch", kw_only=True):
    """A reply of another turn left beside a live preview."""

    preview_turn_id: str


class PreviewUnattributed(OfTurn, frozen=True, gc=False, tag="preview_unattributed", kw_only=True):
    """A snapshot that belongs to no open turn, or to one without the channel's preview."""


class ReplyReplayed(SignalBase, frozen=True, gc=False, tag="reply_replayed", kw_only=True):
    """The same answer was already delivered."""

    call_id: str
    replay_of: str


class ReplyJoined(SignalBase, frozen=True, gc=False, tag="reply_joined", kw_only=True):
    """The same answer is in flight; both calls get its outcome."""

    call_id: str
    replay_of: str


class ReplyRejected(SignalBase, frozen=True, gc=False, tag="reply_rejected", kw_only=True):
    """A call that sends nothing."""

    call_id: str
    reason: str


class TurnResolvedByStop(OfTurn, frozen=True, gc=False, tag="turn_resolved_by_stop", kw_only=True):
    """Stop ended the turn; the counts are those it really ended with."""

    reply_count: int
    via_text_fallback: bool
    attributed: bool


class StopForeign(OfTurn, frozen=True, gc=False, tag="stop_foreign", kw_only=True):
    """A Stop of no open turn that was read or answered."""


class StopUnattributed(SignalBase, frozen=True, gc=False, tag="stop_unattributed", kw_only=True):
    """A Stop that several open turns could own; its text is kept with each."""

    candidates: int


class StopGraceCancelled(OfTurn, frozen=True, gc=False, tag="stop_grace_cancelled", kw_only=True):
    """The agent went on working after its Stop."""


class QuietFinalize(OfTurn, frozen=True, gc=False, tag="quiet_finalize", kw_only=True):
    """Silence ended an answered turn."""


class CeilingResolved(OfTurn, frozen=True, gc=False, tag="ceiling_resolved", kw_only=True):
    """A ceiling ended a turn that had something to resolve."""


class TurnDeliveryResolved(OfTurn, frozen=True, gc=False, tag="turn_delivery_resolved", kw_only=True):
    """How a turn ended."""

    outcome: str


class ConsumedAckFallbackRescued(OfTurn, frozen=True, gc=False, tag="consumed_ack_fallback_rescued", kw_only=True):
    """A consumed turn's differing Stop text was sent."""


class InterimOnlyFinalRescued(OfTurn, frozen=True, gc=False, tag="interim_only_final_rescued", kw_only=True):
    """A turn with interim replies only: its Stop text was sent."""


class FailedReplyRescued(OfTurn, frozen=True, gc=False, tag="failed_reply_rescued", kw_only=True):
    """A final reply that failed was sent again."""


class FinalizationWaited(OfTurn, frozen=True, gc=False, tag="finalization_waited", kw_only=True):
    """The end waited for what was in flight."""

    waited_ms: int


class DeliveryUnknown(OfDelivery, frozen=True, gc=False, tag="delivery_unknown", kw_only=True):
    """Nobody can say whether it arrived; told, never resent blindly."""


class QuoteReserved(OfDelivery, frozen=True, gc=False, tag="quote_reserved", kw_only=True):
    """The quote is with a send."""


class QuoteSpent(OfDelivery, frozen=True, gc=False, tag="quote_spent", kw_only=True):
    """The quote was delivered."""


class QuoteReleased(OfDelivery, frozen=True, gc=False, tag="quote_released", kw_only=True):
    """The send that had the quote failed."""


class RefusalMarked(OfTurn, frozen=True, gc=False, tag="refusal_marked", kw_only=True):
    """The refusal mark goes on the message the turn answered."""

    channel: ChannelRef
    message: MessageId


class RefusalUnmarked(OfTurn, frozen=True, gc=False, tag="refusal_unmarked", kw_only=True):
    """A refusal without a mark."""


class AnchorMoved(SignalBase, frozen=True, gc=False, tag="anchor_moved", kw_only=True):
    """The latest inbound message changed."""

    channel: ChannelRef
    message: MessageId


class AnchorCommitLate(SignalBase, frozen=True, gc=False, tag="anchor_commit_late", kw_only=True):
    """An acceptance came after a newer message; the newer one stays."""

    event_id: str


class RewindQueued(OfTurn, frozen=True, gc=False, tag="rewind_queued", kw_only=True):
    """The newest exchange is to be removed and the agent run again."""

    cause: str
    attempt: int


class DuplicateInbound(SignalBase, frozen=True, gc=False, tag="duplicate_inbound", kw_only=True):
    """The same occurrence again; nothing changed."""

    event_id: str | None = None


class SpeechUnrouted(OfTurn, frozen=True, gc=False, tag="speech_unrouted", kw_only=True):
    """Plain speech with no channel: not sent, never moved to the last one used."""


class SpeechArchived(OfTurn, frozen=True, gc=False, tag="speech_archived", kw_only=True):
    """Plain speech that `speech.prose` keeps in the archive."""


class StopTextSuppressed(OfTurn, frozen=True, gc=False, tag="stop_text_suppressed", kw_only=True):
    """A differing Stop text stayed unsent, because a final reply was delivered."""

    stop_length: int
    reply_length: int


class LimitReached(OfTurn, frozen=True, gc=False, tag="limit_reached", kw_only=True):
    """A bound of `[limits]` decided."""

    limit: str


class SetAside(SignalBase, frozen=True, gc=False, tag="set_aside", kw_only=True):
    """A step raised; the event was undone and is never applied."""

    error: str
    seq: int = 0


class DuplicateTurn(OfTurn, frozen=True, gc=False, tag="duplicate_turn", kw_only=True):
    """A turn that is or was one; ignored."""


class ReceiptTextDiffers(OfDelivery, frozen=True, gc=False, tag="receipt_text_differs", kw_only=True):
    """A delivery with a receipt came again with another text; the old one stands."""


class DigestDiffers(SignalBase, frozen=True, gc=False, tag="digest_differs", kw_only=True):
    """A replay decided otherwise than was recorded; told, never emitted."""

    seq: int


class Recovered(SignalBase, frozen=True, gc=False, tag="recovered", kw_only=True):
    """What a restart found."""

    events: int
    chats: int
    open_turns: int
    unknown: int
    down_ms: int


class UnsentTooOld(OfDelivery, frozen=True, gc=False, tag="unsent_too_old", kw_only=True):
    """An unsent answer older than `recovery.max_age_ms` was not sent."""


class SettlementContradicts(OfDelivery, frozen=True, gc=False, tag="settlement_contradicts", kw_only=True):
    """A settlement says otherwise than what is already known; nothing is sent."""


class ReactionFailed(OfDelivery, frozen=True, gc=False, tag="reaction_failed", kw_only=True):
    """The mark could not be put; no second target is tried."""


class UnstickRefused(SignalBase, frozen=True, gc=False, tag="unstick_refused", kw_only=True):
    """The rewind loop cannot be forced now."""


Signal = (
    InputAcked
    | InputSeen
    | InputDropped
    | InputSuperseded
    | InputUnconfirmed
    | FoldSuspected
    | InputCancelled
    | FoldReplyAttributed
    | LateReplyCorrelated
    | OrphanReplyUnattributed
    | PreviewTurnMismatch
    | PreviewUnattributed
    | ReplyReplayed
    | ReplyJoined
    | ReplyRejected
    | TurnResolvedByStop
    | StopForeign
    | StopUnattributed
    | StopGraceCancelled
    | QuietFinalize
    | CeilingResolved
    | TurnDeliveryResolved
    | ConsumedAckFallbackRescued
    | InterimOnlyFinalRescued
    | FailedReplyRescued
    | FinalizationWaited
    | DeliveryUnknown
    | QuoteReserved
    | QuoteSpent
    | QuoteReleased
    | RefusalMarked
    | RefusalUnmarked
    | AnchorMoved
    | AnchorCommitLate
    | RewindQueued
    | DuplicateInbound
    | SpeechUnrouted
    | SpeechArchived
    | StopTextSuppressed
    | LimitReached
    | SetAside
    | DuplicateTurn
    | ReceiptTextDiffers
    | DigestDiffers
    | Recovered
    | UnsentTooOld
    | SettlementContradicts
    | ReactionFailed
    | UnstickRefused
)
"""Whatever was decided, and why."""
