"""The store: a session's durable entries, every receipt findable (RULES-transcript 2.1, 2.2, 2.4, 2.5).

One store is one lineage: a session and what it becomes when a compaction rotates it to a new file. Keys are
unique in a lineage; a fork begins another one and takes the receipts along as history only (R35). The store
is a library with one lock: every method may be called from any thread, and each is atomic. Entries, paths
and views that it hands out are never changed afterwards.

Nothing here sends, wakes or schedules (R34), and nothing reads a clock: ids and times come from the caller,
or derive from what they identify.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import msgspec

from turnkeeper.engine.config import TranscriptRules
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.transcript.appending import Appended, Delivered, append
from turnkeeper.engine.transcript.compaction import Compacted, Rotated, compact, path_before, rotate
from turnkeeper.engine.transcript.content import Redact
from turnkeeper.engine.transcript.entries import Entry, Item
from turnkeeper.engine.transcript.faults import UnknownSession
from turnkeeper.engine.transcript.lines import Fields, dumps, loads
from turnkeeper.engine.transcript.lookup import STANDINGS, Found, LookupFacts, found_key
from turnkeeper.engine.transcript.merge import Merged, merge
from turnkeeper.engine.transcript.records import Id, Route
from turnkeeper.engine.transcript.shelf import Shelf, session_header
from turnkeeper.engine.transcript.view import PromptView, prompt_view

__all__ = ["RECEIPTS_MAX", "Answer", "Sessions", "Store"]

RECEIPTS_MAX = 65536
"""Receipts that a rotation keeps of what left memory: the dedupe horizon, `limits.receipts` by default."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What a look-up says; only `Standing.NONE` permits a blind send (R39)."""

    standing: Standing
    row: str
    why: str
    entry: Entry | None = None
    """The entry that records it, where there is one."""


