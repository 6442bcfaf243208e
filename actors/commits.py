"""Frames on their way through the journal: appended without waiting, released strictly in the order of commit."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from turnkeeper.actors.log import log
from turnkeeper.actors.snapshots import Forgetful
from turnkeeper.engine.errors import JournalError
from turnkeeper.engine.journal import Journal, encode_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnkeeper.actors.release import Sequenced
    from turnkeeper.actors.sequencer import Entry

__all__ = ["FRAMES_MAX", "Commits"]

FRAMES_MAX = 64
"""Frames that wait for their commit; then the ingress waits too."""


class Batch:
    """A frame that waits for its commit."""

    __slots__ = ("committed", "done", "then")

    def __init__(self, done: list[Sequenced]) -> None:
        self.done = deque(done)
        self.committed = False
        self.then: list[Callable[[], None]] = []
        """What waits for everything up to here to be released."""


class Commits:
    """The commits of one shard. Used on its thread only, but for the journal's report.

    Args:
        journal: where frames go.
        here: runs something on the shard's thread: at once if this is it, else between two events.
        release: tells everybody what became of a record.

    """

    def __init__(
        self, journal: Journal, here: Callable[[Callable[[], None]], None], release: Callable[[Sequenced], None]
    ) -> None:
        self.failure: JournalError | None = None
        """A commit failed: nothing is released any more."""
        self.dropped = False
        """Killed: likewise, and nothing is appended."""
        self._journal = journal
        self.kept = not isinstance(journal, Forgetful)
        """Somebody may read the frames."""
        self._here = here
        self._release = release
        self._batches: deque[Batch] = deque()

    def __len__(self) -> int:
        """Count the frames that wait."""
        return len(self._batches)

    def append(self, done: list[Sequenced]) -> None:
        """Append the records of what was run as one frame."""
        batch = Batch(done)
        self._batches.append(batch)
        if self.dropped or self.failure is not None:
            return
        frame = encode_frame([sequenced.record for sequenced in done]) if self.kept else b""
        try:
            self._journal.append(frame, partial(self._committed, batch))
        except Exception as error:  # noqa: BLE001 - a journal that raises did not commit
            self._fail(error)

    def after(self, act: Callable[[], None]) -> None:
        """Do something once everything that was appended so far is released."""
        if self._batches:
            self._batches[-1].then.append(act)
        else:
            act()

    def close(self) -> None:
        """Have the journal commit what was appended, and release it."""
        try:
            self._journal.close()
        except Exception as error:  # noqa: BLE001 - whatever a journal raises is a failed commit
            self._fail(error)

    def unreleased(self) -> Iterator[Entry]:
        """Yield the entries that were run and never released."""
        return (sequenced.entry for batch in self._batches for sequenced in batch.done)

    def _committed(self, batch: Batch, error: BaseException | None) -> None:
        """A commit returned, on any thread."""
        self._here(partial(self._settle, batch, error))

    def _settle(self, batch: Batch, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
            return
        batch.committed = True
        while self._batches and self._batches[0].committed:
            first = self._batches[0]
            while first.done:
                if self.dropped or self.failure is not None:
                    return
                self._release(first.done[0])
                first.done.popleft()
            self._batches.popleft()
            for act in first.then:
                act()

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = JournalError(
                f"the journal could not commit ({error}); the engine stopped: restart it to recover"
            )
            self.failure.__cause__ = error
            log.critical("a commit failed: %s", type(error).__name__, extra={"error": type(error).__name__})
