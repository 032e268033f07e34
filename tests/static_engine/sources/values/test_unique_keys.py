"""Primary keys: which two rows an error names, however many hashes happen to be equal."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from static_engine.sources.table_errors import TableError
from static_engine.sources.values import unique_keys
from static_engine.sources.values.conversion import arrow_schema
from static_engine.sources.values.row_hashes import Hashes, row_hashes
from static_engine.sources.values.unique_keys import unique_rows
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

SCHEMA = Schema.of(("name", DataType.TEXT), ("number", DataType.INTEGER), ("size", DataType.DOUBLE))
TABLE = SourceDefinition("t", SourceKind.TABLE, SCHEMA, key=(0, 1, 2))
VALUES = (
    st.sampled_from(["", "a", "é" * 300, "b\0"]),
    st.sampled_from([0, -1, 2**63 - 1, -(2**63)]),
    st.sampled_from([0.0, -0.0, 1.5]),
)
ROWS = st.lists(
    st.tuples(*(st.one_of(st.none(), v) if n == 1 else v for n, v in enumerate(VALUES)))
)
Hashing = Callable[[Sequence[pa.Array], int], Hashes]


def batches(rows: list[Row], size: int) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(SCHEMA)
    for at in range(0, len(rows), size):
        columns = list(zip(*rows[at : at + size], strict=True))
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        # A slice, as readers give: its values do not begin where its buffers do.
        arrays = [pa.concat_arrays([a[:1], a])[1:] for a in arrays]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def expected(rows: list[Row]) -> str | None:
    """Return what has to be in the error, by a dictionary."""
    for number, row in enumerate(rows, 1):
        if None in row:
            return f"row {number} has NULL"
    seen: dict[Row, int] = {}
    for number, row in enumerate(rows, 1):
        if seen.setdefault(row, number) != number:
            return f"rows {seen[row]} and {number} have"
    return None


def poor(columns: Sequence[pa.Array], rows: int) -> Hashes:
    return row_hashes(columns, rows) % np.uint64(3)


@pytest.mark.parametrize("hashing", [row_hashes, poor])
@pytest.mark.parametrize("sorted_rows", [1 << 20, 2])
def test_the_first_row_that_repeats_a_key_is_named(
    monkeypatch: pytest.MonkeyPatch, hashing: Hashing, sorted_rows: int
) -> None:
    monkeypatch.setattr(unique_keys, "row_hashes", hashing)
    monkeypatch.setattr(unique_keys, "_SORTED_ROWS", sorted_rows)

    @settings(max_examples=60)
    @given(ROWS, st.integers(1, 4))
    def check(rows: list[Row], size: int) -> None:
        wanted = expected(rows)
        if wanted is None:
            found = [r for b in unique_rows(TABLE, batches(rows, size)) for r in b.to_pylist()]
            assert len(found) == len(rows)
            return
        with pytest.raises(TableError, match=wanted):
            list(unique_rows(TABLE, batches(rows, size)))

    check()


def test_zero_and_minus_zero_are_one_key() -> None:
    with pytest.raises(TableError, match="rows 1 and 3 have the same primary key"):
        list(unique_rows(TABLE, batches([("a", 1, 0.0), ("a", 1, 1.5), ("a", 1, -0.0)], 2)))


def test_a_table_that_is_twice_in_a_file_is_refused_at_once() -> None:
    """The search for the first pair does not compare every row with every other."""
    rows: list[Row] = [(f"r{n}", n, 0.5) for n in range(30_000)]
    with pytest.raises(TableError, match="rows 1 and 30001 have the same primary key"):
        list(unique_rows(TABLE, batches(rows + rows, 10_000)))
