"""What holds for every transcript (RULES-transcript, the properties after the vectors)."""

from itertools import pairwise

import hypothesis.strategies as st
from hypothesis import given, settings

from tests.transcript.build import patient, sessions
from turnkeeper.engine.config import TranscriptRules
from turnkeeper.engine.transcript.content import shown, squashed
from turnkeeper.engine.transcript.entries import Boundary, Item, Receipt, Summary, Utterance, Voice
from turnkeeper.engine.transcript.lines import Fields, canonical, dumps, loads, pack, unpack
from turnkeeper.engine.transcript.openclaw import pack_session, read_session, unpack_session, write_session
from turnkeeper.engine.transcript.store import Store
from turnkeeper.engine.transcript.view import prompt_view

RULES = st.builds(
    TranscriptRules,
    fallback=st.sampled_from(["cover", "identical", "text"]),
    standalone=st.sampled_from(["hide", "context"]),
)


def filled(entries: list[Fields]) -> Store:
    return Store.load({"type": "session", "version": 3, "id": "s1"}, entries)


def keys(store: Store) -> list[str]:
    """Every key that a receipt of the store answers to."""
    found = {entry.record.key for entry in store.entries if isinstance(entry, Receipt)}
    return sorted(key for key in found if key and store.lookup(key).standing != "none")


def must_stay(item: Utterance) -> bool:
    return item.voice is not Voice.ASSISTANT or bool(item.calls)


def places(messages: list[Utterance]) -> dict[str, int]:
    """How many of the messages that must stay come before each."""
    found, before = {}, 0
    for item in messages:
        found[item.id] = before
        before += must_stay(item)
    return found


def said(path: list[Item]) -> list[Utterance]:
    return [item for item in path if isinstance(item, Utterance)]


@patient
@given(sessions(), RULES)
def test_no_receipt_is_shown_and_nothing_else_is_lost(entries: list[Fields], rules: TranscriptRules) -> None:
    """Users, tool calls, tool results and rendered notes are all there, in order; no receipt is."""
    store = filled(entries)
    path = store.path()
    view = store.view(rules)
    assert not [item for item in view.messages if isinstance(item, Receipt)]
    kept = said(list(view.messages))

    assert [item.id for item in kept if must_stay(item)] == [item.id for item in said(path) if must_stay(item)]
    assert all(places(said(path))[ident] == place for ident, place in places(kept).items())
    assert sorted(item.id for item in said(path)) == sorted(
        [*view.ids, *(gone.entry.id for gone in view.dropped if isinstance(gone.entry, Utterance))]
    )


@patient
@given(sessions(), RULES)
def test_a_view_is_idempotent_and_changes_nothing(entries: list[Fields], rules: TranscriptRules) -> None:
    """view(view(x)) is view(x), as the same list; the input is what it was."""
    store = filled(entries)
    path = store.path()
    before = [canonical(item.raw) for item in path if not isinstance(item, str) and hasattr(item, "raw")]
    first = prompt_view(path, rules)
    second = prompt_view(first.messages, rules)
    assert second.messages is first.messages
    assert not second.dropped
    assert [canonical(item.raw) for item in path if hasattr(item, "raw")] == before
    assert prompt_view(path, rules) == first


@patient
@given(sessions(), RULES)
def test_what_is_dropped_is_shown_right_before(entries: list[Fields], rules: TranscriptRules) -> None:
    """A message goes only if a kept answer of the same stretch shows all of it, word for word."""
    store = filled(entries)
    path, view = store.path(), store.view(rules)
    gone = {one.entry.id: one for one in view.dropped if isinstance(one.entry, Utterance)}
    stretch, stretches = 0, {}
    for item in path:
        breaks = isinstance(item, Summary | Boundary) or (isinstance(item, Utterance) and must_stay(item))
        stretch += breaks
        stretches[item.id] = stretch
    kept = [item for item in view.messages if isinstance(item, Utterance) and not must_stay(item)]
    for ident, one in gone.items():
        near = [shown(item.content) for item in kept if stretches[item.id] == stretches[ident]]
        sight = shown(one.entry.content)
        assert any(squashed(sight.text) in squashed(other.text) for other in near)
        if one.reason != "e2":
            assert sight in near
        if rules.fallback == "identical" or (isinstance(one.entry, Utterance) and one.entry.own):
            assert one.reason == "e0"


@patient
@given(sessions())
def test_every_original_is_shown(entries: list[Fields]) -> None:
    """As many assistant messages stay as there are different originals of a turn (the model named)."""
    store = filled(entries)
    turn, originals = 0, set()
    for item in store.path():
        if isinstance(item, Utterance) and item.voice is Voice.USER:
            turn += 1
        elif isinstance(item, Utterance) and item.own:
            content = item.content if isinstance(item.content, list) else [{"type": "text", "text": item.content}]
            originals.add((turn, canonical(content)))
    kept = [item for item in store.view().messages if isinstance(item, Utterance) and item.voice is Voice.ASSISTANT]
    assert len(kept) >= len(originals)


