"""The join that `joins_by_key` makes at a site, on Spark over a Parquet copy that it has cached."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from static_engine.spark.spark_session import SessionSettings, start_session


@contextmanager
def cached_copy(folder: Path, rows: int) -> Iterator[Any]:
    """Start a session and yield the table `devices` of so many rows, cached in memory."""
    numbers = np.arange(rows)
    owners = pa.array([f"owner {n}" for n in range(997)]).take(pa.array(numbers % 997))
    table = pa.table({"id": numbers, "owner": owners, "level": numbers % 7})
    pq.write_table(table, folder / "devices.parquet", row_group_size=1_000_000)
    session = start_session(
        SessionSettings(folder / "spark", "local[2]", archive=False), lambda _text: None
    )
    try:
        copy = session.session.read.parquet(str(folder / "devices.parquet")).cache()
        copy.count()
        yield copy
    finally:
        session.stop()


def joined(folder: Path, rows: int, keys: range, changes: int) -> dict[str, float]:
    """Return the seconds of the whole join and the milliseconds of one for one more key.

    Args:
        folder: For the copy and the session.
        rows: Of the table.
        keys: That are joined with it.
        changes: Joins of one key; the median counts. The first of both kinds warms up.
    """
    with cached_copy(folder, rows) as copy:
        session = copy.sparkSession

        def seconds(of: range) -> float:
            began = time.perf_counter()
            asked = session.createDataFrame(pa.table({"id": np.array(of)}))
            found = copy.join(asked, "id", "left_semi").toArrow()
            if found.num_rows != len(of):
                raise RuntimeError(f"Spark has {found.num_rows} rows for {len(of)} keys")
            return time.perf_counter() - began

        whole = [seconds(keys) for _ in range(4)][1:]
        single = [seconds(range(n, n + 1)) for n in range(changes + 1)][1:]
    return {"s all rows": median(whole), "ms a key": median(single) * 1_000}
