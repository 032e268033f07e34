"""Days of readings that are no longer kept leave the lake, a whole day at a time."""

from pyiceberg.table import Table

from static_engine.lake.lake_commits import retried
from static_engine.lake.lake_scan import moment
from streamsql.catalog.keep_options import DAY
from streamsql.data.types import EARLIEST


def first_kept(keep: int, now: int) -> int:
    """Return when the first day begins of which something is kept.

    Args:
        keep: How long readings are kept, in microseconds of event time.
        now: Microseconds since 1970.
    """
    return (now - keep) // DAY * DAY


def drop_before(table: Table, first: int, column: str) -> int:
    """Drop the rows of days before a time, without reading them; return how many.

    Args:
        table: Parted by the day of a column.
        first: The beginning of a day (UTC), in microseconds since 1970.
        column: The one it is parted by.

    Raises:
        LakeBusyError: Others change the table all the time.
    """
    if first <= EARLIEST:
        return 0
    condition = f"{column} < '{moment(first).isoformat()}'"
    gone = 0

    def attempt() -> bool:
        nonlocal gone
        table.refresh()
        gone = sum(task.file.record_count for task in table.scan(condition).plan_files())
        if gone:
            table.delete(condition, snapshot_properties={"pando.care": "keep"})
        return bool(gone)

    retried(attempt, table)
    return gone
