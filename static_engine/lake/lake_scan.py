"""The scan of an interval of a kept source: the files that may hold its rows."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyiceberg.table import DataScan, FileScanTask, Table

from static_engine.lake.kept_readings import EVENT_TIME
from streamsql.data.types import EARLIEST, LATEST

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A file of the lake: its address, rows and bytes, and its first and last event time."""

    path: str
    rows: int
    bytes: int
    first: int = EARLIEST
    last: int = LATEST


@dataclass(frozen=True, slots=True)
class LakeScan:
    """The rows of a table with `since <= _event_time < until`, as of one snapshot.

    Attributes:
        source: Name of the table.
        columns: Names in the lake of what is read, in this order.
        since: Microseconds since 1970.
        until: Likewise; not included.
        files: Those that may hold such rows; each is read as far as its row groups may.
        version: The same for the same rows: of the files' names.
    """

    source: str
    columns: tuple[str, ...]
    since: int
    until: int
    files: tuple[LakeFile, ...]
    version: str
    _scan: DataScan

    @property
    def rows(self) -> int:
        """Rows of all files: at most so many are read."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Bytes of all files, compressed, with all their columns."""
        return sum(file.bytes for file in self.files)

    @property
    def paths(self) -> list[str]:
        """Addresses of the files."""
        return [file.path for file in self.files]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield exactly the rows of the interval, in no particular order.

        Columns that a file was written without are NULL.
        """
        reader = self._scan.to_arrow_batch_reader()
        order = list(self.columns)
        for batch in reader:
            yield batch.select(order)


def planned(table: Table, source: str, columns: Sequence[str], since: int, until: int) -> LakeScan:
    """Return the scan of an interval as of the table's present snapshot."""
    filtered = between(since, until)
    # The filter needs its column, whoever asks for it.
    read = tuple(dict.fromkeys((*columns, EVENT_TIME)))
    scan = table.scan(row_filter=filtered, selected_fields=read)
    field = table.schema().find_field(EVENT_TIME).field_id
    tasks = sorted(scan.plan_files(), key=lambda task: task.file.file_path)
    return LakeScan(
        source,
        tuple(columns),
        since,
        until,
        tuple(_file(task, field) for task in tasks),
        _version(table, tasks),
        scan,
    )


def between(since: int, until: int) -> str:
    """Return the condition that rows are of an interval, as pyiceberg reads it.

    Args:
        since: Microseconds since 1970.
        until: Likewise; not included.
    """
    begins = f"{EVENT_TIME} >= '{moment(since).isoformat()}'"
    if until >= LATEST:  # no datetime is later than the last microsecond, which counts
        return begins
    return f"{begins} AND {EVENT_TIME} < '{moment(until).isoformat()}'"


def moment(micros: int) -> datetime:
    """Return a time as a datetime in UTC; those beyond the years 1 to 9999 as the first or last."""
    return _EPOCH + timedelta(microseconds=min(max(micros, EARLIEST), LATEST - 1))


def _file(task: FileScanTask, field: int) -> LakeFile:
    file = task.file
    first = time_of_bound((file.lower_bounds or {}).get(field), EARLIEST)
    last = time_of_bound((file.upper_bounds or {}).get(field), LATEST)
    return LakeFile(file.file_path, file.record_count, file.file_size_in_bytes, first, last)


def time_of_bound(bound: bytes | None, otherwise: int) -> int:
    """Return the microseconds in a bound of Iceberg's, or another time if there is none."""
    return otherwise if bound is None else int.from_bytes(bound, "little", signed=True)


def _version(table: Table, tasks: Sequence[FileScanTask]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{table.metadata.table_uuid}".encode())
    for task in tasks:
        digest.update(task.file.file_path.encode() + b"\0")
        for deleted in sorted(task.delete_files, key=lambda file: file.file_path):
            digest.update(deleted.file_path.encode() + b"\1")
    return digest.hexdigest()