@patient
@given(sessions(), RULES)
def test_later_entries_do_not_change_what_the_last_user_turn_follows(
    entries: list[Fields], rules: TranscriptRules
) -> None:
    """Everything before the last user entry is byte for byte what an earlier prompt held (R26)."""
    path = filled(entries).path()
    whole = prompt_view(path, rules).messages
    for position, item in enumerate(path):
        if isinstance(item, Utterance) and item.voice is Voice.USER:
            earlier = prompt_view(path[: position + 1], rules).messages
            assert whole[: len(earlier)] == earlier


@patient
@given(sessions())
def test_rebuild_changes_nothing(entries: list[Fields]) -> None:
    """A rebuild, once or more, keeps every entry, key and view (R30)."""
    store = filled(entries)
    view, known, written = store.view(), keys(store), store.export()
    for _ in range(2):
        store.rebuild()
        assert store.export() == written
        assert keys(store) == known
        assert store.view() == view


@patient
@given(sessions(one_key_each=True), st.data())
def test_merges_do_not_depend_on_order_or_number(entries: list[Fields], data: st.DataObject) -> None:
    """Stripped copies merged in any order, and twice, give one store, with every mark (R31)."""
    copies = [{"parentId": None, **data.draw(stripped(entry))} for entry in entries for _ in range(2)]
    whole = [{"parentId": None, **entry} for entry in entries]
    outcomes: list[dict[str, bytes]] = []
    for _ in range(2):
        store = filled(entries[:3])
        leaf = store.leaf
        for one in data.draw(st.permutations([*copies, *whole])):
            store.merge([one])
        once = store.export()
        store.merge(copies)
        assert store.export() == once
        assert store.leaf == leaf or isinstance(store.get(leaf or ""), Receipt)
        outcomes.append({entry.id: canonical(bare(entry.raw)) for entry in store.entries})
    assert outcomes[0] == outcomes[1]
    merged = filled(entries[:3])
    merged.merge([*copies, *whole])
    assert keys(merged) == keys(filled(entries))


def bare(raw: Fields) -> Fields:
    """An entry without what says where it stands."""
    return {name: value for name, value in raw.items() if name not in {"parentId", "appendMode"}}


def stripped(entry: Fields) -> st.SearchStrategy[Fields]:
    """Copies of an entry without some of its metadata, its usage perhaps rewritten."""
    message = entry.get("message")
    if not isinstance(message, dict):
        return st.just(entry)
    names = [name for name in message if name not in {"role", "content"}]

    def strip(drawn: tuple[list[str], bool, bool]) -> Fields:
        gone, no_receipt, rewritten = drawn
        left = {name: value for name, value in message.items() if name not in gone}
        if rewritten:
            left["usage"] = {"input": 7}
        rest = {name: value for name, value in entry.items() if name != "receipt" or not no_receipt}
        return {**rest, "message": left}

    drop = st.lists(st.sampled_from(names), unique=True) if names else st.just([])
    return st.tuples(drop, st.booleans(), st.booleans()).map(strip)


@patient
@given(sessions(), st.integers(1, 14))
def test_compaction_loses_no_key(entries: list[Fields], first: int) -> None:
    """Keys survive a compaction and the rotation after it; the cut shows no half of a tool pair."""
    store = filled(entries)
    known = keys(store)
    shown_ids = [item.id for item in store.path() if not isinstance(item, Summary)]
    if f"e{first}" not in shown_ids:
        return
    done = store.compact(f"e{first}", "summary", entry_id="cut")
    assert keys(store) == known
    assert not isinstance(store.get(done.first_kept or ""), Receipt)
    view = store.view()
    store.rotate("s2")
    assert keys(store) == known
    assert store.view().ids == view.ids


@patient
@given(sessions())
def test_files_keep_every_field(entries: list[Fields]) -> None:
    """What is written, as JSON lines or msgpack, is what was read, unknown fields included (R3)."""
    store = filled(entries)
    again = read_session(write_session(store))
    assert not [line for line in again.damaged if line.line]
    assert again.store.export() == store.export() == unpack_session(pack_session(store)).export()
    assert again.store.view() == store.view()


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@patient
@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_codecs_are_exact(value: Fields) -> None:
    """Big integers, floats and half surrogate pairs come back as they were."""
    assert loads(dumps(value)) == value
    assert unpack(pack(value)) == value
    assert canonical(loads(dumps(value))) == canonical(value)


@settings(patient, max_examples=30)
@given(st.lists(sessions(max_size=6), max_size=3))
def test_the_leaf_is_never_a_receipt(parts: list[list[Fields]]) -> None:
    store = Store("s1")
    for number, part in enumerate(parts):
        for entry in part:
            store.add({**entry, "id": f"{number}-{entry['id']}"})
            assert store.leaf is None or not isinstance(store.get(store.leaf), Receipt)
    for one, other in pairwise(store.path()):
        assert one is not other
