"""The store as a library: what it promises to a gateway with many threads, and what it refuses."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.transcript.build import answer, call, custom, mirror, ours, result, text, twin, user
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.transcript.appending import Append, Delivered
from turnkeeper.engine.transcript.entries import Receipt, Summary, Utterance
from turnkeeper.engine.transcript.faults import MergeConflict, RouteDiffers, UnknownEntry, UnknownSession
from turnkeeper.engine.transcript.lines import Fields
from turnkeeper.engine.transcript.lookup import AFTER_CRASH, CrashFacts, Recovery
from turnkeeper.engine.transcript.records import Record, Route, logical_key
from turnkeeper.engine.transcript.store import Sessions, Store

HERE = Route("telegram", "bot", "100")
THERE = Route("telegram", "bot", "200")


def filled(*entries: Fields) -> Store:
    return Store.load({"type": "session", "version": 3, "id": "s1"}, entries)


def test_a_hundred_threads_append_one_key_and_one_entry_is_made() -> None:
    """R14: exactly one wins, the others get its entry."""
    store = filled(user("u1"), answer("a1"))
    barrier = Barrier(100)

    def deliver(_: int) -> tuple[Append, str]:
        barrier.wait()
        done = store.append(Delivered(Record("k1", route=HERE), "answer"))
        return done.verdict, done.entry.id

    with ThreadPoolExecutor(100) as pool:
        done = list(pool.map(deliver, range(100)))
    assert sorted(verdict for verdict, _ in done) == [Append.APPENDED, *[Append.SAME] * 99]
    assert len({ident for _, ident in done}) == 1
    assert (len(store), store.receipts) == (3, 1)


def test_threads_of_every_kind_leave_the_store_whole() -> None:
    """Appends, views, rebuilds and look-ups at once: nothing raises, nothing is lost."""
    store = filled(user("u1"), answer("a1"))

    def work(number: int) -> None:
        store.append(Delivered(Record(f"k{number}", route=HERE), "answer"))
        if number % 10 == 0:
            store.rebuild()
        assert store.view().ids == ["u1", "a1"]
        assert store.lookup(f"k{number}").standing is Standing.SENT

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(200)))
    assert store.receipts == 200


def test_a_different_text_under_a_known_key_is_told() -> None:
    """R8: the old entry, and the host learns that the text is another."""
    store = filled(user("u1"), answer("a1"))
    first = store.append(Delivered(Record("k1", route=HERE), "answer"))
    again = store.append(Delivered(Record(" k1 ".strip(), route=HERE), "other"))
    assert again.verdict is Append.SAME_TOLD
    assert again.entry is first.entry
    assert str(again.verdict) == "receipt_text_differs"


def test_another_route_under_a_known_key_is_refused_and_changes_nothing() -> None:
    store = filled(user("u1"))
    store.append(Delivered(Record("k1", route=HERE)))
    before = store.export()
    with pytest.raises(RouteDiffers, match="a key stands for one route"):
        store.append(Delivered(Record("k1", route=THERE)))
    assert store.export() == before


def test_a_receipt_costs_nothing_and_never_becomes_the_leaf() -> None:
    """R4, R11: zero usage, a side entry below the answer."""
    store = filled(user("u1"), answer("a1"))
    receipt = store.append(Delivered(Record("k1", "a1", route=HERE), "answer", "r1")).entry
    assert store.leaf == "a1"
    assert receipt.raw["parentId"] == "a1"
    message = receipt.raw["message"]
    assert isinstance(message, dict)
    assert isinstance(message["usage"], dict)
    assert not any(message["usage"].values())
    store.add(user("u2"))
    assert store.view().ids == ["u1", "a1", "u2"]


def test_receipt_ids_derive_from_the_key_and_avoid_taken_ones() -> None:
    store = filled(user("u1"), custom("receipt:k1"))
    assert store.append(Delivered(Record("k1"))).entry.id == "receipt:k1#2"
    assert store.append(Delivered(Record(""))).entry.id == "receipt:3"


def test_a_host_may_append_its_own_form_of_a_receipt() -> None:
    store = filled(user("u1"), answer("a1"))
    raw = {**mirror("m1", "answer", "k1"), "x-own": 1}
    read = store.append(Delivered(Record("k1"), "answer", "m1", raw)).entry
    assert (read.id, read.raw["x-own"]) == ("m1", 1)


def test_an_unkeyed_receipt_is_folded_only_beside_its_original() -> None:
    """R9: recorded on the original, found by route and answer; not across a tool result or under another name."""
    store = filled(user("u1"), answer("a1"), custom("x1"), mirror("r0"))
    folded = store.append(Delivered(Record("", "a1", (7,), HERE), "answer\n"))
    assert folded.verdict is Append.FOLDED
    assert isinstance(folded.entry, Utterance)
    assert (store.receipts, store.lookup(route=HERE, answer="a1").standing) == (2, Standing.SENT)
    assert store.append(Delivered(Record("", "a9"), "answer")).verdict is Append.APPENDED
    assert store.append(Delivered(Record(""))).verdict is Append.APPENDED
    store.add(call("t1", "c1"))
    store.add(result("o1", "c1"))
    assert store.append(Delivered(Record(""), "answer")).verdict is Append.APPENDED


def test_a_folded_receipt_survives_rebuild_fork_and_rotation() -> None:
    store = filled(user("u1"), answer("a1"))
    store.append(Delivered(Record("", "a1", route=HERE, platform_ids=(5,)), "answer"))
    store.rebuild()
    store.add(user("u2"))
    store.compact("u2", "so far")
    store.rotate("s2")
    assert store.lookup(route=HERE, answer="a1").standing is Standing.SENT
    assert store.echo_of(HERE, "5") is not None
    assert store.view().ids == ["u2"]


def test_what_was_unknown_takes_the_state_that_is_known_later() -> None:
    """R8 and A8: one entry; sent never becomes unknown again."""
    store = filled(user("u1"))
    store.append(Delivered(Record("k1", route=HERE, state=Standing.UNKNOWN)))
    assert store.lookup("k1").standing is Standing.UNKNOWN
    store.append(Delivered(Record("k1", route=HERE, platform_ids=(9,))))
    store.append(Delivered(Record("k1", route=HERE, state=Standing.UNKNOWN)))
    assert store.lookup("k1").standing is Standing.SENT
    assert store.echo_of(HERE, 9) is not None
    store.rebuild()
    assert (store.lookup("k1").standing, len(store)) == (Standing.SENT, 2)


def test_parts_of_an_answer_are_asked_one_by_one() -> None:
    """R41: only the missing parts are sent again."""
    store = filled(user("u1"), answer("a1", "one two three"))
    for i in (1, 3):
        store.append(Delivered(Record(f"k{i}", "a1", route=HERE, part=(i, 3)), "x"))
    assert store.missing_parts(HERE, "a1", 3) == [2]
    assert store.missing_parts(HERE, "a1", 2) == []
    assert store.missing_parts(THERE, "a1", 2) == [1, 2]
    assert store.lookup(route=HERE, answer="a1", part=(1, 3)).entry is store.get("receipt:k1")


def test_keys_depend_on_what_was_answered_where_and_on_nothing_else() -> None:
    """R10: the same identity gives the same key, any difference another one."""
    one = logical_key([6406, "6407"], HERE, "a1", (1, 2))
    assert one == logical_key(["6406", 6407], HERE, "a1", (1, 2))
    others = [
        logical_key([6406], HERE, "a1", (1, 2)),
        logical_key([6406, 6407], THERE, "a1", (1, 2)),
        logical_key([6406, 6407], HERE, "a2", (1, 2)),
        logical_key([6406, 6407], HERE, "a1", (2, 2)),
        logical_key([], HERE, "a1", (1, 2)),
        logical_key([6406, 6407], Route("telegram", "bot", None, "100"), "a1", (1, 2)),
    ]
    assert len({one, *others}) == 7


def test_the_echo_of_an_own_message_is_recognised_in_its_channel_only() -> None:
    """R45: platform ids are unique only inside a channel."""
    route = {"channel": "telegram", "account": "bot", "chat": "100"}
    store = filled(user("u1"), ours("r1", "k1", route=route, platform_ids=[9001]))
    found = store.echo_of(HERE, "9001")
    assert found is not None
    assert found.id == "r1"
    assert store.echo_of(THERE, 9001) is None
    assert store.echo_of(HERE, 9002) is None


def test_one_key_under_two_ids_keeps_the_earlier_and_the_place_of_the_other() -> None:
    """R31: platform ids of both are known; what hangs below the other is still where it was, after a reload too."""
    store = filled(user("u1"), answer("a1"), ours("r1", "k1", platform_ids=[1]))
    branch = [
        {**answer("b1", "aside"), "parentId": "u1"},
        {**ours("r9", "k1", platform_ids=[2]), "parentId": "b1"},
        {**user("b2", "aside too"), "parentId": "r9"},
    ]
    done = store.merge(branch)
    assert (done.added, done.aliased, done.fused) == (["b1", "b2"], ["r9"], [])
    assert store.merge(branch).aliased == []
    for _ in range(2):
        assert store.get("r9") is store.get("r1")
        assert store.echo_of(Route(), 2) is store.get("r1")
        assert store.view().ids == ["u1", "a1"]
        store.rebuild()
    store.add({"type": "leaf", "id": "l1", "targetId": "b2"})
    assert store.view().ids == ["u1", "b1", "b2"]


def test_a_merge_moves_no_leaf_and_skips_leaf_entries() -> None:
    """R32; the new entries keep their own order."""
    store = filled(user("u1"), answer("a1"))
    branch: list[Fields] = [answer("b1", "aside"), user("b2"), {"type": "leaf", "id": "l9", "targetId": "b2"}]
    done = store.merge(branch)
    assert (done.added, done.skipped, store.leaf) == (["b1", "b2"], ["l9"], "a1")
    store.add(user("u2"))
    assert store.view().ids == ["u1", "a1", "u2"]
    store.add({"type": "leaf", "id": "l1", "targetId": "b2"})
    assert store.view().ids == ["u1", "a1", "b1", "b2"]


def test_a_conflict_merges_nothing() -> None:
    store = filled(user("u1"), answer("a1"))
    before = store.export()
    with pytest.raises(MergeConflict, match="'a1'"):
        store.merge([answer("b1"), answer("a1", "other")])
    with pytest.raises(MergeConflict, match="'b1'"):
        store.merge([answer("b1"), answer("b1", "other")])
    assert store.export() == before


def test_the_fuller_body_and_the_readable_mark_win() -> None:
    """R31: content, marks, usage, unknown fields; in both orders."""
    bare = twin("r1")
    full = mirror("r1", key="k1")
    odd = {**twin("r1"), "openclawDeliveryMirror": "?", "x-extra": 1}
    thought: Fields = {
        "type": "message", "id": "a1",
        "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, *text("answer")]},
    }  # fmt: skip
    for copies in ([bare, full, odd], [odd, bare, full]):
        store = filled(user("u1"), answer("a1"))
        for copy in [*copies, thought]:
            store.merge([copy])
        receipt, original = store.get("r1"), store.get("a1")
        assert isinstance(receipt, Receipt)
        assert receipt.record.key == "k1"
        assert receipt.raw["x-extra"] == 1
        assert isinstance(original, Utterance)
        assert original.own
        assert isinstance(original.content, list)
        assert len(original.content) == 2


def test_a_compaction_keeps_receipts_findable_and_takes_the_view_as_input() -> None:
    """R33: the summariser reads one copy of everything (report oc#85031)."""
    store = filled(user("u1"), answer("a1"), custom("x1"), twin("t1"), mirror("r1", key="k1"), user("u2"))
    assert store.compaction_input("u2").ids == ["u1", "a1"]
    done = store.compact("u2", "so far", entry_id="cut", tokens_before=7)
    assert (done.entry.id, done.first_kept, done.entry.raw["tokensBefore"]) == ("cut", "u2", 7)
    assert store.compaction_input("u2").ids == []
    first = store.view().messages[0]
    assert isinstance(first, Summary)
    assert first.text == "so far"
    with pytest.raises(UnknownEntry, match="name one that the view shows"):
        store.compact("a1", "again")


def test_a_compaction_that_keeps_nothing() -> None:
    store = filled(user("u1"), answer("a1"), mirror("r1", key="k1"))
    assert store.compaction_input("r1").ids == ["u1", "a1"]
    done = store.compact("r1", "all")
    assert (done.first_kept, store.view().ids) == (None, [])
    store.add(user("u2"))
    assert store.view().ids == ["u2"]


def test_a_rotation_forgets_the_oldest_receipts_beyond_the_horizon_and_says_so() -> None:
    store = filled(*[one for n in range(5) for one in (user(f"u{n}"), answer(f"a{n}"), mirror(f"r{n}", key=f"k{n}"))])
    store.compact("u4", "so far")
    done = store.rotate("s2", receipts_max=3)
    assert (done.dropped, done.forgotten, store.session) == (9, 1, "s2")
    assert [store.lookup(f"k{n}").standing for n in (0, 1, 3, 4)] == ["none", "sent", "sent", "sent"]
    assert store.view().ids == ["u4", "a4"]
    store.rebuild()
    assert store.view().ids == ["u4", "a4"]


def test_a_rotation_keeps_what_may_be_a_receipt_findable_and_out_of_the_prompt() -> None:
    """R6, R33: its key still says unknown, so nothing is sent blindly."""
    unsure = {**twin("t1"), "idempotencyKey": "k1", "openclawDeliveryMirror": {"kind": "of a later version"}}
    store = filled(user("u1"), answer("a1"), unsure, {**user("u2"), "parentId": "t1"}, answer("a2", "b"))
    store.compact("u2", "so far")
    store.rotate("s2")
    assert store.lookup("k1").standing is Standing.UNKNOWN
    assert store.view().ids == ["u2", "a2"]
    store.rebuild()
    assert store.view().ids == ["u2", "a2"]


def test_a_fork_knows_nothing_as_delivered_even_after_a_rotation() -> None:
    """R35: history is history in every later file of the fork."""
    origin = filled(user("u1"), answer("a1"), mirror("r1", key="k1"), twin("t1"))
    fork = origin.fork("s2")
    assert fork.lookup("k1").standing is Standing.NONE
    assert fork.lookup(text="answer").standing is Standing.NONE
    assert fork.header["parentSession"] == "s1"
    fork.append(Delivered(Record("k2"), "answer"))
    fork.add(user("u2"))
    fork.compact("u2", "so far")
    fork.rotate("s3")
    assert [fork.lookup(key).standing for key in ("k1", "k2")] == ["none", "sent"]
    assert origin.lookup("k1").standing is Standing.SENT


def test_a_receipt_goes_to_the_session_that_produced_the_answer() -> None:
    """R12: found by an earlier name; an unknown one is an error, never a dropped receipt."""
    sessions = Sessions()
    store = sessions.open(filled(user("u1"), answer("a1"), user("u2")))
    assert sessions.open(Store("s1")) is store
    store.compact("u2", "so far")
    sessions.rotate("s1", "s2")
    fork = sessions.fork("s2", "s3")
    sessions.store("s1").append(Delivered(Record("k1"), "answer"))
    assert sessions.store("s2").lookup("k1").standing is Standing.SENT
    assert fork.lookup("k1").standing is Standing.NONE
    with pytest.raises(UnknownSession, match="'s9' is not open here"):
        sessions.store("s9")


@pytest.mark.parametrize(
    ("receipt", "started", "adapter", "verdict"),
    [
        (False, False, True, Recovery.SEND),
        (False, True, True, Recovery.ASK),
        (False, True, False, Recovery.TELL_UNKNOWN),
        (True, True, False, Recovery.NOTHING),
    ],
)
def test_the_four_points_of_a_crash(receipt: bool, started: bool, adapter: bool, verdict: Recovery) -> None:
    """R40, L9: what each point permits."""
    assert AFTER_CRASH.decide(CrashFacts(receipt, started, adapter)).verdict is verdict


@pytest.mark.parametrize("adapter", [True, False])
@pytest.mark.parametrize("crash_after", ["intent", "started", "sent", "receipt"])
def test_a_crash_at_any_point_never_shows_an_answer_twice_and_never_loses_it_silently(
    crash_after: str, adapter: bool
) -> None:
    """L9: 0 or 1 visible, never 2; 0 only if somebody was told."""
    shown, told = _deliver_with_crash(crash_after, adapter=adapter)
    assert shown <= 1
    assert shown == 1 or told


def _deliver_with_crash(crash_after: str, *, adapter: bool) -> tuple[int, bool]:
    """Run the sequence of R40 against a platform that counts, crash once, and recover by the table."""
    store = filled(user("u1"), answer("a1"))
    platform: list[str] = []
    started = told = False
    for point in ("intent", "started", "sent", "receipt"):
        started = started or point == "started"
        if point == "sent":
            platform.append("k1")
        elif point == "receipt":
            store.append(Delivered(Record("k1"), "answer"))
        if point == crash_after:
            break
    store.rebuild()
    recorded = store.lookup("k1").standing is Standing.SENT
    match AFTER_CRASH.decide(CrashFacts(recorded, started, adapter)).verdict:
        case Recovery.SEND:
            platform.append("k1")
        case Recovery.ASK if "k1" not in platform:
            platform.append("k1")
        case Recovery.TELL_UNKNOWN:
            store.append(Delivered(Record("k1", state=Standing.UNKNOWN), "answer"))
            told = store.lookup("k1").standing is Standing.UNKNOWN
        case _:
            pass
    return len(platform), told


def test_a_later_receipt_of_a_key_tells_what_an_earlier_one_did_not_know() -> None:
    """A file may hold both: the first is the entry, the second knows the end."""
    store = filled(ours("r1", "k1", state="unknown"), ours("r2", "k1"), ours("r3", "k1", state="unknown"))
    answer_ = store.lookup("k1")
    assert (answer_.standing, answer_.entry) == (Standing.SENT, store.get("r1"))
    assert store.append(Delivered(Record("k1"))).entry is store.get("r1")


def test_what_was_unknown_may_turn_out_suppressed() -> None:
    store = filled(user("u1"))
    store.append(Delivered(Record("k1", state=Standing.UNKNOWN)))
    store.append(Delivered(Record("k1", state=Standing.SUPPRESSED, reason="stopped")))
    assert store.lookup("k1").standing is Standing.SUPPRESSED


def test_aliases_that_a_file_claims_take_no_entrys_name() -> None:
    """A hostile or damaged record cannot hide an entry, nor lead a path in circles."""
    liar = {
        **ours("r1", "k1"),
        "aliases": [{"id": "a1"}, {"id": "g1", "parentId": "g2"}, {"id": "g2", "parentId": "g1"}, 5, {}],
    }
    store = filled(user("u1"), answer("a1"), liar, {**user("u2"), "parentId": "g1"})
    assert store.get("a1") is store.entries[1]
    assert store.view().ids == ["u2"]
    assert store.add(answer("g1", "something else")) is store.get("r1")
    rooted = {**ours("r1", "k1"), "aliases": [{"id": "g1", "parentId": None}]}
    assert filled(user("u1"), rooted, {**user("u2"), "parentId": "g1"}).view().ids == ["u2"]


def test_receipts_that_hang_in_a_ring_are_still_only_receipts() -> None:
    """A merge may make a receipt of an entry that hung below its own receipt."""
    store = filled({**twin("r1"), "parentId": "r2"}, {**mirror("r2"), "parentId": "r1"})
    store.merge([mirror("r1", key="k1")])
    assert (store.leaf, store.view().ids, store.receipts) == (None, [], 2)
    store.add(user("u1"))
    assert store.view().ids == ["u1"]
