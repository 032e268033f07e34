"""Writes readings as Parquet files: one per day of event time, sorted by event time."""

from collections.abc import Iterator
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from static_engine.lake.kept_readings import EVENT_TIME

ROW_GROUP_ROWS = 100_000


def write_readings(rows: pa.Table, location: str, name: str, io: FileIO) -> list[str]:
    """Write rows of a kept source into new files; return their addresses.

    Args:
        rows: In the schema of `kept_readings.arrow_schema`.
        location: Address of the table.
        name: Of the files in the folders of their days; a file of that name is replaced.
        io: Of the table.

    Raises:
        OSError: They cannot be written.
    """
    written = []
    for day, part in by_day(rows):
        address = f"{location}/data/day={day.isoformat()}/{name}.parquet"
        with io.new_output(address).create(overwrite=True) as output, pa.PythonFile(output) as file:
            pq.write_table(part, file, compression="zstd", row_group_size=ROW_GROUP_ROWS)
        written.append(address)
    return written


def by_day(rows: pa.Table) -> Iterator[tuple[date, pa.Table]]:
    """Yield each day (UTC) of event time with its rows, sorted by event time."""
    rows = rows.sort_by(EVENT_TIME)
    days = pc.floor_temporal(rows.column(EVENT_TIME), unit="day")
    for day in pc.unique(days):
        yield day.as_py().date(), rows.filter(pc.equal(days, day))
