"""The mutation checklist of what a turn answers (RULES-answers, section 4), each item as a patch of the running code.

`MUTANTS[name]()` is a context manager: inside, the engine has that fault. Each must break a scenario.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from turnkeeper.engine import events
from turnkeeper.engine.chat import inbound, rewinds, turns, wakes
from turnkeeper.engine.chat.step import HANDLERS as CHAT
from turnkeeper.engine.ids import channel_at, delivery_key, same_message, turn_at
from turnkeeper.engine.protocol import Answers, Opened, Quote, ShowMark
from turnkeeper.engine.turn import refusal
from turnkeeper.engine.turn.tables import REFUSAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["MUTANTS"]

replace = msgspec.structs.replace
MUTANTS: dict[str, Callable[[], AbstractContextManager[None]]] = {}
Draft = Any
MARKERS = {"reaction", "reaction_removed", "deletion", "notice"}


def mutant(name: str) -> Callable[[Callable[[], Iterator[None]]], Callable[[], Iterator[None]]]:
    """Enter a generator that patches, yields and undoes."""

    def enter(patch: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
        MUTANTS[name] = contextmanager(patch)
        return patch

    return enter


@contextmanager
def handled(event: type, handler: Callable[[Draft, Any], None]) -> Iterator[None]:
    """Let the chat handle an event otherwise."""
    before = CHAT[event]
    CHAT[event] = handler
    try:
        yield
    finally:
        CHAT[event] = before


@contextmanager
def patched(owner: object, name: str, value: object) -> Iterator[None]:
    """Give a module another function."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def is_marker(event: events.Inbound) -> bool:
    """Say whether it only reports on something."""
    return event.kind in MARKERS or (event.kind == "edit" and not event.first_view)


# ---------------------------------------------------------------- marks and loci


@mutant("mark falls back to anchor")
def _mark_anchor() -> Iterator[None]:
    honest = CHAT[events.Refused]

    def refused(draft: Draft, event: events.Refused) -> None:
        turn, anchor = draft.state.turns.get(event.turn_id), draft.state.anchor
        honest(draft, event)
        if turn is not None and turn.source != "subagent" and turn.answers.message is None and anchor is not None:
            show_mark(draft, event.turn_id, anchor)

    with handled(events.Refused, refused):
        yield


def show_mark(draft: Draft, turn_id: str, at: Any) -> None:
    """Mark the anchor."""
    told = ShowMark(delivery_key("react", draft.state.chat, turn_id), at.message, "refused")
    draft.tell(channel_at(draft.state.chat, at.channel), told)


@contextmanager
def anchored_locus(wanted: Callable[[Any], bool]) -> Iterator[None]:
    """Let the record name the anchor's channel where the pair has none."""
    honest, honest_locus = CHAT[events.Refused], refusal._locus
    seen: list[Any] = [None]

    def refused(draft: Draft, event: events.Refused) -> None:
        turn, anchor = draft.state.turns.get(event.turn_id), draft.state.anchor
        seen[0] = anchor.channel if turn is not None and wanted(turn) and anchor is not None else None
        honest(draft, event)

    with (
        handled(events.Refused, refused),
        patched(refusal, "_locus", lambda state: honest_locus(state) or seen[0]),
    ):
        yield


@mutant("locus falls back to anchor")
def _locus_anchor() -> Iterator[None]:
    with anchored_locus(lambda turn: turn.source != "subagent"):
        yield


@mutant("subagent guard off for mark")
def _subagent_mark() -> Iterator[None]:
    honest = CHAT[events.Refused]

    def refused(draft: Draft, event: events.Refused) -> None:
        turn, anchor = draft.state.turns.get(event.turn_id), draft.state.anchor
        honest(draft, event)
        if turn is not None and turn.source == "subagent" and anchor is not None:
            show_mark(draft, event.turn_id, anchor)

    with handled(events.Refused, refused):
        yield


@mutant("subagent guard off for locus")
def _subagent_locus() -> Iterator[None]:
    with anchored_locus(lambda turn: turn.source == "subagent"):
        yield


# ---------------------------------------------------------------- the anchor


@contextmanager
def anchoring(change: Callable[[events.Inbound], events.Inbound | None]) -> Iterator[None]:
    """Let the anchor see another event, or none."""
    honest = inbound._anchor

    def anchor(draft: Draft, event: events.Inbound) -> None:
        seen = change(event)
        if seen is not None:
            honest(draft, seen)

    with patched(inbound, "_anchor", anchor):
        yield


@mutant("push doesn't note")
def _push_no_note() -> Iterator[None]:
    with anchoring(lambda event: None if event.lane == "push" and not event.event_id else event):
        yield


@mutant("push doesn't park")
def _push_no_park() -> Iterator[None]:
    with anchoring(lambda event: None if event.lane == "push" and event.event_id else event):
        yield


