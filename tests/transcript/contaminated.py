"""The reported contamination, made: 323 prompts, 108 of them with 278 doubled pairs between them.

One chat, one answer a turn, each delivered and recorded by a receipt. Twice a rebuild strips receipts of their
marks, one of them, then a second, so that every prompt shows two, later three answers doubled, until a
compaction puts them out of sight. Users ask for the same again and again, and get word for word the same
answer: repeats across user turns that must never be lost.
"""

from dataclasses import dataclass, field

from tests.transcript.build import REWRITTEN, SPENT, message, mirror, text, user
from turnkeeper.engine.transcript.check import naive_prompt
from turnkeeper.engine.transcript.entries import Utterance
from turnkeeper.engine.transcript.lines import Fields, dumps
from turnkeeper.engine.transcript.store import Store

PROMPTS = 323
FIRST_STRIP, SECOND_STRIP, COMPACTED = 120, 166, 228
"""The prompt before which each happens: 46 prompts with two pairs, then 62 with three."""


@dataclass
class Contaminated:
    """What was made, and what is true of it."""

    trajectory: list[bytes] = field(default_factory=list)
    """The prompts, as a filter on provider and model submitted them."""
    stores: list[Store] = field(default_factory=list)
    """The session as it stood at each prompt."""
    genuine: list[list[str]] = field(default_factory=list)
    """Ids of the messages that somebody said and the prompt must show."""


def contaminated() -> Contaminated:
    made = Contaminated()
    entries: list[Fields] = []
    said: list[str] = []
    for number in range(1, PROMPTS + 1):
        if number == FIRST_STRIP:
            strip(entries, [number - 1, number - 2])
        elif number == SECOND_STRIP:
            strip(entries, [number - 1])
        elif number == COMPACTED:
            entries.append(
                {"type": "compaction", "id": "cut", "summary": "so far", "firstKeptEntryId": f"u{number - 3}"}
            )
            said = said[said.index(f"u{number - 3}") :]
        again = number % 5 == 0
        entries.append(user(f"u{number}", "say that again" if again else f"question {number}"))
        said.append(f"u{number}")
        store = Store.load({"type": "session", "version": 3, "id": "s1"}, list(entries))
        made.stores.append(store)
        made.genuine.append(list(said))
        made.trajectory.append(submitted(store, number))
        words = f"a longer answer, number {number // 5}"
        entries.append(
            message(f"a{number}", "assistant", text(words), provider="anthropic", model="claude", usage=SPENT)
        )
        said.append(f"a{number}")
        entries.append(mirror(f"r{number}", words, key=f"telegram-final:s1:100:{number}:0"))
    return made


def strip(entries: list[Fields], numbers: list[int]) -> None:
    """Do what the rebuild did: of these receipts role, content and a rewritten usage are left."""
    for position, entry in enumerate(entries):
        if entry["id"] in {f"r{number}" for number in numbers}:
            content = entry["message"]
            assert isinstance(content, dict)
            entries[position] = message(str(entry["id"]), "assistant", content["content"], usage=REWRITTEN)


def submitted(store: Store, number: int) -> bytes:
    messages = [item.raw["message"] for item in naive_prompt(store.path()) if isinstance(item, Utterance)]
    return dumps(
        {
            "traceSchema": "openclaw-trajectory",
            "schemaVersion": 1,
            "type": "prompt.submitted",
            "seq": number,
            "sessionId": "s1",
            "data": {"prompt": "…", "messages": messages, "imagesCount": 0},
        }
    )
