"""Rows of a DataFrame that tasks write to files, from which this process reads them in batches."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from static_engine.sources.values.conversion import arrow_schema
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

_GROUP_BYTES = 16 << 20
"""So much a task holds in memory before it writes; by default it is 128 MB, and tasks are many."""


class SavedRows:
    """Rows in files that workers and this process see.

    Args:
        schema: Of the rows; it has columns.
        folder: Ours alone; removed behind the last of the `batches`.
        most: One row more than this is saved at most.
    """

    def __init__(self, schema: Schema, folder: Path, most: int) -> None:
        self._schema, self._folder, self._most = schema, folder, most

    def save(self, frame: DataFrame, *, fits: bool = False) -> None:
        """Write the rows of a frame of `lower_plan`.

        Args:
            frame: Of the rows.
            fits: Whether it certainly has no more than `most` rows. Then every task writes its own.
        """
        self.discard()
        # Parquet has no columns that are NULL and nothing else.
        columns = [
            fn.col(name).cast("string") if dtype == DataType.NULL else fn.col(name)
            for name, dtype in zip(frame.columns, self._schema.dtypes, strict=True)
        ]
        rows = frame.select(*columns)
        if not fits:  # one task counts them, to which all others send theirs
            rows = rows.limit(self._most + 1)
        rows.write.option("parquet.block.size", _GROUP_BYTES).parquet(str(self._folder))

    def count(self) -> int:
        """Return how many rows were saved."""
        return sum(pq.read_metadata(file).num_rows for file in self._files())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in `arrow_schema`."""
        kinds = arrow_schema(self._schema)
        try:
            for path in self._files():
                with pq.ParquetFile(path, memory_map=False) as file:
                    for batch in file.iter_batches():
                        columns = map(pa.Array.cast, batch.columns, kinds.types)
                        yield pa.RecordBatch.from_arrays(list(columns), schema=kinds)
                path.unlink()
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("part-*.parquet"))