@mutant("render notes")
def _render_notes() -> Iterator[None]:
    with anchoring(lambda event: replace(event, delivery="live")):
        yield


@contextmanager
def accepting(lane: str, change: Callable[[Draft, events.Accepted], bool]) -> Iterator[None]:
    """Change what an acceptance of this lane meets; False: it is not handled at all."""
    honest_in, honest = CHAT[events.Inbound], CHAT[events.Accepted]
    mine: set[str] = set()

    def came(draft: Draft, event: events.Inbound) -> None:
        if event.event_id:
            (mine.add if event.lane == lane else mine.discard)(event.event_id)
        honest_in(draft, event)

    def accepted(draft: Draft, event: events.Accepted) -> None:
        if event.event_id not in mine or change(draft, event):
            honest(draft, event)

    with handled(events.Inbound, came), handled(events.Accepted, accepted):
        yield


@mutant("push acceptance doesn't commit")
def _push_no_commit() -> Iterator[None]:
    with accepting("push", lambda *_: False):
        yield


def forget_newer(draft: Draft, event: events.Accepted) -> bool:
    """Let the commit see no newer anchor, if there is something to commit."""
    if event.ok and inbound.event_key(event.server, event.event_id) in draft.state.parked:
        draft.set(anchor=None)
    return True


@mutant("commit ignores seq (channel lane)")
def _seq_channel() -> Iterator[None]:
    with accepting("channel", forget_newer):
        yield


@mutant("commit ignores seq (push lane)")
def _seq_push() -> Iterator[None]:
    with accepting("push", forget_newer):
        yield


@mutant('parked key joined with ":"')
def _joined_key() -> Iterator[None]:
    with patched(inbound, "event_key", lambda server, event_id: f"{server}:{event_id}"):
        yield


# ---------------------------------------------------------------- wakes


@contextmanager
def waking(change: Callable[[Draft, events.Inbound, Any], Any]) -> Iterator[None]:
    """Change the wake that a delivery made."""
    honest = inbound._wake

    def wake(draft: Draft, event: events.Inbound) -> None:
        before = draft.state.wakes
        honest(draft, event)
        made = draft.state.wakes
        if made and made is not before:
            draft.set(wakes=(*made[:-1], change(draft, event, made[-1])))

    with patched(inbound, "_wake", wake):
        yield


@mutant("marker wake keeps id")
def _marker_id() -> Iterator[None]:
    with waking(lambda _, event, wake: replace(wake, message=event.message) if is_marker(event) else wake):
        yield


@mutant("event-id filler used")
def _filler() -> Iterator[None]:
    def filled(event: events.Inbound) -> events.Inbound:
        return replace(event, message=event.event_id) if event.message is None else event

    def wake(_: Draft, event: events.Inbound, made: Any) -> Any:
        return replace(made, message=filled(event).message) if event.message is None else made

    with waking(wake), anchoring(filled):
        yield


@mutant("fork-correction id removed")
def _fork_edit() -> Iterator[None]:
    def wake(draft: Draft, event: events.Inbound, made: Any) -> Any:
        return replace(made, message=None) if event.first_view and draft.state.home is not None else made

    with waking(wake):
        yield


@mutant("batch wake keeps id")
def _batch_id() -> Iterator[None]:
    honest_in, honest = CHAT[events.Inbound], CHAT[events.Wake]
    last: list[Any] = [None]

    def came(draft: Draft, event: events.Inbound) -> None:
        last[0] = event.message if event.delivery == "debounced" else last[0]
        honest_in(draft, event)

    def woken(draft: Draft, event: events.Wake) -> None:
        honest(draft, event)
        if event.reason == "batch" and draft.state.wakes:
            draft.set(wakes=(*draft.state.wakes[:-1], replace(draft.state.wakes[-1], message=last[0])))

    with handled(events.Inbound, came), handled(events.Wake, woken):
        yield


@mutant("merge ignores channel")
def _merge_channel() -> Iterator[None]:
    with patched(wakes, "is_for", lambda wake, _, message: same_message(wake.message, message)):
        yield


@mutant("merge keeps first id")
def _merge_first() -> Iterator[None]:
    honest = wakes.merged

    def merged(taken: tuple[Any, ...]) -> wakes.Merged:
        done = honest(taken)
        first = next((wake.message for wake in taken if wake.message is not None), None)
        return replace(done, answers=replace(done.answers, message=first))

    with patched(wakes, "merged", merged):
        yield


@mutant("quiesce key without message")
def _quiesce_key() -> Iterator[None]:
    with patched(wakes, "_key", lambda wake: (wake.reason, wake.addressed, wake.channel)):
        yield


# ---------------------------------------------------------------- the pair


