"""Rows as SenML records (RFC 8428) and back.

One row becomes one record per column that is not NULL; the first carries base name and base time
(seconds). A row of nothing but NULLs has no records. Times inside a row are seconds too; integers
that a double cannot hold exactly travel as text.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

from streamsql.data.schema import Schema
from streamsql.data.types import MICROSECONDS, DataType, Row, Value
from streamsql.wire.messages import SenmlRecord

UNNAMED = "value"
"""Column of a record whose name is that of the device alone."""

_EXACT = 2**53
_LATEST = 2**63


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


def rows_of(records: Iterable[SenmlRecord]) -> Iterator[tuple[str, float, dict[str, Value]]]:
    """Yield (device, time in seconds, values by column) per row.

    Base name and base time hold until the next ones. A row ends where a base name is given or the
    time changes.

    Raises:
        ValueError: The first record has neither name nor base name, a record has no value, or its
            time is no finite number.
    """
    base, base_time = "", 0.0
    row: tuple[str, float, dict[str, Value]] | None = None
    for record in records:
        base = record.bn or base
        base_time = base_time if record.bt is None else record.bt
        device, column = _names(base, record.n)
        time = base_time + (record.t or 0.0)
        if not math.isfinite(time):
            raise ValueError(f"a SenML record of {device:.60} has no finite time")
        if row is not None and (record.bn or row[:2] != (device, time)):
            yield row
            row = None
        if row is None:
            row = (device, time, {})
        row[2][column] = _value(record)
    if row is not None:
        yield row


def row_from(values: dict[str, Value], schema: Schema) -> Row:
    """Return the row of a schema that `records_of` made these values from.

    Raises:
        ValueError: A name is unknown or a value has the wrong type.
    """
    kinds = {field.name: field.dtype for field in schema.fields}
    exact: dict[str, object] = {
        name: microseconds(value)
        if isinstance(value, float) and kinds.get(name) in (DataType.TIMESTAMP, DataType.INTERVAL)
        else value
        for name, value in values.items()
    }
    return schema.coerce_row(exact)


def microseconds(seconds: float) -> int:
    """Return seconds as microseconds, exactly to the last one.

    Raises:
        ValueError: It is no finite number, or does not fit 64 bits.

    Examples:
        >>> microseconds(1767225601.000001)
        1767225601000001
    """
    if not math.isfinite(seconds):
        raise ValueError(f"{seconds} is not a time")
    result = round(Fraction(seconds) * MICROSECONDS)
    if not -_LATEST <= result < _LATEST:
        raise ValueError(f"{seconds} seconds do not fit 64 bits of microseconds")
    return result


def _names(base: str, name: str) -> tuple[str, str]:
    if base:
        return base.removesuffix(":"), name or UNNAMED
    if not name:
        raise ValueError("the first SenML record needs a name (n) or a base name (bn)")
    return name, UNNAMED


def _record(base: str, time: float | None, name: str, value: Value, dtype: DataType) -> SenmlRecord:
    if isinstance(value, bool):
        return SenmlRecord(n=name, bn=base, bt=time, vb=value)
    if isinstance(value, str):
        return SenmlRecord(n=name, bn=base, bt=time, vs=value)
    number = value or 0
    if dtype in (DataType.TIMESTAMP, DataType.INTERVAL):
        return SenmlRecord(n=name, bn=base, bt=time, v=number / MICROSECONDS)
    if abs(number) > _EXACT and isinstance(number, int):
        return SenmlRecord(n=name, bn=base, bt=time, vs=str(number))
    return SenmlRecord(n=name, bn=base, bt=time, v=float(number))


def _value(record: SenmlRecord) -> Value:
    for value in (record.v, record.vs, record.vb):
        if value is not None:
            return value
    raise ValueError(f"SenML record {record.n:.60} has no value (v, vs or vb)")
