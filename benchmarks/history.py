"""Cost of a question of the past, beside DuckDB on the same files.

    python benchmarks/history.py [--quick] [--no-spark] [--sensors N] [--days N] [--json]

A lake is filled with readings of some sensors over some days, one a second, and with links. Asked
are an hour of it, the groups of a day, what the source showed at a time, a window at that time, and
the closure of the links. Wall milliseconds, median of several rounds, from plan to rows of Python
values; files are in the cache of the system.

    spark    the executor of the static engine; recursions in rounds
    local    the executor of `--no-spark`: the reference evaluator in this process, where few enough
             rows are read
    duckdb   the same question in SQL on the files that the lake names

`read` says how much EXPLAIN promises: at most so many rows and megabytes of so many files. How to
read it: only ratios within one run mean anything. Every engine must give the same rows.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks._figures import print_tables
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import EvaluationError, StaticExecutor
from static_engine.history.past_readings import PastReadings, past_of
from static_engine.lake.kept_readings import TIME
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.readings_files import write_readings
from static_engine.sources.table_locations import Locations
from static_engine.tables.table_store import TableStore
from streamsql.algebra.operators import Plan
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.history.past_plans import fixed
from streamsql.syntax import CreateSource, Query, parse_script, parse_statement

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOON = 20_000 * DAY + DAY // 2
SCRIPT = """
CREATE SOURCE climate (sensor INTEGER, celsius DOUBLE, ts TIMESTAMP, KEY (sensor))
  WITH (ttl = '1 h');
CREATE LINK SOURCE wire (src TEXT, dst TEXT, cost DOUBLE);
"""
WIRES = "wire FOR SYSTEM_TIME AS OF NOW"
KEPT = "read_parquet($files, union_by_name = true)"


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the past, and the same in DuckDB's SQL."""

    source: str
    text: str
    sql: str


QUESTIONS = {
    "an hour": Question(
        "climate",
        "SELECT COUNT(*), MAX(celsius) FROM climate "
        "FOR SYSTEM_TIME FROM NOW - INTERVAL '2 h' TO NOW - INTERVAL '1 h'",
        f"SELECT COUNT(*), MAX(celsius) FROM {KEPT} WHERE _event_time >= $at - INTERVAL 2 HOUR "
        "AND _event_time < $at - INTERVAL 1 HOUR",
    ),
    "groups of a day": Question(
        "climate",
        "SELECT sensor, MIN(celsius), MAX(celsius) FROM climate "
        "FOR SYSTEM_TIME FROM NOW - INTERVAL '1 day' TO NOW GROUP BY sensor",
        f"SELECT sensor, MIN(celsius), MAX(celsius) FROM {KEPT} "
        "WHERE _event_time >= $at - INTERVAL 1 DAY AND _event_time < $at GROUP BY sensor",
    ),
    "as of a time": Question(
        "climate",
        "SELECT sensor, celsius FROM climate FOR SYSTEM_TIME AS OF NOW",
        f"SELECT sensor, celsius FROM {KEPT} WHERE _event_time > $at - INTERVAL 1 HOUR "
        "AND _event_time <= $at QUALIFY ROW_NUMBER() OVER (PARTITION BY sensor "
        "ORDER BY _event_time DESC, _seq DESC, _place DESC) = 1",
    ),
    "a closure": Question(
        "wire",
        "WITH RECURSIVE r(src, dst) AS (SELECT src, dst FROM "
        f"{WIRES} UNION SELECT r.src, w.dst FROM r JOIN {WIRES} AS w ON w.src = r.dst) "
        "SELECT COUNT(*) FROM r",
        f"WITH RECURSIVE w AS (SELECT DISTINCT src, dst FROM {KEPT} WHERE _event_time <= $at), "
        "r AS (SELECT * FROM w UNION SELECT r.src, w.dst FROM r JOIN w ON w.src = r.dst) "
        "SELECT COUNT(*) FROM r",
    ),
}


def catalog() -> Catalog:
    """Return the sources that are kept."""
    made = Catalog()
    for statement in parse_script(SCRIPT):
        if isinstance(statement, CreateSource):
            made.define(define(statement, made))
    return made


