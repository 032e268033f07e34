"""Answers of DuckDB to the same texts, over the same rows in a table."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import duckdb
import pyarrow as pa

from benchmarks._argus.asked import in_duckdb
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta, from_rows
from streamsql.data.types import MICROSECONDS, DataType, Row, Value

_TYPES = {
    DataType.TEXT: pa.string(),
    DataType.INTEGER: pa.int64(),
    DataType.DOUBLE: pa.float64(),
    DataType.TIMESTAMP: pa.timestamp("us"),
}
_DISTANCE = "CREATE MACRO distance(a, b, c, d) AS sqrt((a - c) ** 2 + (b - d) ** 2)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def duckdb_over(
    source: SourceDefinition, rows: Sequence[Row]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database in memory with one table of a source's rows."""
    columns = {
        field.name: pa.array([row[at] for row in rows], type=_TYPES[field.dtype])
        for at, field in enumerate(source.schema.fields)
    }
    with duckdb.connect() as duck:
        duck.register("given", pa.table(columns))
        duck.execute(f"CREATE TABLE {source.name} AS SELECT * FROM given")
        duck.unregister("given")
        duck.execute(_DISTANCE)
        yield duck


def answer(duck: duckdb.DuckDBPyConnection, text: str) -> Delta:
    """Return the rows of a query; times are microseconds since 1970 as with us."""
    rows = duck.execute(in_duckdb(text)).fetchall()
    return from_rows(tuple(map(_ours, row)) for row in rows)


def _ours(value: object) -> Value:
    if isinstance(value, datetime):
        since = value.replace(tzinfo=UTC) - _EPOCH
        return (since.days * 86_400 + since.seconds) * MICROSECONDS + since.microseconds
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{value!r} is no value of ours")


def rounded(rows: Delta) -> Delta:
    """Return rows whose doubles have nine digits: engines add them in different orders."""
    found: Delta = {}
    for row, weight in rows.items():
        key = tuple(round(each, 9) if isinstance(each, float) else each for each in row)
        found[key] = found.get(key, 0) + weight
    return found


def differing(duck: duckdb.DuckDBPyConnection, asked: Iterable[tuple[str, Delta]]) -> list[str]:
    """Return the texts whose rows are not those of DuckDB."""
    return [text for text, rows in asked if rounded(answer(duck, text)) != rounded(rows)]
