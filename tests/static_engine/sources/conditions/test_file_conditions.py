"""Conditions for files: long lists neither overflow a stack nor take a row away."""

import threading

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from static_engine.sources.conditions.file_conditions import MOST_LISTED, arrow_condition
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.data.types import DataType

FIELDS = {0: pa.field("k", pa.int64()), 1: pa.field("s", pa.string())}
ROWS = pa.table({"k": range(1_000), "s": [f"t{n}" for n in range(1_000)]})
K = Column(0, "k", DataType.INTEGER)
S = Column(1, "s", DataType.TEXT)


def listed(column: Column, values: list[int] | list[str]) -> Expression:
    constants = tuple(Literal(value, column.dtype) for value in values)
    return Call("IN", (column, *constants), DataType.BOOLEAN)


def passing(condition: Expression) -> set[int]:
    """Return the rows that pass, read in a thread, whose stack is small."""
    made = arrow_condition((condition,), FIELDS)
    found: list[pa.Table] = []
    reader = threading.Thread(
        target=lambda: found.append(ds.dataset(ROWS).to_table(filter=made, columns=["k"]))
    )
    reader.start()
    reader.join(60)
    return set(found[0]["k"].to_pylist())


@pytest.mark.parametrize("count", [1, 3, MOST_LISTED, MOST_LISTED + 1, 50_000])
def test_no_row_of_a_list_is_left_out(count: int) -> None:
    values = list(range(100, 100 + count))
    assert passing(listed(K, values)) == set(values) & set(range(1_000))
    texts = passing(listed(S, [f"t{n}" for n in values]))
    assert texts >= set(values) & set(range(1_000))


@pytest.mark.parametrize("name", ["AND", "OR"])
def test_many_conditions_are_joined_without_depth(name: str) -> None:
    parts = tuple(
        Call("<>" if name == "AND" else "=", (K, Literal(n, DataType.INTEGER)), DataType.BOOLEAN)
        for n in range(500)
    )
    found = passing(Call(name, parts, DataType.BOOLEAN))
    assert found == set(range(500, 1_000) if name == "AND" else range(500))
