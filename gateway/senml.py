"""Rows as SenML records (RFC 8428) and back.

One row becomes one record per column that is not NULL; the first carries base name and base time
(seconds). Times inside a row stay numbers of seconds.
"""

from collections.abc import Iterable, Iterator

from streamsql.data.schema import Schema
from streamsql.data.types import MICROSECONDS, DataType, Row, Value
from streamsql.wire.messages import SenmlRecord


def records_of(name: str, ts: int, row: Row, schema: Schema) -> Iterator[SenmlRecord]:
    """Yield the records of a row.

    Args:
        name: Base name, e.g. the sensor's id; a colon is put between it and the column.
        ts: Event time in microseconds.
        row: A row of the schema.
        schema: Its columns.
    """
    base: str = f"{name}:"
    time: float | None = ts / MICROSECONDS
    for field, value in zip(schema.fields, row, strict=True):
        if value is None:
            continue
        yield _record(base, time, field.name, value, field.dtype)
        base, time = "", None


def _record(base: str, time: float | None, name: str, value: Value, dtype: DataType) -> SenmlRecord:
    if isinstance(value, bool):
        return SenmlRecord(n=name, bn=base, bt=time, vb=value)
    if isinstance(value, str):
        return SenmlRecord(n=name, bn=base, bt=time, vs=value)
    number = float(value or 0)
    if dtype in (DataType.TIMESTAMP, DataType.INTERVAL):
        number /= MICROSECONDS
    return SenmlRecord(n=name, bn=base, bt=time, v=number)


def rows_of(records: Iterable[SenmlRecord]) -> Iterator[tuple[str, float, dict[str, Value]]]:
    """Yield (base name without colon, time in seconds, values by column) per row.

    Raises:
        ValueError: The first record has no base name, or a record has no value or no name.
    """
    base, time = "", 0.0
    values: dict[str, Value] = {}
    for record in records:
        if record.bn:
            if values:
                yield base, time, values
            base, time, values = record.bn.rstrip(":"), record.bt or 0.0, {}
        if not base:
            raise ValueError("the first SenML record needs a base name (bn)")
        if not record.n:
            raise ValueError(f"a SenML record of {base} has no name (n)")
        values[record.n] = _value(record)
    if values:
        yield base, time, values


def _value(record: SenmlRecord) -> Value:
    for value in (record.v, record.vs, record.vb):
        if value is not None:
            return value
    raise ValueError(f"SenML record {record.n} has no value (v, vs or vb)")
