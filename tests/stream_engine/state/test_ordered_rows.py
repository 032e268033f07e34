"""Rows in order against a plain dict, over many blocks."""

import random
from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.state.indexed_relation import rows_in
from stream_engine.state.ordered_rows import OrderedRows
from streamsql.data.delta import Delta
from streamsql.data.types import Row

BOUNDS = st.none() | st.integers(-1, 7)


def expected(
    model: Delta, low: int | None, high: int | None, *, low_open: bool, high_open: bool
) -> Delta:
    def inside(value: int) -> bool:
        above = low is None or value > low or (value == low and not low_open)
        return above and (high is None or value < high or (value == high and not high_open))

    return {row: w for row, w in model.items() if isinstance(row[0], int) and inside(row[0])}


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from("ab"), st.sampled_from((1, 2, -1, -2))),
        max_size=40,
    ),
    BOUNDS,
    BOUNDS,
    st.booleans(),
    st.booleans(),
)
def test_small_ones_with_weights(
    changes: list[tuple[int, str, int]],
    low: int | None,
    high: int | None,
    low_open: bool,
    high_open: bool,
) -> None:
    rows, model = OrderedRows(), dict[Row, int]()
    for value, text, wanted in changes:
        row: Row = (value, text)
        weight = max(wanted, -model.get(row, 0))
        if weight:
            model[row] = model.get(row, 0) + weight
            assert rows.add(value, row, weight) == model[row]
            model = {r: w for r, w in model.items() if w}
    entries = rows.entries(low, high, low_open=low_open, high_open=high_open)
    found = [pair for entry in entries for pair in rows_in(entry)]
    assert dict(found) == expected(model, low, high, low_open=low_open, high_open=high_open)
    assert [row[0] for row, _ in found] == sorted(row[0] for row, _ in found)  # type: ignore[type-var]
    assert len(rows) == len(model)
    assert bool(rows) == bool(model)
    assert rows.lone() == (next(iter(model)) if list(model.values()) == [1] else None)


@pytest.mark.parametrize("seed", range(3))
def test_large_ones_split_and_empty_blocks(seed: int) -> None:
    choice = random.Random(seed)
    rows, present = OrderedRows(), set[int]()
    for step in range(20_000):
        value = choice.randrange(6_000)
        if step % 10_000 < 7_000:
            if value not in present:
                present.add(value)
                rows.add(value, (value,), 1)
        elif value in present:
            present.remove(value)
            rows.add(value, (value,), -1)
        if step % 97:
            continue
        order = sorted(present)
        low, high = choice.randrange(-5, 6_005), choice.randrange(-5, 6_005)
        found = rows.entries(low, high, low_open=False, high_open=True)
        assert found == [
            (value,) for value in order[bisect_left(order, low) : bisect_left(order, high)]
        ]
        before, after = bisect_left(order, low), bisect_right(order, low)
        newest = dict(rows_in(rows.newest(low, strict=True)))
        assert newest == ({(order[before - 1],): 1} if before else {})
        assert rows.next_value(low) == (order[after] if after < len(order) else None)
    assert len(rows) == len(present)
