"""Relations as Arrow columns: what large results are kept and compared as.

A row of four columns takes 60 bytes here, and 330 as a tuple of Python objects in a dictionary.
Rows become Python objects a part at a time, when they are sent.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from static_engine.sources.values.conversion import arrow_schema
from streamsql.data.delta import Delta, add
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

PART_ROWS = 16_384
"""So many rows are Python objects at a time."""
_BATCH_ROWS = 131_072
_PART_BYTES = 4 << 20

Places = npt.NDArray[np.int64]


class Bag:
    """A relation, or a change of one. Nobody changes it.

    Each entry is a row with a weight. A row may have several entries: its weight is their sum.

    Attributes:
        schema: Of the rows.
        columns: Of one length. Texts have 64-bit offsets, so that any number fits one array.
        weights: One per entry, not 0; of a relation positive.
    """

    __slots__ = ("columns", "schema", "weights")

    def __init__(self, schema: Schema, columns: tuple[pa.Array, ...], weights: Places) -> None:
        self.schema = schema
        self.columns = columns
        self.weights = weights

    @classmethod
    def of_table(cls, schema: Schema, data: pa.Table) -> "Bag":
        """Return the rows of a table whose columns fit `arrow_schema(schema)`, each once."""
        kinds = arrow_schema(schema).types
        columns = tuple(map(_in_one, data.columns, kinds))
        return cls(schema, columns, np.ones(data.num_rows, np.int64))

    @classmethod
    def of_rows(cls, schema: Schema, rows: Delta) -> "Bag":
        """Return rows that are Python objects.

        Raises:
            ValueError: A value is not of its column's type; the text says which.
        """
        values = list(zip(*rows, strict=True)) or [()] * len(schema)
        columns = []
        for field, kind, column in zip(
            schema.fields, arrow_schema(schema).types, values, strict=True
        ):
            # Whole numbers, of any size, are doubles, too.
            doubles = field.dtype == DataType.DOUBLE
            try:
                given = [v if v is None else float(v) for v in column] if doubles else column
                columns.append(pa.array(given, type=_wide(kind)))
            except (pa.ArrowException, OverflowError, UnicodeError) as error:
                raise ValueError(f"column {field.name}: {error}") from error
        return cls(schema, tuple(columns), np.fromiter(rows.values(), np.int64, len(rows)))

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.weights)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(column.nbytes for column in self.columns)

    @property
    def total(self) -> int:
        """The number of rows, each as often as its weight says."""
        return int(self.weights.sum())

    def take(self, places: Places, weights: Places) -> "Bag":
        """Return some of the entries with other weights."""
        indices = pa.array(places)
        return Bag(self.schema, tuple(c.take(indices) for c in self.columns), weights)

    def parts(self) -> Iterator[Delta]:
        """Yield the rows as Python objects, some thousand at a time; together they are the bag."""
        for begin, end in self._slices(PART_ROWS):
            part: Delta = {}
            weights = self.weights[begin:end].tolist()
            for row, weight in zip(self._rows(begin, end), weights, strict=True):
                add(part, row, weight)
            yield part

    def keys(self, columns: Sequence[int]) -> Iterator[Row]:
        """Yield the values of some columns, at least one, of every entry in order."""
        for begin, end in self._slices(PART_ROWS):
            values = [self.columns[n].slice(begin, end - begin).to_pylist() for n in columns]
            yield from zip(*values, strict=True)

    def delta(self) -> Delta:
        """Return all rows as Python objects."""
        result: Delta = {}
        for part in self.parts():
            for row, weight in part.items():
                add(result, row, weight)
        return result

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield every row as often as its weight says, in `arrow_schema`.

        Raises:
            ValueError: A weight is negative, so this is no relation.
        """
        if len(self) and self.weights.min() < 0:
            raise ValueError("a row has a negative weight: not a relation")
        schema = arrow_schema(self.schema)
        for begin, end in self._slices(_BATCH_ROWS):
            places = pa.array(np.repeat(np.arange(end - begin), self.weights[begin:end]))
            columns = [column.slice(begin, end - begin) for column in self.columns]
            for at in range(0, len(places), _BATCH_ROWS):
                some = places.slice(at, _BATCH_ROWS)
                arrays = [
                    column.take(some).cast(kind)
                    for column, kind in zip(columns, schema.types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _rows(self, begin: int, end: int) -> Iterator[Row]:
        if not self.columns:
            return repeat((), end - begin)
        return zip(*(c.slice(begin, end - begin).to_pylist() for c in self.columns), strict=True)

    def _slices(self, most: int) -> Iterator[tuple[int, int]]:
        """Yield bounds of at most so many entries and, if they are several, `_PART_BYTES`."""
        begin = 0
        while begin < len(self):
            rows = min(most, len(self) - begin)
            while rows > 1 and self._bytes(begin, rows) > _PART_BYTES:
                rows //= 2
            yield begin, begin + rows
            begin += rows

    def _bytes(self, begin: int, rows: int) -> int:
        return sum(int(column.slice(begin, rows).nbytes) for column in self.columns)


def _in_one(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    # Arrow copies a whole column of several chunks whenever it takes texts of them.
    wide = column.cast(_wide(kind))
    return wide.chunk(0) if wide.num_chunks == 1 else wide.combine_chunks()


def _wide(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if pa.types.is_string(kind) else kind
