"""The content fallback: drops what the message before already shows (RULES-transcript R18–R23).

It walks with one message in hand, the *prior*: the last kept assistant message with nothing between that
resets (R19). The next assistant message is measured against it (R21) and the table `REPEATS` decides. Chunks
(E2) need more than one message: while the following messages continue the prior's text they wait in a run;
when they have covered it they are dropped together. When they fail to, the first of them is kept, becomes the
prior, and the others are looked at again. A prior takes up at most its own length before that, so the walk
stays linear in the text.
"""

from __future__ import annotations

from collections import deque

import msgspec

from turnkeeper.engine.table import Decision
from turnkeeper.engine.transcript.content import Redact, Shown, content_bytes, shown, squashed
from turnkeeper.engine.transcript.entries import ContextLine, Prompted, Receipt, Utterance
from turnkeeper.engine.transcript.repeats import (
    REPEATS,
    Fate,
    Likeness,
    Reach,
    RepeatFacts,
    Speech,
    likeness,
    outranks,
    speech_of,
)

__all__ = ["Dropped", "Fallback"]


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """A message that is not in the prompt, and why."""

    entry: Utterance | Receipt
    reason: str
    """`receipt`, `standalone`, `e0`, `e1` or `e2`."""
    row: str
    """The row that decided, and its why."""
    why: str
    shown_by: str | None
    """The kept message that shows the same."""
    size_bytes: int


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """An assistant message without tool calls, measured."""

    message: Utterance
    sight: Shown
    speech: Speech


class Fallback:
    """One walk over the messages of a path; fills `kept` and `dropped`."""

    def __init__(self, reach: Reach, redact: Redact | None) -> None:
        self.kept: list[Prompted] = []
        self.dropped: list[Dropped] = []
        self._reach: Reach = reach
        self._redact = redact
        self._prior: Utterance | Candidate | None = None
        """Measured only when another assistant message follows: most are followed by a user."""
        self._prior_at = 0
        self._target = ""
        self._covered = 0
        self._display = 0
        """Displayed blocks that the run has shown so far."""
        self._last: Candidate | None = None
        """The newest chunk of the run."""
        self._run: list[Candidate | ContextLine] = []
        """Chunks of the prior so far, from the first, with the transparent items between; not yet kept."""

    def resets(self, item: Prompted) -> None:
        """Keep an item that ends adjacency."""
        self.end()
        self._prior = None
        self.kept.append(item)

    def transparent(self, item: ContextLine) -> None:
        """Keep an item that does not."""
        (self._run or self.kept).append(item)

    def assistant(self, message: Utterance) -> None:
        """Keep or drop an assistant message."""
        if message.calls:
            self.resets(message)  # R20: never dropped, and nothing is dropped against it
        elif self._prior is None:
            self._take_up(message)
        else:
            self._settle(deque([self._measured(message)]))

    def end(self) -> None:
        """Keep what still waits in a run that nothing will complete."""
        while self._run:
            self._settle(self._broken_run())

    def _settle(self, queue: deque[Candidate | ContextLine]) -> None:
        """Place these items in order."""
        while queue:
            item = queue.popleft()
            if isinstance(item, ContextLine):
                self.transparent(item)
            elif not self._run:
                self._place(item)
            elif not self._continues(item):
                rest = self._broken_run()
                queue.appendleft(item)
                queue.extendleft(reversed(rest))

    def _broken_run(self) -> deque[Candidate | ContextLine]:
        """Keep the first chunk, now the prior, and return what came after it."""
        first, *rest = self._run
        self._run = []
        assert isinstance(first, Candidate)
        self._take_up(first)
        return deque(rest)

    def _place(self, item: Candidate) -> None:
        """Compare an item with the prior: drop it, keep it, or begin a run with it."""
        prior = self._measured_prior()
        made = self._decide(item, likeness((prior.message, prior.sight), (item.message, item.sight), self._redact))
        if made.verdict != "kept":
            self._drop_or_swap(prior, item, made)
        elif item.speech is Speech.EMPTY:
            self.kept.append(item.message)
        elif self._begins(prior, item):
            self._covered = self._display = 0
            self._chunk(item)
        else:
            self._take_up(item)

    def _begins(self, prior: Candidate, item: Candidate) -> bool:
        """Tell whether an item may be the first of several chunks of the prior."""
        if self._reach != "cover" or item.message.own or prior.speech is not Speech.ANSWER:
            return False
        text = squashed(item.sight.text)
        self._target = self._target or squashed(prior.sight.text)
        return 0 < len(text) < len(self._target) and self._target.startswith(text)

    def _continues(self, item: Candidate) -> bool:
        """Take an item into the run: the next chunk, a twin of the last one, or nothing visible."""
        if item.speech is Speech.EMPTY:
            self._run.append(item)
            return True
        text = squashed(item.sight.text)
        if text and not item.message.own and self._target.startswith(text, self._covered):
            if self._covered + len(text) < len(self._target):
                self._chunk(item)
                return True
            if self._completes(item):
                return True
        last = self._last
        assert last is not None
        made = self._decide(item, likeness((last.message, last.sight), (item.message, item.sight), self._redact))
        if made.verdict == "kept":
            return False
        self._drop(item, made, last)
        return True

    def _chunk(self, item: Candidate) -> None:
        """Take the next chunk into the run."""
        self._run.append(item)
        self._last = item
        self._covered += len(squashed(item.sight.text))
        self._display += len(item.sight.display)

    def _completes(self, item: Candidate) -> bool:
        """Drop the whole run if it shows all that the prior shows; what stood between is kept."""
        prior = self._measured_prior()
        if self._display + len(item.sight.display) != len(prior.sight.display):
            return False
        run = [*self._run, item]
        chunks = [one for one in run if isinstance(one, Candidate) and one.speech is Speech.ANSWER]
        display = sorted(block for chunk in chunks for block in chunk.sight.display)
        if tuple(display) != prior.sight.display:
            return False
        for one in run:
            if isinstance(one, ContextLine):
                self.kept.append(one)
            elif one.speech is Speech.EMPTY:
                self.kept.append(one.message)
            else:
                self._drop(one, self._decide(one, Likeness.COVERED), prior)
        self._run = []
        return True

    def _decide(self, item: Candidate, like: Likeness) -> Decision[Fate]:
        return REPEATS.decide(
            RepeatFacts(prior=True, speech=item.speech, likeness=like, own=item.message.own, reach=self._reach)
        )

    def _drop_or_swap(self, prior: Candidate, item: Candidate, made: Decision[Fate]) -> None:
        """Keep the earlier position and the body with provenance (R22)."""
        if outranks(item.message, prior.message):
            self.kept[self._prior_at] = item.message
            self._prior, self._target = item, ""
            self._drop(prior, made, item)
        else:
            self._drop(item, made, prior)

    def _drop(self, item: Candidate, made: Decision[Fate], by: Candidate) -> None:
        size_bytes = content_bytes(item.message.content)
        self.dropped.append(Dropped(item.message, made.verdict, made.row, made.why, by.message.id, size_bytes))

    def _take_up(self, item: Utterance | Candidate) -> None:
        """Keep a message and hold it as the prior."""
        self._prior, self._target = item, ""
        self._prior_at = len(self.kept)
        self.kept.append(item if isinstance(item, Utterance) else item.message)

    def _measured(self, message: Utterance) -> Candidate:
        sight = shown(message.content, self._redact)
        return Candidate(message, sight, speech_of(message, sight))

    def _measured_prior(self) -> Candidate:
        assert self._prior is not None
        if isinstance(self._prior, Utterance):
            self._prior = self._measured(self._prior)
        return self._prior
