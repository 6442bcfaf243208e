"""A transcript lived through: turns, deliveries, rebuilds, merges, compactions, rotations and forks in any order."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from tests.transcript.build import answer, call, custom, message, result, text, twin, user
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.transcript import Append, Delivered, Receipt, Record, Route, Store, Utterance, Voice, prompt_view
from turnkeeper.engine.transcript.lines import Fields

HERE = Route("telegram", "bot", "100")
WORDS = st.sampled_from(["yes", "no", "one two", "one", "two"])


class TranscriptMachine(RuleBasedStateMachine):
    """Keeps beside the store what must be true of it."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.store = Store("s1")
        self.number = 0
        self.users: list[str] = []
        """User entries that the prompt must show, in order."""
        self.sent: dict[str, bool] = {}
        """Keys that this lineage delivered."""

    def fresh(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}{self.number}"

    @rule(words=st.sampled_from(["hello", "", "again"]))
    def say(self, words: str) -> None:
        self.users.append(self.fresh("u"))
        self.store.add(user(self.users[-1], words))

    @rule(words=WORDS, bare=st.booleans())
    def reply(self, words: str, bare: bool) -> None:
        self.store.add((twin if bare else answer)(self.fresh("a"), words))

    @rule(answered=st.booleans())
    def use_a_tool(self, answered: bool) -> None:
        name = self.fresh("c")
        self.store.add(call(self.fresh("t"), name, "one"))
        if answered:
            self.store.add(result(self.fresh("o"), name))

    @rule()
    def keep_state(self) -> None:
        self.store.add(custom(self.fresh("x")))

    @rule(target=keys, words=WORDS)
    def deliver(self, words: str) -> str:
        key = self.fresh("k")
        assert self.store.append(Delivered(Record(key, route=HERE), words)).verdict is Append.APPENDED
        self.sent[key] = True
        return key

    @rule(key=keys, words=WORDS)
    def deliver_again(self, key: str, words: str) -> None:
        before = len(self.store)
        done = self.store.append(Delivered(Record(key, route=HERE), words))
        if key in self.sent:
            assert done.verdict in {Append.SAME, Append.SAME_TOLD}
            assert len(self.store) == before
        else:
            assert done.verdict is Append.APPENDED
            self.sent[key] = True

    @rule(words=WORDS)
    def deliver_without_a_key(self, words: str) -> None:
        before = self.store.receipts
        self.store.append(Delivered(Record(""), words))
        assert self.store.receipts == before + 1

    @rule()
    def rebuild(self) -> None:
        view, written = self.store.view(), self.store.export()
        self.store.rebuild()
        assert (self.store.view(), self.store.export()) == (view, written)

    @precondition(lambda self: self.store.export())
    @rule(data=st.data())
    def merge_a_stripped_copy(self, data: st.DataObject) -> None:
        """What a rebuild elsewhere made of one of our entries."""
        raw = data.draw(st.sampled_from(self.store.export()))
        inner = raw.get("message")
        copy: Fields = dict(raw)
        if isinstance(inner, dict):
            copy["message"] = {"role": inner["role"], "content": inner["content"], "usage": {"input": 5}}
            copy.pop("receipt", None)
        leaf, size = self.store.leaf, len(self.store)
        self.store.merge([copy, message(self.fresh("b"), "assistant", text("aside"))])
        assert (self.store.leaf, len(self.store)) == (leaf, size + 1)

    @precondition(lambda self: self.store.view().ids)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        asked = data.draw(st.sampled_from(self.store.view().ids))
        before = [item.id for item in self.store.path() if isinstance(item, Utterance)]
        done = self.store.compact(asked, "so far")
        kept = before[before.index(done.first_kept) :] if done.first_kept else []
        assert asked in kept
        self.users = [ident for ident in self.users if ident in kept]

    @rule()
    def rotate(self) -> None:
        before = self.store.view().ids
        self.store.rotate(self.fresh("s"))
        assert self.store.view().ids == before

    @rule()
    def fork(self) -> None:
        before = self.store.view().ids
        self.store = self.store.fork(self.fresh("s"))
        assert self.store.view().ids == before
        assert [key for key in self.sent if self.store.lookup(key).standing is not Standing.NONE] == []
        self.sent = {}

    @invariant()
    def every_delivery_is_found(self) -> None:
        assert [key for key in self.sent if self.store.lookup(key).standing is not Standing.SENT] == []

    @invariant()
    def the_leaf_is_no_receipt(self) -> None:
        assert self.store.leaf is None or not isinstance(self.store.get(self.store.leaf), Receipt)

    @invariant()
    def the_prompt_shows_the_users_and_no_receipt(self) -> None:
        view = self.store.view()
        shown = [item for item in view.messages if isinstance(item, Utterance) and item.voice is Voice.USER]
        assert [item.id for item in shown] == self.users
        assert not [item for item in view.messages if isinstance(item, Receipt)]
        assert prompt_view(view.messages).messages is view.messages


TestTranscript = TranscriptMachine.TestCase
TestTranscript.settings = settings(deadline=None, max_examples=80, stateful_step_count=30)
