"""The incident, measured: 33 % of the prompts contaminated before, none after, no genuine message lost."""

import pytest

from tests.transcript.contaminated import COMPACTED, PROMPTS, Contaminated, contaminated
from turnkeeper.engine.config import TranscriptRules
from turnkeeper.engine.receipts import Standing
from turnkeeper.engine.transcript.check import check_session, check_trajectory, repeats_itself
from turnkeeper.engine.transcript.openclaw import write_session


@pytest.fixture(scope="module")
def made() -> Contaminated:
    return contaminated()


def test_the_reported_numbers_before_and_none_after(made: Contaminated) -> None:
    report = check_trajectory("t", made.trajectory)
    assert (report.prompts, report.contaminated, report.naive.pairs) == (323, 108, 278)
    assert report.naive.receipts == report.naive.chunks == 0
    assert report.naive.twice_bytes > 0
    assert report.view_pairs == 0
    assert report.view["e0"] == 278


@pytest.mark.parametrize("fallback", ["identical", "text", "cover"])
def test_no_genuine_message_is_lost(made: Contaminated, fallback: str) -> None:
    """Wrong drops, repeats across user turns among them: 0 in each of the 323 prompts."""
    rules = TranscriptRules(fallback=fallback)  # type: ignore[arg-type]
    wrong = 0
    for store, genuine in zip(made.stores, made.genuine, strict=True):
        ids = store.view(rules).ids
        wrong += sum(ident not in ids for ident in genuine)
        assert ids == genuine
    assert wrong == 0


def test_repeats_across_user_turns_are_really_there(made: Contaminated) -> None:
    said = [made.stores[-1].get(ident) for ident in made.genuine[-1] if ident.startswith("a")]
    contents = [str(entry.raw["message"]) for entry in said if entry is not None]
    assert len(contents) - len(dict.fromkeys(contents)) > PROMPTS // 5


def test_every_receipt_is_still_found(made: Contaminated) -> None:
    """All but the three whose marks, key included, a rebuild threw away; of those `maybe` is never said of old turns."""
    store = made.stores[-1]
    found = [store.lookup(f"telegram-final:s1:100:{number}:0").standing for number in range(1, PROMPTS)]
    assert found.count(Standing.SENT) == PROMPTS - 1 - 3
    assert found.count(Standing.NONE) == 3


def test_the_session_file_at_its_worst_and_after_the_compaction(made: Contaminated) -> None:
    worst = check_session("s", write_session(made.stores[COMPACTED - 2]))
    assert (worst.contaminated, worst.naive.pairs, worst.view["e0"], worst.view_pairs) == (1, 3, 3, 0)
    after = check_session("s", write_session(made.stores[-1]))
    assert (after.contaminated, after.naive.pairs, after.view["e0"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ("word " * 20 + "\n" + "word " * 20, True),
        (f"{'first paragraph ' * 6}\n\nmiddle\n \n{'first paragraph ' * 6}", True),
        ("no, no", False),
        ("short\n\nshort", False),
        (f"{'first paragraph ' * 6}\n\n{'second paragraph ' * 6}", False),
        ("", False),
    ],
)
def test_an_answer_that_repeats_itself_is_reported(text: str, twice: bool) -> None:
    assert repeats_itself(text) is twice
