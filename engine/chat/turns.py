"""How a turn begins and goes on: its ledger entry, its pair, where its plain speech lands (RULES-answers d, g).

The pair is decided here, once, at the first start: given by the host, or merged from the pending wakes, which
are consumed either way. Where plain speech lands follows the locus order, and the agent is told when that is
another place than the one last announced.
"""

from __future__ import annotations

import msgspec

from turnkeeper.engine import commands
from turnkeeper.engine.chat import calls, directory, ledger, wakes
from turnkeeper.engine.chat.answer_tables import LOCUS, NOTICE, Locus, LocusFacts, Noticed, NoticeFacts
from turnkeeper.engine.chat.state import ChatState, Input, TurnEntry, open_turns
from turnkeeper.engine.events import InputFolded, InputSeen, SpeechMoved, TurnContinued, TurnOpened
from turnkeeper.engine.ids import ChannelRef, turn_at
from turnkeeper.engine.protocol import Answers, Draft, Opened, Quote, Read, SpeechShifted
from turnkeeper.engine.signals import DuplicateTurn, LimitReached

__all__ = ["on_continued", "on_folded", "on_opened", "on_seen", "on_speech_moved"]

replace = msgspec.structs.replace
ChatDraft = Draft[ChatState]


def on_opened(draft: ChatDraft, event: TurnOpened) -> None:
    """Open a turn, unless its id is or was one, or too many are open."""
    state = draft.state
    if _was_turn(state, event.turn_id):
        draft.signal(DuplicateTurn(chat=state.chat, turn_id=event.turn_id))
        return
    if len(open_turns(state)) >= draft.at.policy.limits.open_turns:
        draft.signal(LimitReached(chat=state.chat, turn_id=event.turn_id, limit="open_turns"))
        return
    subagent = event.source == "subagent" or state.ephemeral
    source = "subagent" if subagent else event.source
    known = state.ledger.get(event.turn_id)
    answers, addressed = (Answers(), False) if subagent else _answers(draft, event, known)
    speech = _locus(draft, answers.channel, subagent=subagent)
    entry = TurnEntry(
        event.turn_id,
        source,
        state.tick,
        answers=answers,
        speech=speech,
        policy=draft.at.policy,
        addressed=addressed,
    )
    draft.set(turns={**draft.state.turns, event.turn_id: entry})
    for place in (answers.channel, speech):
        if place is not None:
            directory.usable(draft, place)
    if not subagent:
        draft.set(last_refused=None, read_tick=draft.state.tick)
    _write_primary(draft, event.turn_id, source, answers, known)
    quote = known.quote if known is not None else Quote()
    given = draft.state.ledger[event.turn_id].quote
    if given.state != "free":
        # An input that left the ledger and comes back as a turn is not quoted again.
        quote = given
    draft.tell(turn_at(state.chat, event.turn_id), Opened(source, answers, speech, quote, addressed))
    if known is not None and known.seen:
        draft.tell(turn_at(state.chat, event.turn_id), Read())
    _announce(draft, event.turn_id, speech, subagent=subagent)


def _was_turn(state: ChatState, turn_id: str) -> bool:
    known = state.ledger.get(turn_id)
    stone = state.tombstones.get(turn_id)
    return turn_id in state.turns or (known is not None and known.is_turn) or (stone is not None and stone.is_turn)


def _answers(draft: ChatDraft, event: TurnOpened, known: Input | None) -> tuple[Answers, bool]:
    """Decide the pair: given by the host or its ledgered input, else merged from the wakes; all consume them (M8).

    Bare ids are resolved here, once, before they are compared (E22b).
    """
    given = Answers(event.channel, event.message, event.participant)
    if given.channel is None and given.message is None and known is not None:
        # An input that is handed over again is for the message it was for.
        given = Answers(known.channel, known.message, known.participant)
    state = draft.state
    taken = tuple(replace(wake, channel=directory.resolved(state, wake.channel)) for wake in wakes.consume(draft))
    if given.channel is None and given.message is None:
        return wakes.merge(draft, taken)
    answers = replace(given, channel=directory.resolved(state, given.channel))
    own = [wake for wake in taken if wakes.is_for(wake, answers.channel, answers.message)]
    if answers.participant is None:
        known_author = next((wake.participant for wake in own if wake.participant is not None), None)
        answers = replace(answers, participant=known_author)
    # Addressed by its own wake, if there is one, else by any that it consumes.
    return answers, any(wake.addressed for wake in own or taken)


