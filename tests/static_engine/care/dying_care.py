"""A process that cares for a table of a test's lake, and kills itself on the way.

Its arguments: the lake's folder, a moment of `MOMENTS`, and at which of its times.
"""

import itertools
import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem
from pyiceberg.catalog.sql import SqlCatalog

from static_engine.care import compaction, expiry
from static_engine.care.workers import LocalWorkers
from tests.static_engine.lake.lake_rows import lake_in

MOMENTS: dict[str, tuple[ModuleType | type, str, bool]] = {
    "half of a file is written": (pq, "write_table", True),
    "a file is written": (compaction, "rewrite", True),
    "a commit is prepared": (SqlCatalog, "commit_table", False),
    "a commit is done": (SqlCatalog, "commit_table", True),
}
"""Functions at which a compaction ends, and whether after them."""
REMOVED = "a file is removed"
"""Moment at which an expiry ends."""


class _Store:
    """The local file system; somebody has to know of each removal."""

    def __init__(self, removed: Callable[[], None]) -> None:
        self._files = LocalFileSystem()
        self._removed = removed

    def get_file_info(self, selector: object) -> object:
        return self._files.get_file_info(selector)

    def delete_file(self, path: str) -> None:
        self._files.delete_file(path)
        self._removed()


def write_half(rows: pa.Table, output: pa.NativeFile, **_options: object) -> None:
    """Write the first half of a Parquet file's bytes."""
    whole = pa.BufferOutputStream()
    with pq.ParquetWriter(whole, rows.schema) as writer:
        writer.write_table(rows)
    written = whole.getvalue()
    output.write(written.slice(0, written.size // 2))
    output.flush()


def main(folder: Path, moment: str, time: int) -> None:
    """Do the work, and end at the moment."""
    times = itertools.count(1)

    def passed() -> None:
        if next(times) == time:
            os.kill(os.getpid(), signal.SIGKILL)

    table = lake_in(folder).table("heat")
    if moment == REMOVED:
        expiry._filesystem = lambda _table: _Store(passed)  # type: ignore[assignment]
        nothing = timedelta(0)
        expiry.expire(table, datetime.now(UTC), _go_on, kept=nothing, spared=nothing)
        return
    place, name, is_after = MOMENTS[moment]
    known = write_half if moment.startswith("half") else getattr(place, name)

    def dying(*args: object, **options: object) -> object:
        if not is_after:
            passed()
        outcome = known(*args, **options)
        if is_after:
            passed()
        return outcome

    setattr(place, name, dying)
    compaction.compact(table, LocalWorkers(), _go_on, 2)


def _go_on(_done: int, _total: int) -> bool:
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
