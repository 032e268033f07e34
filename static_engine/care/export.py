"""An interval of a table as one file that other programs read: Parquet or CSV."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import Table

from host.files.atomic_file import settle_file
from static_engine.care.compaction import Progress
from static_engine.care.lake_figures import time_column
from static_engine.lake.lake_errors import LakeError
from static_engine.lake.lake_scan import moment
from streamsql.data.types import EARLIEST, LATEST
from streamsql.wire.stored_tables.lake_messages import ExportFormat

MAX_FILES = 100
"""Exports that a folder holds; somebody takes them away."""


def export(  # noqa: PLR0913  (what, of when, where to)
    table: Table,
    folder: Path,
    name: str,
    form: ExportFormat,
    progress: Progress,
    *,
    since: int | None = None,
    until: int | None = None,
) -> tuple[Path, int]:
    """Write the rows of an interval into a new file; return its path and the rows.

    Args:
        table: As loaded.
        folder: Where files of exports are.
        name: Begins the name of the file.
        form: Of the file.
        progress: Takes rows written and most rows there may be; returns whether to go on.
        since: First time, in microseconds; None: from the beginning.
        until: The time after the last.

    Raises:
        LakeError: It cannot be written, or the table has no times, or it was cancelled.
    """
    time = time_column(table)
    bounded = since is not None or until is not None
    if bounded and not time:
        raise LakeError(
            f"table {'.'.join(table.name())} has no times, so it has no intervals",
            hint="leave --since and --until out",
        )
    first, last = moment(since or EARLIEST), moment(LATEST if until is None else until)
    condition = f"{time} >= '{first.isoformat()}' AND {time} < '{last.isoformat()}'"
    scan = table.scan(condition if bounded else AlwaysTrue())
    most = sum(task.file.record_count for task in scan.plan_files())
    path = _place(folder, f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:120]}.{form}")
    written = 0
    try:
        with _whole(path) as unfinished:
            reader = scan.to_arrow_batch_reader()
            with _writer(unfinished, reader.schema, form) as writer:
                progress(0, most)
                for batch in reader:
                    writer.write_batch(batch)
                    written += batch.num_rows
                    if not progress(written, most):
                        raise LakeError("the export was cancelled; its file is gone")
    except (OSError, pa.ArrowException) as error:
        raise LakeError(
            f"the export of {'.'.join(table.name())} failed: {error}",
            hint=f"look whether {folder} is writable and has room",
        ) from error
    return path, written


def _place(folder: Path, name: str) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sum(1 for _ in folder.iterdir())
    except OSError as error:
        raise LakeError(f"folder {folder} cannot be used: {error}") from error
    if there >= MAX_FILES:
        raise LakeError(
            f"folder {folder} holds {there} files; the max is {MAX_FILES}",
            hint="move or delete those that are no longer needed",
        )
    path = folder / name
    if path.exists():
        raise LakeError(f"there is an export {path} already", hint="move or delete it first")
    return path


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Give a file beside the final one, which it becomes when it is complete and on disk."""
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        yield unfinished
        settle_file(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _writer(path: Path, schema: pa.Schema, form: ExportFormat) -> Any:
    if form == ExportFormat.CSV:
        return pa_csv.CSVWriter(path, schema)
    return pq.ParquetWriter(path, schema, compression="zstd")