def _locus(draft: ChatDraft, trigger: ChannelRef | None, *, subagent: bool) -> ChannelRef | None:
    """Decide where plain speech lands (table LOCUS); a bare id is no place."""
    state, speech = draft.state, draft.at.policy.speech
    home = directory.known_place(state, state.home)
    woken = trigger is not None and trigger.server is not None
    configured = directory.known_place(state, ChannelRef.parse(speech.home)) if speech.home is not None else None
    latest = speech.fallback == "latest-inbound" and state.anchor is not None
    decision = LOCUS.decide(LocusFacts(subagent, home is not None, woken, configured is not None, latest))
    draft.decided(decision)
    match decision.verdict:
        case Locus.HOME:
            return home
        case Locus.TRIGGER:
            return trigger
        case Locus.CONFIGURED:
            return configured
        case Locus.ANCHOR:
            return state.anchor.channel if state.anchor is not None else None
        case Locus.NONE:
            return None


def _write_primary(draft: ChatDraft, turn_id: str, source: str, answers: Answers, known: Input | None) -> None:
    """Ledger the turn's own input; a fold that became a turn keeps what is known of it."""
    tick, now = draft.state.tick, draft.at.now_ms
    if known is None:
        entry = Input(
            turn_id,
            source,
            now,
            tick,
            channel=answers.channel,
            message=answers.message,
            participant=answers.participant,
            is_turn=True,
        )
    else:
        state = known.state if known.state in {"seen", "answering"} else "written"
        entry = replace(
            known,
            source=source,
            written_ms=now,
            tick=tick,
            channel=answers.channel,
            message=answers.message,
            participant=answers.participant,
            into=None,
            state=state,
            merged="",
            is_turn=True,
            check_ms=None,
        )
    ledger.write(draft, entry)


def _announce(draft: ChatDraft, turn_id: str, speech: ChannelRef | None, *, subagent: bool) -> None:
    """Tell the agent that its speech moved, if it did (table NOTICE)."""
    state = draft.state
    plain = draft.at.policy.speech.prose in {"locus", "hybrid"} and not subagent
    facts = NoticeFacts(
        plain,
        state.ever_announced,
        state.announced == speech,
        speech is not None,
        _inbound_only(state, speech),
    )
    _tell_locus(draft, turn_id, speech, facts)


def _inbound_only(state: ChatState, speech: ChannelRef | None) -> bool:
    known = directory.lookup(state, speech)
    return known is not None and known.inbound_only


def _tell_locus(draft: ChatDraft, turn_id: str, speech: ChannelRef | None, facts: NoticeFacts) -> None:
    """Record what is announced, and write the notice if there is one, in exactly these words."""
    decision = NOTICE.decide(facts)
    draft.decided(decision)
    chat, where = draft.state.chat, "" if speech is None else speech.id
    match decision.verdict:
        case Noticed.SILENT:
            return
        case Noticed.RECORD:
            pass
        case Noticed.NO_CHANNEL:
            draft.command(commands.Notice(chat=chat, turn_id=turn_id, kind="none", text=NO_CHANNEL, channel=speech))
        case Noticed.CONVERSATION:
            known = directory.lookup(draft.state, speech)
            note = "" if known is None else known.note
            text = f"[routing] The conversation is now in #{where} {note}".rstrip()
            draft.command(commands.Notice(chat=chat, turn_id=turn_id, kind="conversation", text=text, channel=speech))
        case Noticed.LANDS:
            text = f"[routing] Your plain speech now lands in #{where}"
            draft.command(commands.Notice(chat=chat, turn_id=turn_id, kind="lands", text=text, channel=speech))
    draft.set(announced=speech, ever_announced=True)


