"""A bounded map that is never changed: compared with a plain ordered one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.engine.codec import decode, encode
from turnkeeper.engine.horizon import CHUNK_MIN, Horizon

KEYS = st.integers(0, 300).map(str)
ACTS = st.lists(st.tuples(st.sampled_from(["put", "put", "put", "drop"]), KEYS), max_size=400)


def same(horizon: Horizon[int], model: dict[str, int]) -> None:
    assert list(horizon.items()) == list(model.items())
    assert len(horizon) == len(model)
    assert horizon.oldest() == next(iter(model.items()), None)


@settings(max_examples=60, deadline=None)
@given(ACTS, st.integers(1, 200))
def test_it_remembers_as_a_plain_map_does(acts: list[tuple[str, str]], limit: int) -> None:
    horizon: Horizon[int] = Horizon()
    model: dict[str, int] = {}
    for index, (act, key) in enumerate(acts):
        before, was = horizon, list(horizon.items())
        if act == "put":
            horizon, model[key] = horizon.put(key, index, limit), index
            while len(model) > limit:
                del model[next(iter(model))]
        else:
            horizon = horizon.drop(key)
            model.pop(key, None)
        assert list(before.items()) == was
        assert (key in horizon, horizon.get(key)) == (key in model, model.get(key))
    same(horizon, model)


def test_a_limit_of_nothing_remembers_nothing() -> None:
    assert len(Horizon[int]().put("a", 1, 0)) == 0


def test_it_survives_the_codec() -> None:
    horizon: Horizon[int] = Horizon()
    for index in range(500):
        horizon = horizon.put(str(index), index, 300)
    assert decode(encode(horizon), Horizon[int]) == horizon


def test_a_change_copies_little() -> None:
    """Of a large map one chunk is copied, and neither chunk nor the list of chunks is long."""
    limit = 65_536
    chunk = {str(key): key for key in range(256)}
    horizon = Horizon(tuple({f"{part}-{key}": value for key, value in chunk.items()} for part in range(256)), limit)
    after = horizon.put("new", 1, limit)
    shared = sum(one is other for one in after.chunks for other in horizon.chunks)
    assert shared == len(horizon.chunks) - 1
    assert max(map(len, after.chunks)) <= max(CHUNK_MIN, 256)
    assert len(after.chunks) <= 257
    assert len(after) == limit
