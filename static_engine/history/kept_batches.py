"""Batches of the lake as rows of a scan: columns by position, times as microseconds."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from static_engine.lake.kept_columns import KeptColumns
from static_engine.lake.kept_readings import OWN_NAMES
from static_engine.sources.values.conversion import arrow_schema
from streamsql.algebra.operators import Scan, ScanPart
from streamsql.data.schema import Schema


@dataclass(frozen=True, slots=True)
class KeptLayout:
    """Names in the lake of the columns of a scan.

    Attributes:
        schema: Of the scan: its columns, then what the lake keeps of a row.
        columns: Names in the lake, one per column of the schema; None: the lake has none of it.
    """

    schema: Schema
    columns: tuple[str | None, ...]

    @property
    def read(self) -> tuple[str, ...]:
        """Names in the lake of what is read, each once."""
        return tuple(dict.fromkeys(name for name in self.columns if name is not None))


def layout_of(scan: Scan, kept: KeptColumns) -> KeptLayout:
    """Return where a scan's columns stand: those of its names, types and units."""
    units: Sequence[str] = scan.units or ("",) * len(scan.columns)
    found = [
        kept.find(field.name, field.dtype, unit)
        for field, unit in zip(scan.columns.fields, units, strict=True)
    ]
    names = [None if column is None else column.column for column in found]
    own = OWN_NAMES if scan.part == ScanPart.KEPT else ()
    return KeptLayout(scan.schema, (*names, *own))


def kept_batch(batch: pa.RecordBatch, layout: KeptLayout) -> pa.RecordBatch:
    """Return a batch of the lake as rows of a scan, columns c0, c1, … in its order."""
    schema = arrow_schema(layout.schema)
    arrays = [
        pa.nulls(batch.num_rows, field.type) if name is None else _plain(batch[name], field.type)
        for name, field in zip(layout.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted)