NO_CHANNEL = (
    "[routing] Your plain speech currently has no channel — it stays in your archive. "
    "Use an explicit send tool to reach a channel."
)


def on_continued(draft: ChatDraft, event: TurnContinued) -> None:
    """Another start of the same turn: the pair stays, the pending wakes were read in it (M4)."""
    turn = draft.state.turns.get(event.turn_id)
    calls.broadcast_active(draft, "turn_continued")
    if turn is None or turn.status != "open":
        return
    draft.set(turns={**draft.state.turns, turn.turn_id: replace(turn, tick=draft.state.tick)})
    if turn.source != "subagent":
        draft.set(read_tick=draft.state.tick)
        wakes.consume(draft)


def on_folded(draft: ChatDraft, event: InputFolded) -> None:
    """Ledger a follow-up that was injected into the running turn; an id that is known counts only if it was dropped."""
    state = draft.state
    known = state.ledger.get(event.turn_id)
    if _was_turn(state, event.turn_id) or (known is not None and known.state != "dropped"):
        draft.signal(DuplicateTurn(chat=state.chat, turn_id=event.turn_id, why="the id is ledgered already"))
        return
    into = event.into if event.into is not None else _live_turn(state)
    host = None if into is None else state.turns.get(into)
    waits = host is not None and host.status != "settled"
    check_ms = None if waits else draft.at.now_ms + draft.at.policy.timers.drop_confirm_ms
    entry = Input(
        event.turn_id,
        event.source,
        draft.at.now_ms,
        state.tick,
        channel=directory.resolved(state, event.channel),
        message=event.message,
        participant=event.participant,
        into=into if host is not None else None,
        quote=known.quote if known is not None else Quote(),
        check_ms=check_ms,
    )
    ledger.write(draft, entry)
    if not state.quiesced:
        # It was handed to the running turn: a wake left behind would be what a later turn answers (M8).
        wakes.withdraw(draft, event.channel, event.message)


def _live_turn(state: ChatState) -> str | None:
    """Return the open turn last started or continued; a subagent's takes no follow-up."""
    mine = [turn for turn in open_turns(state) if turn.source != "subagent"]
    return max(mine, key=_started).turn_id if mine else None


def _started(turn: TurnEntry) -> int:
    return turn.tick


def on_seen(draft: ChatDraft, event: InputSeen) -> None:
    """The agent provably read this input."""
    calls.broadcast_active(draft, "input_seen")
    ledger.see(draft, event.turn_id)


def on_speech_moved(draft: ChatDraft, event: SpeechMoved) -> None:
    """Plain speech of an open turn lands elsewhere; what it answers does not change (D4, D5, G7, G8)."""
    state = draft.state
    turn = state.turns.get(event.turn_id)
    if turn is None or turn.status != "open" or turn.source == "subagent":
        return
    place = directory.known_place(state, event.channel)
    policy = turn.policy if turn.policy is not None else draft.at.policy
    plain = policy.speech.prose in {"locus", "hybrid"}
    same = place == turn.speech == state.announced
    draft.set(turns={**state.turns, turn.turn_id: replace(turn, speech=place)})
    draft.tell(turn_at(state.chat, turn.turn_id), SpeechShifted(place))
    if event.cause == "re_pin":
        facts = NoticeFacts(
            plain, announced=True, same=same, somewhere=place is not None, inbound_only=_inbound_only(state, place)
        )
        _tell_locus(draft, turn.turn_id, place, facts)
    elif plain:
        # The tool that opened the channel says so itself.
        draft.set(announced=place, ever_announced=True)
