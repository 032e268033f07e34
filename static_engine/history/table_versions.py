"""Versions of managed tables: the rows that a table had at a time, by Iceberg's time travel."""

from datetime import UTC, datetime

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from static_engine.lake.lake_errors import LakeError
from static_engine.lake.lake_scan import LakeFile, LakeScan
from streamsql.data.types import EARLIEST, LATEST


def version_at(table: Table, name: str, columns: tuple[str, ...], micros: int) -> LakeScan | None:
    """Return what a table held at a time, in microseconds since 1970; None: nothing yet.

    Raises:
        LakeError: That version is not kept any more.
    """
    snapshot = table.snapshot_as_of_timestamp(micros // 1_000)
    if snapshot is None:
        _check_begins(table, name)
        return None
    fields = columns or tuple(field.name for field in table.schema().fields[:1])
    scan = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=fields)
    files = sorted((task.file for task in scan.plan_files()), key=lambda file: file.file_path)
    kept = tuple(LakeFile(f.file_path, f.record_count, f.file_size_in_bytes) for f in files)
    version = f"{table.metadata.table_uuid} {snapshot.snapshot_id}"
    return LakeScan(name, fields, EARLIEST, LATEST, kept, version, scan)


def _check_begins(table: Table, name: str) -> None:
    """Check that a table was empty before its oldest version."""
    oldest: Snapshot | None = min(
        table.snapshots(), key=lambda snapshot: snapshot.timestamp_ms, default=None
    )
    # Snapshots of a table are numbered from 1; expiry takes the first ones away.
    if oldest is not None and (oldest.sequence_number or 0) > 1:
        when = datetime.fromtimestamp(oldest.timestamp_ms / 1_000, UTC).isoformat()
        raise LakeError(
            f"table {name} is not kept as it was then: its oldest version is of {when}",
            hint="ask for a later time",
        )