def rewrite_pair(draft: Draft, turn_id: str, answers: Answers) -> None:
    """Change what an open turn answers."""
    turn = draft.state.turns.get(turn_id)
    if turn is None or turn.status != "open":
        return
    draft.set(turns={**draft.state.turns, turn_id: replace(turn, answers=answers)})
    told = Opened(turn.source, answers, turn.speech, Quote(), turn.addressed)
    draft.tell(turn_at(draft.state.chat, turn_id), told)


@mutant("pair re-read at later start")
def _pair_reread() -> Iterator[None]:
    honest = CHAT[events.TurnContinued]

    def continued(draft: Draft, event: events.TurnContinued) -> None:
        pending = tuple(wake for wake in draft.state.wakes if not wake.parked)
        honest(draft, event)
        if pending:
            rewrite_pair(draft, event.turn_id, wakes.merged(pending).answers)

    with handled(events.TurnContinued, continued):
        yield


@contextmanager
def moved_pair(cause: str) -> Iterator[None]:
    """Let what moves the speech move the pair."""

    def moved(draft: Draft, event: events.SpeechMoved) -> None:
        turns.on_speech_moved(draft, event)
        if event.cause == cause:
            rewrite_pair(draft, event.turn_id, Answers(event.channel))

    with handled(events.SpeechMoved, moved):
        yield


@mutant("re-pin writes pair")
def _re_pin() -> Iterator[None]:
    with moved_pair("re_pin"):
        yield


@mutant("channel_open writes pair")
def _channel_open() -> Iterator[None]:
    with moved_pair("channel_open"):
        yield


# ---------------------------------------------------------------- retries


@contextmanager
def retrying(causes: set[str], **changes: object) -> Iterator[None]:
    """Let the retry's wake carry less than the shed turn's pair."""
    honest = rewinds._wake

    def wake(draft: Draft, answers: Answers, cause: Any, attempt: int, *, addressed: bool) -> None:
        carried = replace(answers, **changes) if cause in causes and attempt else answers
        honest(draft, carried, cause, attempt, addressed=addressed)

    with patched(rewinds, "_wake", wake):
        yield


@mutant("retry without channel (auto)")
def _retry_auto() -> Iterator[None]:
    with retrying({"auto_rewind"}, channel=None):
        yield


@mutant("retry without channel (unstick)")
def _retry_unstick() -> Iterator[None]:
    with retrying({"unstick"}, channel=None):
        yield


@mutant("retry without channel (breaker)")
def _retry_breaker() -> Iterator[None]:
    with retrying({"poison_breaker"}, channel=None):
        yield


@mutant("retry without message")
def _retry_message() -> Iterator[None]:
    with retrying({"auto_rewind", "unstick", "poison_breaker"}, message=None):
        yield


# ---------------------------------------------------------------- beyond the checklist


@mutant("retry not addressed")
def _retry_addressed() -> Iterator[None]:
    honest = rewinds._wake

    def wake(draft: Draft, answers: Answers, cause: Any, attempt: int, *, addressed: bool) -> None:
        honest(draft, answers, cause, attempt, addressed=addressed and not attempt)

    with patched(rewinds, "_wake", wake):
        yield


@mutant("parked wakes are consumed")
def _parked_consumed() -> Iterator[None]:
    def consume(draft: Draft) -> tuple[Any, ...]:
        taken = tuple(draft.state.wakes)
        draft.set(wakes=())
        return taken

    with patched(wakes, "consume", consume):
        yield


@mutant("a resend is new")
def _resend_new() -> Iterator[None]:
    with patched(inbound, "_known", lambda *_: None):
        yield


@mutant("a retraction withdraws nothing")
def _retraction() -> Iterator[None]:
    with patched(inbound, "_retract", lambda *_: None):
        yield


@mutant("a replaced create keeps its wake")
def _replaced() -> Iterator[None]:
    with patched(wakes, "withdraw", lambda *_: ()):
        yield


@mutant("the last channel used is the locus")
def _last_used() -> Iterator[None]:
    honest = turns._locus

    def locus(draft: Draft, trigger: Any, *, subagent: bool) -> Any:
        return honest(draft, trigger, subagent=subagent) or draft.state.announced

    with patched(turns, "_locus", locus):
        yield


@mutant("a rewound refusal is marked too")
def _marked_too() -> Iterator[None]:
    with patched(refusal, "REFUSAL", AlwaysMarks()):
        yield


class AlwaysMarks:
    """The table without the row that a rewind handles it."""

    def decide(self, facts: Any) -> Any:
        return HONEST_REFUSAL.decide(replace(facts, rewind=False))


HONEST_REFUSAL = REFUSAL


@mutant("any failure feeds the breaker")
def _breaker() -> Iterator[None]:
    with patched(rewinds, "POISON_STATUS", frozenset({400, 401, 404, 422, 429, 500, 503, 529, None})):
        yield


@mutant("a completion resets nothing")
def _no_reset() -> Iterator[None]:
    with patched(rewinds, "COMPLETIONS", frozenset()):
        yield
