"""Values to bytes and back: equal, of the same types, at any nesting."""

import contextlib
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.snapshot.column_codec import UnsavableError, pack, unpack
from stream_engine.state.expiry_queue import ExpiryQueue
from stream_engine.state.indexed_relation import IndexedRelation
from stream_engine.state.row_order import GREATEST, LEAST, Reversed
from stream_engine.state.sorted_list import SortedList
from streamsql.errors import InternalError

_HUGE = st.integers(-(2**1200), 2**1200)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | _HUGE
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3)
)
_ROWS = st.lists(_SCALARS, max_size=3).map(tuple)
_KEYS = _SCALARS | _ROWS | st.tuples(st.integers(), _ROWS)
_VALUES = st.recursive(
    _SCALARS | _ROWS | st.sampled_from((LEAST, GREATEST)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(_KEYS, inner, max_size=4)
        | st.sets(_KEYS, max_size=3)
        | st.frozensets(_KEYS, max_size=3)
    ),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal and of the same types throughout."""
    if type(left) is not type(right):
        return False
    match left:
        case dict():
            pairs = zip(left.items(), right.items(), strict=True)
            return len(left) == len(right) and all(same(a, b) for a, b in pairs)
        case list() | tuple():
            return len(left) == len(right) and all(map(same, left, right))
        case float():
            return left == right and math.copysign(1, left) == math.copysign(1, right)
        case _:
            return bool(left == right)


@settings(max_examples=60)
@given(_VALUES)
def test_what_is_read_back_is_what_was_saved(value: Any) -> None:
    assert same(unpack(pack(value)), value)


@pytest.mark.parametrize("length", [0, 1, 3000])
def test_objects_come_back_and_go_on(length: int) -> None:
    items = {1: list(range(length)), 2: [5, 5, -3], 3: [n % 30 for n in range(length)]}
    lists: dict[int, SortedList[int]] = {}
    for key, numbers in items.items():
        lists[key] = SortedList()
        for number in numbers:
            lists[key].add(number)
    back = unpack(pack(lists))
    for key, numbers in items.items():
        back[key].add(7)
        assert list(back[key].between(-9, 9999)) == sorted([*numbers, 7])


def test_objects_inside_keys_and_queues() -> None:
    queue: ExpiryQueue[Any] = ExpiryQueue()
    queue.add(5, (Reversed("b"), (1, "b")), 2)
    queue.add(3, (LEAST, (None,)), 1)
    back = unpack(pack([queue]))[0]
    assert back.due(4) == [(3, {(LEAST, (None,)): 1})]
    assert back.due(9) == [(5, {(Reversed("b"), (1, "b")): 2})]


@pytest.mark.parametrize("positions", [(), (1,), (1, 2), (2, 0)])
def test_pickers_inside_state_pick_the_same(positions: tuple[int, ...]) -> None:
    relation = IndexedRelation(positions)
    relation.apply({(1, "b", 2.5): 2})
    back = unpack(pack({"partition": [relation]}))["partition"][0]
    assert back.key_of((7, 8, 9)) == relation.key_of((7, 8, 9))
    back.apply({(1, "b", 2.5): -2})
    assert not back.buckets
    assert relation.buckets


@pytest.mark.parametrize("value", [object(), iter([1]), {1: [lambda: None]}, [range(3)]])
def test_what_cannot_be_saved_says_so(value: Any) -> None:
    with pytest.raises(UnsavableError, match="cannot be saved"):
        pack(value)


def test_too_deep_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100):
        value = [value]
    with pytest.raises(UnsavableError, match="deeper"):
        pack(value)


@settings(max_examples=40)
@given(st.binary(max_size=60))
def test_other_bytes_are_refused(content: bytes) -> None:
    with contextlib.suppress(InternalError):  # and nothing else
        unpack(content)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_damaged_bytes_are_refused_or_read_as_something(place: int, byte: int) -> None:
    content = bytearray(pack({("a", 1): [1, 2, {"x": (1.5, None)}], 3: 2**200}))
    content[place % len(content)] = byte
    with contextlib.suppress(InternalError):  # and nothing else
        unpack(bytes(content))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("stream_engine.site.site_engine", "replace"),
        ("stream_engine.nothing", "X"),
    ],
)
def test_nothing_but_classes_of_the_engine_is_made(module: str, name: str) -> None:
    column = [7, module, name, 1, [], []]
    with pytest.raises(InternalError, match="cannot be read"):
        unpack(msgspec.msgpack.encode(column))
