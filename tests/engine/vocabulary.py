"""Values of every event, command and signal, drawn from their types."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from turnkeeper.engine import commands, events, signals
from turnkeeper.engine.ids import INT64_MAX, INT64_MIN, ChannelRef

KINDS: list[type[msgspec.Struct]] = [
    *get_args(events.Event),
    *get_args(commands.Command),
    *get_args(signals.Signal),
]
TEXT = st.text(max_size=12) | st.sampled_from(["", "\ud800", "a\x00b", "6406", "?", "%2F", "ﬀ é"])
INTS = st.integers(INT64_MIN, INT64_MAX) | st.sampled_from([0, -1, INT64_MIN, INT64_MAX])
PLACES = st.builds(ChannelRef, st.none() | TEXT, TEXT, st.none() | TEXT)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Draw a value of an annotated field."""
    if get_origin(hint) is Annotated:
        return values(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=3).map(tuple)
    known = {Any: JSON, object: JSON, ChannelRef: PLACES, bool: st.booleans(), int: INTS, str: TEXT}
    if hint in known:
        return known[hint]
    if hint is type(None):
        return st.none()
    parts = get_args(hint)
    # A channel's written form becomes a channel; drawn text would be none.
    return st.one_of([values(part) for part in parts if part is not str or ChannelRef not in parts])


def structs(kind: type[msgspec.Struct]) -> st.SearchStrategy[msgspec.Struct]:
    """Draw a whole event, command or signal."""
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{name: values(hints[name]) for name in kind.__struct_fields__})