def fill(lake: Lake, known: Catalog, *, sensors: int, days: int, links: int) -> int:
    """Keep a reading a second of each sensor, and links; return how many readings."""
    seconds = days * 86_400
    for part in range(days):
        times = NOON - (np.arange(86_400) + part * 86_400) * SECOND
        when = np.repeat(times, sensors)
        which = np.tile(np.arange(sensors), len(times))
        celsius = 20.0 + (which * 7919 + when // SECOND) % 100 / 10
        _keep(lake, known, "climate", [which, celsius, when], when, part)
    numbers = np.arange(links)
    src = [f"n{n}" for n in numbers % 211]
    dst = [f"n{n}" for n in (numbers * 37 + 11) % 199]
    when = np.full(links, NOON - 60 * SECOND)
    _keep(lake, known, "wire", [src, dst, np.ones(links)], when, 0)
    return seconds * sensors


def _keep(  # noqa: PLR0913, PLR0917 - whose rows, and when they were
    lake: Lake, known: Catalog, name: str, columns: list[object], when: np.ndarray, part: int
) -> None:
    definition = known.find(name)
    if not isinstance(definition, SourceDefinition):
        raise TypeError(name)
    table, _ = lake.ensure(definition)
    schema = lake.schema_of(definition, table)
    count = len(when)
    times = pa.array(when.astype("int64")).cast(TIME)
    own = [
        *(["gw-1"] * count, np.ones(count, "int64"), np.arange(count) + part * count),
        *(np.zeros(count, "int32"), times, np.zeros(count, bool), times),
    ]
    arrays = [
        value if isinstance(value, pa.Array) else pa.array(value) for value in [*columns, *own]
    ]
    cast = [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
    rows = pa.Table.from_arrays(cast, schema=schema)
    files = write_readings(rows, table.location(), f"bench-{part}", table.io)
    lake.commit(table, files, part, "bench")


def plan_of(text: str, known: Catalog) -> Plan:
    """Return the plan of a question that is asked at noon."""
    query = parse_statement(text)
    if not isinstance(query, Query):
        raise TypeError(text)
    return fixed(bind_query(query, known).plan, NOON)


def timed(run: Callable[[], object], rounds: int) -> float:
    """Return the median of wall milliseconds, without a first run."""
    run()
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        found.append((time.perf_counter() - began) * 1_000)
    return median(found)


def in_duckdb(connection: duckdb.DuckDBPyConnection, lake: Lake, question: Question) -> Delta:
    """Return the answer of DuckDB on the files of the source."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=NOON)
    files = [path.removeprefix("file://") for path in lake.plan(question.source).paths]
    found: Delta = {}
    for row in connection.execute(question.sql, {"files": files, "at": at}).fetchall():
        found[row] = found.get(row, 0) + 1
    return found


def measure(
    lake: Lake, known: Catalog, engines: dict[str, StaticExecutor], past: PastReadings, rounds: int
) -> dict[str, dict[str, float | None]]:
    """Return, per question, what is read and milliseconds per engine.

    Raises:
        SystemExit: Two engines do not agree.
    """
    found: dict[str, dict[str, float | None]] = {}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, question in QUESTIONS.items():
            plan = plan_of(question.text, known)
            found_of = (past.scan(scan).lake for scan in past_of(plan))
            scans = [scan for scan in found_of if scan is not None]
            wanted = in_duckdb(connection, lake, question)
            figures: dict[str, float | None] = {
                "read: rows": sum(scan.rows for scan in scans),
                "read: MB": sum(scan.bytes for scan in scans) / 1e6,
                "read: files": sum(len(scan.files) for scan in scans),
            }
            for label, engine in engines.items():
                figures[label] = _of(engine, plan, wanted, rounds, f"{label}, {name}")
            figures["duckdb"] = timed(lambda q=question: in_duckdb(connection, lake, q), rounds)  # type: ignore[misc]
            found[name] = figures
    return found


def _of(engine: StaticExecutor, plan: Plan, wanted: Delta, rounds: int, what: str) -> float | None:
    """Return the milliseconds of an engine; None: it does not read so much."""
    try:
        answer = engine.evaluate(plan)
    except EvaluationError:
        return None
    if answer != wanted:
        raise SystemExit(f"{what}: another answer than DuckDB's")
    return timed(lambda: engine.evaluate(plan), rounds)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Questions of the past, beside DuckDB.")
    parser.add_argument("--quick", action="store_true", help="one sensor, two days, two rounds")
    parser.add_argument("--sensors", type=int, help="a reading a second of each")
    parser.add_argument("--days", type=int, help="before noon of the last")
    parser.add_argument("--no-spark", action="store_true", help="this process and DuckDB only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    sensors, days, links = (1, 2, 500) if options.quick else (100, 7, 3_000)
    sensors, days = options.sensors or sensors, options.days or days
    rounds = 2 if options.quick else 5
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        folder, known = Path(name), catalog()
        lake = Lake(LakeSettings(f"sqlite:///{folder / 'catalog.db'}", str(folder / "lake")))
        count = fill(lake, known, sensors=sensors, days=days, links=links)
        past = PastReadings(lake)
        store = TableStore(Locations(folder), folder / "snapshots")
        engines: dict[str, StaticExecutor] = {}
        if not options.no_spark:
            # Imported here: without Spark it need not be installed.
            from static_engine.spark.spark_executor import SparkExecutor  # noqa: PLC0415
            from static_engine.spark.spark_session import (  # noqa: PLC0415
                SessionSettings,
                start_session,
            )

            session = SessionSettings(folder / "spark", archive=False)
            engines["spark"] = SparkExecutor(start_session(session, lambda _: None), store, past)
        engines["local"] = LocalExecutor(store, past, max_past_rows=200_000)
        try:
            asked = measure(lake, known, engines, past, rounds)
        finally:
            for engine in engines.values():
                engine.stop()
    if options.json:
        print(json.dumps({"benchmark": "history", "readings": count, "asked": asked}, indent=2))
        return 0
    print(f"{count:,} readings of {sensors} sensors in {days} days")
    print_tables({"milliseconds": asked}, digits=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
