"""Names: channels, messages, deliveries, owners."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.vocabulary import TEXT
from turnkeeper.engine.ids import Address, ChannelRef, channel_at, chat_at, delivery_key, same_message, turn_at


@given(st.none() | TEXT, TEXT.filter(bool), st.none() | TEXT)
def test_a_channel_is_read_as_it_was_written(server: str | None, ident: str, thread: str | None) -> None:
    place = ChannelRef(server, ident, thread)
    assert ChannelRef.parse(str(place)) == place


@given(*[st.tuples(st.none() | TEXT, TEXT.filter(bool), st.none() | TEXT)] * 2)
def test_two_channels_are_never_written_alike(
    one: tuple[str | None, str, str | None], other: tuple[str | None, str, str | None]
) -> None:
    assert (str(ChannelRef(*one)) == str(ChannelRef(*other))) is (one == other)


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("tg/100", ChannelRef("tg", "100")),
        ("tg/100#7", ChannelRef("tg", "100", "7")),
        ("dc/a/b", ChannelRef("dc", "a/b")),
        ("dc/a#b#7", ChannelRef("dc", "a#b", "7")),
        ("?/100", ChannelRef(None, "100")),
        ("%3F/100", ChannelRef("?", "100")),
        ("/100", ChannelRef("", "100")),
        ("a%2Fb/100%23", ChannelRef("a/b", "100#")),
        ("tg/100#", ChannelRef("tg", "100", "")),
    ],
)
def test_the_first_slash_and_the_last_hash_count(written: str, place: ChannelRef) -> None:
    assert ChannelRef.parse(written) == place


@pytest.mark.parametrize("written", ["", "tg", "tg/", "tg/#7"])
def test_what_is_no_channel_says_the_form(written: str) -> None:
    with pytest.raises(ValueError, match="write server/id"):
        ChannelRef.parse(written)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (6406, "6406", True), ("6406", 6406, True), (6406, 6406, True), ("007", 7, False), ("007", "7", False),
        ("3EB0AAFF", "3eb0aaff", False), (None, None, False), (1, None, False), (-1, "-1", True),
    ],
)  # fmt: skip
def test_one_message_has_two_spellings(one: int | str | None, other: int | str | None, *, same: bool) -> None:
    assert same_message(one, other) is same


@given(*[st.lists(TEXT, min_size=1, max_size=3)] * 2)
def test_two_identities_never_make_one_delivery(one: list[str], other: list[str]) -> None:
    assert (delivery_key("reply", "c", *one) == delivery_key("reply", "c", *other)) is (one == other)


def test_a_delivery_reads_as_its_parts() -> None:
    assert delivery_key("preview", "c1", "P", 3) == "preview:c1:P:3"
    assert delivery_key("reply", "a:b", "c%") == "reply:a%3Ab:c%25"


@given(TEXT, TEXT)
def test_an_owner_is_read_as_it_was_written(chat: str, key: str) -> None:
    for address in (chat_at(chat), turn_at(chat, key), channel_at(chat, ChannelRef("tg", key))):
        assert Address.parse(chat, str(address)) == address
