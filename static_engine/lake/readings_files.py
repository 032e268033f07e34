"""Writes readings as Parquet files: one per day of event time, sorted by event time."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from static_engine.lake.kept_readings import EVENT_TIME

ROW_GROUP_ROWS = 100_000


def write_readings(
    rows: pa.Table, location: str, name: str, io: FileIO, time: str = EVENT_TIME
) -> list[str]:
    """Write rows of a table that is parted by days into new files; return their addresses.

    Args:
        rows: In the schema of the table.
        location: Address of the table.
        name: Of the files in the folders of their days; a file of that name is replaced.
        io: Of the table.
        time: Column by whose days it is parted.

    Raises:
        OSError: They cannot be written.
    """
    written = []
    for day, part in by_day(rows, time):
        address = f"{location}/data/day={day.isoformat()}/{name}.parquet"
        with io.new_output(address).create(overwrite=True) as output, pa.PythonFile(output) as file:
            pq.write_table(part, file, compression="zstd", row_group_size=ROW_GROUP_ROWS)
        written.append(address)
    return written


def remove_files(paths: Iterable[str], io: FileIO) -> None:
    """Remove files that no table has; one that stays is removed with the orphans of its table."""
    for path in paths:
        with suppress(OSError):
            io.delete(path)


def by_day(rows: pa.Table, time: str = EVENT_TIME) -> Iterator[tuple[date, pa.Table]]:
    """Yield each day (UTC) of a column with its rows, sorted by it."""
    rows = rows.sort_by(time)
    days = pc.floor_temporal(rows.column(time), unit="day")
    counts = pc.value_counts(days)
    begin = 0
    for day, count in zip(counts.field("values"), counts.field("counts").to_pylist(), strict=True):
        yield day.as_py().date(), rows.slice(begin, count)
        begin += count
