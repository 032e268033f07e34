"""Ranked multisets, neighbours in sorted lists and comparable rows against plain lists."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.state import ranked_blocks, sorted_list
from stream_engine.state.ranked_order import RankedOrder
from stream_engine.state.row_order import (
    GREATEST,
    LEAST,
    comparable,
    entry_function,
    restored,
    row_of,
)
from stream_engine.state.sorted_list import SortedList
from streamsql.algebra.operators import RemoteSource, SortKey, TopN
from streamsql.data.delta import sort_key
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.reference.plain_operators import top


@pytest.fixture(autouse=True, scope="module")
def _short_blocks() -> object:
    """Blocks of a few items, so that small lists split."""
    before = sorted_list._LOAD, ranked_blocks.LOAD
    sorted_list._LOAD, ranked_blocks.LOAD = 3, 2
    yield
    sorted_list._LOAD, ranked_blocks.LOAD = before


changes = st.lists(st.tuples(st.integers(0, 12), st.sampled_from((-3, -1, 1, 1, 2))), max_size=40)


@given(changes)
def test_ranks_follow_a_plain_list(actions: list[tuple[int, int]]) -> None:
    order: RankedOrder[int] = RankedOrder()
    weights: dict[int, int] = {}
    for item, weight in actions:
        old = max(weights.get(item, 0), 0)
        weights[item] = weights.get(item, 0) + weight
        assert order.change(item, weight) == max(weights[item], 0) - old
        plain = [i for i in sorted(weights) for _copy in range(weights[i])]
        assert order.total == len(plain)
        assert len(order) == sum(1 for w in weights.values() if w)
        assert bool(order) == any(weights.values())
        assert [order.at(rank) for rank in range(len(plain))] == plain
        assert order.copies() == plain
        if plain:
            assert (order.first(), order.last()) == (plain[0], plain[-1])
        for probe in range(-1, 14):
            if plain and probe <= plain[-1]:
                assert order.at_least(probe) == min(i for i in plain if i >= probe)
            less = sum(1 for i in plain if i < probe)
            assert order.place(probe) == (less, plain.count(probe))
        for start in range(0, len(plain) + 1, 2):
            part = [i for i, n in order.between(start, start + 3) for _copy in range(n)]
            assert part == plain[start : start + 3]


def test_there_is_nothing_beyond_the_ends() -> None:
    order: RankedOrder[int] = RankedOrder()
    order.change(1, 2)
    for rank in (-1, 2):
        with pytest.raises(IndexError):
            order.at(rank)
    with pytest.raises(IndexError):
        order.at_least(2)


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(-1, 21), st.integers(-1, 21))
def test_neighbours_in_a_sorted_list(numbers: list[int], low: int, high: int) -> None:
    items: SortedList[int] = SortedList()
    for number in numbers:
        items.add(number)
    assert items.below(low) == max((n for n in numbers if n < low), default=None)
    assert items.above(low) == min((n for n in numbers if n > low), default=None)
    assert list(items.between(low, high)) == sorted(n for n in numbers if low <= n <= high)


ROWS = st.tuples(
    st.sampled_from((None, 1, 2)), st.sampled_from((None, "", "a", "ab")), st.none() | st.booleans()
)
COLUMNS = Schema.of(("n", DataType.INTEGER), ("t", DataType.TEXT), ("b", DataType.BOOLEAN))


@given(st.lists(ROWS))
def test_comparable_rows_are_ordered_as_rows(rows: list[Row]) -> None:
    assert sorted(rows, key=comparable) == sorted(rows, key=sort_key)
    assert [restored(comparable(row)) for row in rows] == rows


@given(
    st.lists(ROWS),
    st.lists(st.builds(SortKey, st.integers(0, 2), st.booleans(), st.booleans()), max_size=3),
)
def test_entries_are_ordered_as_order_by_says(rows: list[Row], keys: list[SortKey]) -> None:
    plan = TopN(RemoteSource("r", COLUMNS), tuple(keys), None)
    entries = sorted(map(entry_function(plan.order, COLUMNS.dtypes), rows))
    assert [row_of(entry) for entry in entries] == top(plan, rows)


def test_the_ends_of_every_order_stay_what_they_are() -> None:
    for end in (LEAST, GREATEST):
        assert copy.copy(end) is end
        assert copy.deepcopy(end) is end
        assert sorted([end, end]) == [end, end]
    assert LEAST < GREATEST
    assert LEAST < "a" < GREATEST
