"""Scans of the lake before and after its small files are put together: what is it worth?

    python benchmarks/compaction.py [--quick] [--files N] [--rows N] [--json]

A day of a source is filled as the pipeline does it: many files of some rows. Measured, before and
after compaction, in wall milliseconds, median of several rounds; files are in the system's cache:

    plan     pyiceberg finds the files of an hour
    hour     pando reads an hour
    day      pando reads the day
    duckdb   DuckDB counts and averages the day from the same files

`compaction` is the time that one process without Spark needs, in seconds, and `bytes` says how much
smaller the files are. How to read it: only ratios within one run mean anything.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks._figures import print_tables
from static_engine.care.compaction import compact
from static_engine.care.workers import LocalWorkers
from static_engine.lake.kept_readings import TIME
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.readings_files import write_readings
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
MIDNIGHT = 20_000 * DAY
SOURCE = SourceDefinition(
    "climate", SourceKind.STREAM, Schema.of(("sensor", DataType.INTEGER), ("v", DataType.DOUBLE))
)


def filled(folder: Path, files: int, rows: int) -> Lake:
    """Return a lake with a day of readings in so many files of so many rows."""
    lake = Lake(LakeSettings(f"sqlite:///{folder / 'catalog.db'}", str(folder / "lake")))
    table, _ = lake.ensure(SOURCE)
    schema = lake.schema_of(SOURCE, table)
    random = np.random.default_rng(7)
    paths = []
    for number in range(files):
        step = DAY // (files * rows)
        at = MIDNIGHT + (number * rows + np.arange(rows)) * step
        times = pa.array(at, pa.int64()).cast(TIME)
        columns = [
            pa.array(random.integers(0, 1_000, rows)),
            pa.array(20 + random.standard_normal(rows)),
            pa.array(["gw-1"] * rows),
            pa.array([1] * rows, pa.int64()),
            pa.array([number] * rows, pa.int64()),
            pa.array(range(rows), pa.int32()),
            times,
            pa.array([False] * rows),
            times,
        ]
        batch = pa.Table.from_arrays(columns, schema=schema)
        paths += write_readings(batch, table.location(), f"batch-{number}", table.io)
    lake.commit(table, paths, 0, "benchmark")
    return lake


def _milliseconds(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1_000)
    return median(taken)


def _figures(lake: Lake, rounds: int) -> dict[str, float]:
    noon = MIDNIGHT + 12 * HOUR

    def read(since: int, until: int) -> int:
        return sum(batch.num_rows for batch in lake.plan("climate", since, until).batches())

    paths = [path.removeprefix("file://") for path in lake.plan("climate").paths]
    asked = "SELECT count(*), avg(v) FROM read_parquet(?)"
    return {
        "files": float(len(paths)),
        "bytes": float(lake.plan("climate").bytes),
        "plan ms": _milliseconds(lambda: lake.plan("climate", noon, noon + HOUR), rounds),
        "hour ms": _milliseconds(lambda: read(noon, noon + HOUR), rounds),
        "day ms": _milliseconds(lambda: read(MIDNIGHT, MIDNIGHT + DAY), rounds),
        "duckdb ms": _milliseconds(lambda: duckdb.execute(asked, [paths]).fetchall(), rounds),
    }


def measured(files: int, rows: int, rounds: int) -> Mapping[str, Mapping[str, float]]:
    """Return the figures before and after, how often more before, and the compaction's time."""
    with tempfile.TemporaryDirectory() as folder:
        lake = filled(Path(folder), files, rows)
        before = _figures(lake, rounds)
        began = time.perf_counter()
        compact(lake.table("climate"), LocalWorkers(), lambda _done, _total: True, 2)
        seconds = time.perf_counter() - began
        after = _figures(lake, rounds)
    return {
        "before": before,
        "after": after,
        "ratio": {name: before[name] / after[name] for name in before},
        "compaction": {"seconds": seconds, "rows a second": files * rows / seconds},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few files, one round")
    parser.add_argument("--files", type=int, default=2_000, help="of the day")
    parser.add_argument("--rows", type=int, default=500, help="of a file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    files = 20 if options.quick else options.files
    found = measured(files, options.rows, 1 if options.quick else 5)
    if options.json:
        print(json.dumps(found))
    else:
        print_tables({f"a day in {files} files of {options.rows} rows": found}, digits=1)


if __name__ == "__main__":
    main()