class Store:
    """One lineage of one session."""

    def __init__(self, session: str = "", header: Fields | None = None) -> None:
        self._lock = threading.RLock()
        self._shelf = Shelf(header if header is not None else session_header(session))

    @classmethod
    def load(cls, header: Fields, entries: Iterable[Fields]) -> Store:
        """Fill a store with a file's entries, in file order.

        Raises:
            DecodeError, MergeConflict: an entry cannot be read, or contradicts an earlier one of its id.

        """
        return cls.of(Shelf.load(header, entries))

    @classmethod
    def of(cls, shelf: Shelf) -> Store:
        """Put a lock around a shelf; the caller lets go of it."""
        store = cls()
        store._shelf = shelf
        return store

    # What is in it

    @property
    def session(self) -> str:
        """The session whose file this is now."""
        return self._shelf.session

    @property
    def header(self) -> Fields:
        """The first line of the session's file."""
        return dict(self._shelf.header)

    @property
    def entries(self) -> list[Entry]:
        """The entries, in order of arrival."""
        with self._lock:
            return list(self._shelf.tree.entries)

    @property
    def receipts(self) -> int:
        """How many receipts it holds, folded ones included."""
        return self._shelf.receipts

    @property
    def leaf(self) -> str | None:
        """The entry that the next turn continues; never a receipt (R11)."""
        with self._lock:
            return self._shelf.tree.leaf_id

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._shelf.tree)

    def get(self, entry_id: str) -> Entry | None:
        """Return an entry by its id, or the one it became an alias of."""
        with self._lock:
            return self._shelf.tree.get(entry_id)

    def export(self) -> list[Fields]:
        """Return the entries as JSON objects, as a file holds them below its header (R3)."""
        with self._lock:
            return [entry.raw for entry in self._shelf.tree.entries]

    # What comes in

    def add(self, raw: Fields) -> Entry:
        """Take in an entry as it stands in a file, marks and unknown fields included.

        Raises:
            DecodeError: it cannot be read.
            MergeConflict: it has the id of another message.

        """
        with self._lock:
            return self._shelf.add(raw)

    def append(self, delivered: Delivered) -> Appended:
        """Record a delivery. Exactly one of many concurrent calls with one key makes an entry (R14).

        Raises:
            RouteDiffers: the key is recorded with another route (R8).

        """
        with self._lock:
            return append(self._shelf, delivered)

    def merge(self, entries: Sequence[Fields]) -> Merged:
        """Unite a side branch with what is here; the leaf does not move (R31, R32).

        Raises:
            DecodeError, MergeConflict: see `merge.merge`; nothing was changed.

        """
        with self._lock:
            return merge(self._shelf, entries)

    # What is made of it

    def rebuild(self) -> None:
        """Read everything again from its written form, as a restart does: nothing is added, lost or changed (R30)."""
        with self._lock:
            self._shelf = self._shelf.reread(lambda raw: loads(dumps(raw)))

    def compact(self, first_kept: str, summary: str, *, entry_id: str = "", tokens_before: int = 0) -> Compacted:
        """Replace what lies before an entry by a summary; receipts stay findable (R33).

        Raises:
            UnknownEntry: no such entry in the conversation.

        """
        with self._lock:
            return compact(self._shelf, first_kept, summary, entry_id, tokens_before)

    def compaction_input(self, first_kept: str, rules: TranscriptRules | None = None) -> PromptView:
        """Return what a summary of everything before `first_kept` is to be made from: a prompt view (R33).

        Raises:
            UnknownEntry: no such entry in the conversation.

        """
        with self._lock:
            path = path_before(self._shelf, first_kept)
        return prompt_view(path, rules)

    def rotate(self, session: str, receipts_max: int = RECEIPTS_MAX) -> Rotated:
        """Begin a new file of this lineage; of what a compaction replaced only receipts stay (R13)."""
        with self._lock:
            self._shelf, done = rotate(self._shelf, session, receipts_max)
            return done

    def fork(self, session: str) -> Store:
        """Copy everything into a new lineage, where the receipts prove nothing (R35)."""
        with self._lock:
            return Store.of(self._shelf.forked(session))

    # What is asked

    def path(self) -> list[Item]:
        """Return the conversation, before anything is dropped (R15 step 1)."""
        with self._lock:
            return self._shelf.tree.path()

    def view(self, rules: TranscriptRules | None = None, *, redact: Redact | None = None) -> PromptView:
        """Return what of the conversation the model reads."""
        return prompt_view(self.path(), rules, redact=redact)

    def lookup(
        self,
        key: str = "",
        *,
        route: Route | None = None,
        answer: str = "",
        part: tuple[int, int] = (1, 1),
        text: str = "",
    ) -> Answer:
        """Say whether an answer went out: by key, else by (route, answer, part), else perhaps by text (R38, R39).

        Args:
            key: the receipt's idempotency key.
            route: where it would go; with `answer` it asks for a part, with `text` it narrows.
            answer: the answer's entry id.
            part: part i of n.
            text: for transcripts whose marks are gone: the newest turn only, and never more than `maybe`.

        """
        with self._lock:
            shelf = self._shelf
            filed = shelf.index.by_key(key)
            facts = LookupFacts(
                by_key=found_key(filed),
                by_part=shelf.index.found_part(route, answer, part) if route is not None else Found.NOTHING,
                by_text=bool(text) and shelf.says(text, route),
            )
            if filed is None and route is not None:
                filed = shelf.index.by_part(route, answer, part)
            made = STANDINGS.decide(facts)
            entry = None if filed is None else shelf.tree.get(filed.entry_id)
        return Answer(made.verdict, made.row, made.why, entry)

    def missing_parts(self, route: Route, answer: str, parts: int) -> list[int]:
        """Return the parts of a split answer that no receipt records: only those are sent again (R41)."""
        with self._lock:
            found = self._shelf.index.found_part
            return [i for i in range(1, parts + 1) if found(route, answer, (i, parts)) is Found.NOTHING]

    def echo_of(self, route: Route, platform_id: Id) -> Entry | None:
        """Return the receipt of our own message that came back as inbound; such a message is never admitted (R45)."""
        with self._lock:
            ident = self._shelf.index.echo_of(route, platform_id)
            return None if ident is None else self._shelf.tree.get(ident)


class Sessions:
    """The stores of many sessions, by every name they had.

    A receipt belongs to the session that produced its answer, whatever the chat is bound to by now; a session
    that rotated is found by its old name, and one that nobody opened is an error, never a dropped receipt (R12).
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._stores: dict[str, Store] = {}

    def open(self, store: Store) -> Store:
        """Take a store in under its session's name."""
        with self._lock:
            return self._stores.setdefault(store.session, store)

    def store(self, session: str) -> Store:
        """Return the store of a session, by its present or an earlier name.

        Raises:
            UnknownSession: nobody opened it.

        """
        with self._lock:
            store = self._stores.get(session)
        if store is None:
            raise UnknownSession(f"session {session!r} is not open here; open its store, then record the delivery")
        return store

    def rotate(self, session: str, new: str, receipts_max: int = RECEIPTS_MAX) -> Rotated:
        """Rotate a session's file; the store answers to both names."""
        with self._lock:
            store = self.store(session)
            done = store.rotate(new, receipts_max)
            self._stores[new] = store
            return done

    def fork(self, session: str, new: str) -> Store:
        """Fork a session; the fork answers to the new name only."""
        with self._lock:
            store = self.store(session).fork(new)
            self._stores[new] = store
            return store
