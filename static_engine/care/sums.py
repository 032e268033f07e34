"""Sums of readings by interval and device, added up a batch at a time."""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from static_engine.lake.kept_readings import EVENT_TIME, TIME, WITHDRAWN

FROM: Final = "_from"
"""Column of a roll-up: when its interval begins."""
COUNT: Final = "_count"
"""Column of a roll-up: readings in it."""
_PENDING_ROWS = 500_000


@dataclass(frozen=True, slots=True)
class SumsShape:
    """Shape of a roll-up: intervals, devices, numbers.

    Attributes:
        width: Of an interval, in microseconds; intervals begin at its multiples since 1970.
        keys: Columns whose values tell devices apart.
        numbers: Numeric columns.
    """

    width: int
    keys: tuple[str, ...]
    numbers: tuple[str, ...]

    @property
    def read(self) -> tuple[str, ...]:
        """Columns that are read."""
        return (*dict.fromkeys((*self.keys, *self.numbers)), EVENT_TIME, WITHDRAWN)

    @property
    def grouped(self) -> list[str]:
        """Columns that name a row of the roll-up."""
        return [FROM, *self.keys]


class Sums:
    """Adds up batches; rows that were withdrawals are no readings.

    A NaN is left out, as a NULL is: no minimum and no sum could be told with it.
    """

    def __init__(self, shape: SumsShape) -> None:
        self._shape = shape
        self._parts: list[pa.Table] = []
        self._pending = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch with the columns of `SumsShape.read`."""
        shape = self._shape
        readings = pa.Table.from_batches([batch])
        readings = readings.filter(pc.invert(pc.fill_null(readings[WITHDRAWN], False)))
        if not readings.num_rows:
            return
        micros = readings[EVENT_TIME].cast(TIME).cast(pa.int64())
        begins = pc.subtract(micros, _remainder(micros, shape.width)).cast(TIME)
        columns = {FROM: begins, **{name: _text(readings[name]) for name in shape.keys}}
        wanted: list[tuple[str, str]] = [(FROM, "count")]
        for name in shape.numbers:
            columns[f"{name} value"] = _number(readings[name])
            wanted += [(f"{name} value", each) for each in ("count", "min", "max", "sum")]
        grouped = pa.table(columns).group_by(shape.grouped).aggregate(wanted)
        renamed = {f"{FROM}_count": COUNT}
        for name in shape.numbers:
            renamed |= {f"{name} value_{each}": f"{name}_{each}" for each in _EACH}
        part = grouped.rename_columns([renamed.get(name, name) for name in grouped.column_names])
        self._parts.append(part)
        self._pending += part.num_rows
        if self._pending > _PENDING_ROWS:
            self._parts = [self._merged()]
            self._pending = 0

    def table(self) -> pa.Table:
        """Return a row per interval and device, in the order of `names`, sorted by `_from`."""
        merged = self._merged()
        averages = {
            f"{name}_avg": pc.divide(
                merged[f"{name}_sum"], _positive(merged[f"{name}_count"].cast(pa.float64()))
            )
            for name in self._shape.numbers
        }
        for name, values in averages.items():
            merged = merged.append_column(name, values)
        return merged.select(names(self._shape)).sort_by(FROM)

    def _merged(self) -> pa.Table:
        shape = self._shape
        if not self._parts:
            return _empty(shape)
        aggregated: list[tuple[str, str]] = [(COUNT, "sum")]
        for name in shape.numbers:
            aggregated += [(f"{name}_{each}", _AGAIN[each]) for each in _EACH]
        both = pa.concat_tables(self._parts)
        grouped = both.group_by(shape.grouped).aggregate(aggregated)
        plain = {f"{name}_{how}": name for name, how in aggregated}
        return grouped.rename_columns([plain.get(name, name) for name in grouped.column_names])


_EACH: Final = ("count", "min", "max", "sum")
_AGAIN: Final = {"count": "sum", "min": "min", "max": "max", "sum": "sum"}


def names(shape: SumsShape) -> list[str]:
    """Return the names of a roll-up's columns."""
    each = [f"{name}_{what}" for name in shape.numbers for what in (*_EACH, "avg")]
    return [*shape.grouped, COUNT, *each]


def arrow_schema(shape: SumsShape) -> pa.Schema:
    """Return the schema of a roll-up's rows."""
    types = {FROM: TIME, COUNT: pa.int64()}
    types |= dict.fromkeys(shape.keys, pa.string())
    for name in shape.numbers:
        types |= {f"{name}_{what}": pa.float64() for what in ("min", "max", "sum", "avg")}
        types[f"{name}_count"] = pa.int64()
    return pa.schema([(name, types[name]) for name in names(shape)])


def _empty(shape: SumsShape) -> pa.Table:
    return arrow_schema(shape).empty_table()


def _remainder(micros: pa.ChunkedArray, width: int) -> pa.ChunkedArray:
    """Return the time since the interval began, also before 1970."""
    quotient = pc.divide(micros, width)  # toward zero
    rest = pc.subtract(micros, pc.multiply(quotient, width))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, width), rest)


def _number(values: pa.ChunkedArray) -> pa.ChunkedArray:
    numbers = values.cast(pa.float64(), safe=False)
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(pa.string())


def _positive(counts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(counts, 0.0), pa.scalar(None, pa.float64()), counts)
