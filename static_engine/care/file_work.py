"""Tasks of workers on files of the lake: rewrite several as one, and sum up a day.

A task is pickled: the lake made it itself, and it is as large as the names of its files. Reading is
pyiceberg's, so that files from before a column was added or renamed are read like all others.
"""

import pickle
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask
from pyiceberg.table.metadata import TableMetadata

from static_engine.care.sums import Sums, SumsShape

ROW_GROUP_ROWS = 100_000
MAX_PLAIN_BYTES = 1 << 30
"""Of the rows that are put together in memory at once."""


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Files of one part of a table that become one.

    Attributes:
        metadata: Of the table.
        options: Of the store of files.
        files: What is read.
        folder: Address in which the new file is written.
        order: Column that its rows are sorted by; empty: as they are.
    """

    metadata: TableMetadata
    options: dict[str, str]
    files: tuple[FileScanTask, ...]
    folder: str
    order: str


@dataclass(frozen=True, slots=True)
class SumTask:
    """Files that are summed up into one new file in `folder`."""

    metadata: TableMetadata
    options: dict[str, str]
    files: tuple[FileScanTask, ...]
    shape: SumsShape
    folder: str


def rewrite(pickled: bytes) -> bytes:
    """Write the rows of a `RewriteTask` into one new file; return its address.

    Nothing is written where the rows would take more than `MAX_PLAIN_BYTES` of memory: what
    compresses well may be any size. Then the address is empty.
    """
    task: RewriteTask = pickle.loads(pickled)  # noqa: S301  (the lake's own)
    io = load_file_io(task.options, task.metadata.location)
    if len(task.files) > 1 and _plain_bytes(io, task.files) > MAX_PLAIN_BYTES:
        return b""
    rows = pa.Table.from_batches(
        _batches(task.metadata, io, task.files, None),
        schema=None if task.files else pa.schema([]),
    )
    if task.order:
        rows = rows.sort_by(task.order)
    address = f"{task.folder}/compacted-{uuid.uuid4().hex}.parquet"
    with io.new_output(address).create() as output, pa.PythonFile(output) as file:
        pq.write_table(_plain(rows), file, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    return address.encode()


def _plain_bytes(io: FileIO, files: tuple[FileScanTask, ...]) -> int:
    """Return the bytes of all columns of files before compression, by their footers."""
    total = 0
    for task in files:
        with io.new_input(task.file.file_path).open() as source, pa.PythonFile(source) as file:
            footer = pq.read_metadata(file)
        total += sum(footer.row_group(n).total_byte_size for n in range(footer.num_row_groups))
        if total > MAX_PLAIN_BYTES:
            break
    return total


def sum_up(pickled: bytes) -> bytes:
    """Write the sums of a `SumTask`; return the file's address, or nothing if there are none.

    Memory grows with the sums, not with the readings.
    """
    task: SumTask = pickle.loads(pickled)  # noqa: S301  (the lake's own)
    io = load_file_io(task.options, task.metadata.location)
    sums = Sums(task.shape)
    for batch in _batches(task.metadata, io, task.files, task.shape.read):
        sums.add(batch)
    rows = sums.table()
    if not rows.num_rows:
        return b""
    address = f"{task.folder}/{uuid.uuid4().hex}.parquet"
    with io.new_output(address).create() as output, pa.PythonFile(output) as file:
        pq.write_table(rows, file, compression="zstd")
    return address.encode()


def _batches(
    metadata: TableMetadata,
    io: FileIO,
    files: tuple[FileScanTask, ...],
    names: tuple[str, ...] | None,
) -> Iterator[pa.RecordBatch]:
    schema = metadata.schema()
    projected = schema if names is None else schema.select(*names)
    return ArrowScan(metadata, io, projected, AlwaysTrue()).to_record_batches(files)


def _plain(rows: pa.Table) -> pa.Table:
    """Return rows as files are added to a table: their columns are known by name."""
    fields = [pa.field(field.name, _small(field.type)) for field in rows.schema]
    return rows.cast(pa.schema(fields))


def _small(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind
