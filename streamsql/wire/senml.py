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

Observed = tuple[str, int, Row]
"""Device, event time in microseconds, and row."""

_TIMES = (DataType.TIMESTAMP, DataType.INTERVAL)
_EXACT = 2**53
_LATEST = 2**63
_PLAIN = 2**20
_FAR = 2**42


def records_of(name: str, ts: int, row: Row, schema: Schema) -> list[SenmlRecord]:
    """Return the records of one row; see `records_of_rows`."""
    return records_of_rows([(name, ts, row)], schema)


def records_of_rows(rows: Iterable[Observed], schema: Schema) -> list[SenmlRecord]:
    """Return the records of rows.

    Args:
        rows: Each with its base name, e.g. the sensor's id (a colon is put between it and the
            column), and its event time in microseconds.
        schema: Their columns.
    """
    columns = [(field.name, field.dtype in _TIMES) for field in schema.fields]
    records: list[SenmlRecord] = []
    for name, ts, row in rows:
        base: str = f"{name}:"
        time: float | None = ts / MICROSECONDS
        for (column, is_time), value in zip(columns, row, strict=True):
            # Most values by their type, with arguments in the order of the fields: half the time.
            if type(value) is float:
                records.append(SenmlRecord(column, base, time, None, "", value or 0.0))
            elif type(value) is str:
                records.append(SenmlRecord(column, base, time, None, "", None, value))
            elif value is not None:
                records.append(_record(base, time, column, value, is_time))
            else:
                continue
            base, time = "", None
    return records


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
        if isinstance(value, float) and kinds.get(name) in _TIMES
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
    if _PLAIN <= seconds < _FAR:
        whole = int(seconds)
        # No digit is lost: the fraction has at most 32 bits, and 10^6 another 14 and a power of 2.
        return whole * MICROSECONDS + round((seconds - whole) * MICROSECONDS)
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


def _record(
    base: str, time: float | None, name: str, value: float | str, is_time: bool
) -> SenmlRecord:
    if isinstance(value, bool):
        return SenmlRecord(name, base, time, vb=value)
    if isinstance(value, str):
        return SenmlRecord(name, base, time, vs=value)
    if is_time:
        return SenmlRecord(name, base, time, v=value / MICROSECONDS)
    if isinstance(value, int) and abs(value) > _EXACT:
        return SenmlRecord(name, base, time, vs=str(value))
    return SenmlRecord(name, base, time, v=float(value or 0))


def _value(record: SenmlRecord) -> Value:
    for value in (record.v, record.vs, record.vb):
        if value is not None:
            return value
    raise ValueError(f"SenML record {record.n:.60} has no value (v, vs or vb)")
