"""The rows of a query by DuckDB, over the readings that hold at the end."""

import duckdb

from benchmarks._optimizer.questions import Question
from benchmarks._optimizer.worlds import Readings
from streamsql.data.delta import Delta, from_rows
from streamsql.data.types import DataType, Row, Value

_TYPES = {DataType.TEXT: "VARCHAR", DataType.TIMESTAMP: "BIGINT"}


def by_duckdb(question: Question, readings: Readings) -> Delta:
    """Return the rows of a query's plain text."""
    end = readings[-1][0]
    with duckdb.connect() as duck:
        for name in question.world.loads:
            source = question.world.source(name)
            columns = ", ".join(
                f"{f.name} {_TYPES.get(f.dtype, f.dtype)}" for f in source.schema.fields
            )
            duck.execute(f"CREATE TABLE {name} ({columns})")
            held: dict[tuple[Value, ...], Row] = {}
            for number, (time, _, read, event) in enumerate(readings):
                if read.lower() == name and time > end - (source.ttl or 0):
                    # A device has its last reading, a log all of them.
                    key = tuple(event.row[k] for k in source.key) or (number,)
                    held[key] = event.row
            marks = ", ".join("?" * len(source.schema.fields))
            duck.executemany(f"INSERT INTO {name} VALUES ({marks})", list(held.values()))
        return from_rows(duck.execute(question.plain).fetchall())
