"""Differences of relations in Arrow columns, against Counter and DuckDB's EXCEPT ALL."""

import random
from collections import Counter
from collections.abc import Callable, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from static_engine.evaluation import bag_difference
from static_engine.evaluation.bag_difference import difference
from static_engine.evaluation.bags import Bag
from static_engine.sources.values.row_hashes import Hashes, row_hashes
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

SCHEMA = Schema.of(
    ("name", DataType.TEXT),
    ("n", DataType.INTEGER),
    ("x", DataType.DOUBLE),
    ("ok", DataType.BOOLEAN),
    ("at", DataType.TIMESTAMP),
)
ROW = st.tuples(
    st.none() | st.sampled_from(["", "a", "é" * 9_000, "a\0"]),
    st.none() | st.sampled_from([0, 1, -(2**63), 2**63 - 1]),
    st.none() | st.sampled_from([0.0, -0.0, 1.0, 1e300]),
    st.none() | st.booleans(),
    st.none() | st.sampled_from([0, 1_767_225_601_000_000]),
)
ENTRIES = st.lists(st.tuples(ROW, st.integers(1, 3)), max_size=12)
Hashing = Callable[[Sequence[pa.Array], int], Hashes]


def bag(entries: list[tuple[Row, int]], schema: Schema = SCHEMA) -> Bag:
    """Return a bag with these entries, some of which may be of the same row."""
    one = [Bag.of_rows(schema, {row: weight}) for row, weight in entries]
    if not one:
        return Bag.of_rows(schema, {})
    columns = tuple(pa.concat_arrays(c) for c in zip(*(b.columns for b in one), strict=True))
    return Bag(schema, columns, np.concatenate([b.weights for b in one]))


def counted(entries: list[tuple[Row, int]]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for row, weight in entries:
        found[row] += weight
    return found


def poor(columns: Sequence[pa.Array], rows: int) -> Hashes:
    return row_hashes(columns, rows) % np.uint64(2)


@pytest.mark.parametrize("hashing", [row_hashes, poor])
@pytest.mark.parametrize("rows_at_a_time", [1 << 16, 2])
def test_it_is_the_difference_of_two_counters(
    monkeypatch: pytest.MonkeyPatch, hashing: Hashing, rows_at_a_time: int
) -> None:
    monkeypatch.setattr(bag_difference, "row_hashes", hashing)
    monkeypatch.setattr(bag_difference, "_COMPARED_ROWS", rows_at_a_time)
    monkeypatch.setattr(bag_difference, "_SORTED_ROWS", rows_at_a_time)

    @settings(max_examples=60)
    @given(ENTRIES, ENTRIES, ENTRIES)
    def check(
        shared: list[tuple[Row, int]], new: list[tuple[Row, int]], old: list[tuple[Row, int]]
    ) -> None:
        after, before = new + shared, shared + old
        expected = counted(after)
        expected.subtract(counted(before))
        wanted = {row: weight for row, weight in expected.items() if weight}
        assert difference(bag(after), bag(before)).delta() == wanted

    check()


@pytest.mark.parametrize(("new", "old"), [(0, 0), (3, 1), (1, 3), (2, 2)])
def test_rows_without_columns_are_counted(new: int, old: int) -> None:
    nothing = Schema(())
    bags = [Bag.of_rows(nothing, {(): count} if count else {}) for count in (new, old)]
    assert difference(*bags).delta() == ({(): new - old} if new != old else {})


def test_nan_is_no_change_of_nan() -> None:
    schema = Schema.of(("x", DataType.DOUBLE))
    data = pa.table({"c0": pa.array([float("nan"), 1.0, None])})
    moved = pa.table({"c0": pa.array([None, float("nan"), 1.0])})
    bags = [Bag.of_table(schema, table) for table in (data, moved)]
    assert len(difference(*bags)) == 0


@pytest.mark.parametrize("moved", [False, True])
def test_zero_is_no_change_of_minus_zero(*, moved: bool) -> None:
    schema = Schema.of(("x", DataType.DOUBLE))
    tables = [pa.table({"c0": c}) for c in ([0.0, 1.0], [1.0, -0.0] if moved else [-0.0, 1.0])]
    assert len(difference(*(Bag.of_table(schema, table) for table in tables))) == 0


@pytest.mark.parametrize("moved", [False, True], ids=["in place", "moved"])
def test_a_table_with_some_changes_differs_by_them(*, moved: bool) -> None:
    """DuckDB says which rows; only they become Python objects."""
    chance = random.Random(3)
    rows: list[Row] = [
        (f"r{n % 20_000}", n % 20_000, n % 7 / 4, n % 3 == 0 or None, n) for n in range(30_000)
    ]
    rows += rows[:5_000]
    later = [row for row in rows if chance.random() > 0.001]
    later += [(f"new {n}", n, None, True, None) for n in range(30)] * 2
    if moved:
        chance.shuffle(later)
    new, old = (
        Bag.of_table(SCHEMA, pa.Table.from_batches(bag_of(r).batches())) for r in (later, rows)
    )
    change = difference(new, old)
    assert len(change) < 200
    assert change.delta() == by_duckdb(new, old)


def bag_of(rows: list[Row]) -> Bag:
    return Bag.of_rows(SCHEMA, dict(Counter(rows)))


def by_duckdb(new: Bag, old: Bag) -> Delta:
    with duckdb.connect() as database:
        for name, side in (("new", new), ("old", old)):
            database.register(name, pa.Table.from_batches(side.batches()))
        gone = database.sql('FROM "old" EXCEPT ALL FROM "new"').fetchall()
        come = database.sql('FROM "new" EXCEPT ALL FROM "old"').fetchall()
    return dict(Counter(come)) | {row: -count for row, count in Counter(gone).items()}
