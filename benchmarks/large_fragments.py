"""Stored parts of queries over tables of up to 20,000,000 rows, beside DuckDB on the same files.

    python -m benchmarks.large_fragments [--rows 10000 1000000 20000000] [--quick] [--json]
                                         [--out FOLDER]

A Parquet table `desks` and a CSV table `rooms` of 1,000 rows. Per query and size, in turns:

    first    from a query that has just come to its rows: reads what it needs of the files
    again    the same over what was read, as after a change of the other table
    duckdb   one connection for each; DuckDB reads the files each time

Ours are the parts of the service: plans over needed columns and row groups, and the executor that
it would choose, Spark from so many rows on as it measures at its start. Rows are compared. Memory:
peak of this process and of Spark's Java, after each size. Only ratios within one run mean anything.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from benchmarks._figures import print_tables, write_results
from federated_optimizer.rules import LOGICAL_RULES, WIDTH_RULES, run_rules
from static_engine.evaluation.executor_choice import ExecutorChoice
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import StaticExecutor, tables_of
from static_engine.history.past_readings import PastReadings
from static_engine.sources.table_locations import Locations
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark, SessionSettings, start_session
from static_engine.tables.narrowed_tables import NarrowedTables
from static_engine.tables.table_store import TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Plan
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta, from_rows
from streamsql.errors import FederationError
from streamsql.syntax import CreateSource, Query, parse_script, parse_statement

ROOMS = 1_000
SIZES = (10_000, 1_000_000, 20_000_000)
SCRIPT = """
CREATE TABLE desks (id INTEGER, room INTEGER, x DOUBLE, size INTEGER, owner TEXT)
  WITH (source = 'parquet', path = 'desks.parquet');
CREATE TABLE rooms (room INTEGER, level INTEGER) WITH (source = 'csv', path = 'rooms.csv');
"""
QUERIES = {
    "1,000 rows of a range": "SELECT id, room, x FROM desks WHERE id >= {last}",
    "groups": "SELECT room, COUNT(*) AS n, MAX(x) AS top FROM desks GROUP BY room",
    "join and groups": "SELECT r.level, COUNT(*) AS n, MAX(d.x) AS top FROM desks d "
    "JOIN rooms r ON d.room = r.room GROUP BY r.level",
}


def fill(folder: Path, rows: int) -> None:
    """Write both tables."""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT n AS id, n * 7919 % {ROOMS} AS room, (n % 9973) / 8.0 AS x, "
            f"n % 97 AS size, 'owner ' || (n % 50000) AS owner FROM range({rows}) AS t(n)) "
            f"TO '{folder / 'desks.parquet'}' (FORMAT parquet)"
        )
        connection.execute(
            f"COPY (SELECT n AS room, n % 7 AS level FROM range({ROOMS}) AS t(n)) "
            f"TO '{folder / 'rooms.csv'}' (FORMAT csv, HEADER)"
        )


def catalog() -> Catalog:
    """Return the catalog with both tables."""
    found = Catalog()
    for statement in parse_script(SCRIPT):
        if not isinstance(statement, CreateSource):
            raise TypeError(f"no table is defined by {statement.text}")
        found.define(define(statement, found))
    return found


def plan_of(text: str, known: Catalog) -> Plan:
    """Return the plan of a query, as the planner leaves it to the static engine."""
    statement = parse_statement(text)
    if not isinstance(statement, Query):
        raise TypeError(f"no query: {text}")
    return run_rules(run_rules(bind_query(statement, known).plan, LOGICAL_RULES), WIDTH_RULES)


@dataclass
class Started:
    """An engine that has started."""

    executor: StaticExecutor | None
    problem: FederationError | None = None


class Ours:
    """The static engine's parts over one query, just started.

    Args:
        folder: With the tables.
        plan: Of the query.
        rows: Of the table `desks`.
        spark: A session.
    """

    def __init__(self, folder: Path, plan: Plan, rows: int, spark: RunningSpark) -> None:
        self.store = TableStore(Locations(folder), folder / "snapshots")
        watch = TableWatch(self.store)
        watch.define(tuple(d for d in catalog() if isinstance(d, SourceDefinition)))
        narrowed = NarrowedTables(watch.definition, lambda: {"desks": rows, "rooms": ROOMS})
        plans, parts = narrowed.plans([plan])
        watch.narrow(parts)
        self.plan = plans[plan]
        self._watch = watch
        self.way = ""
        local = LocalExecutor(self.store)
        engine = Started(SparkExecutor(spark, self.store))
        self._choice = ExecutorChoice(engine, local, self.store, PastReadings(None), 0, -1)

    def first(self) -> Delta:
        """Read what is needed, and evaluate."""
        self._watch.poll(tables_of(self.plan))
        problem = next(
            (p for name in tables_of(self.plan) if (p := self._watch.problem(name))), None
        )
        if problem is not None:
            raise problem
        return self.again()

    def again(self) -> Delta:
        """Evaluate over what was read."""
        executor = self._choice.executor(self.plan)
        if executor is None:
            raise RuntimeError("nobody evaluates the query")
        self.way = "Spark" if isinstance(executor, SparkExecutor) else "own process"
        return executor.evaluate(self.plan)


def duckdb_rows(folder: Path, text: str) -> Delta:
    """Return the rows that DuckDB gives, read from the files."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW desks AS FROM '{folder / 'desks.parquet'}'")
        connection.execute(f"CREATE VIEW rooms AS FROM '{folder / 'rooms.csv'}'")
        return from_rows(connection.execute(text).fetchall())


def timed(work: Callable[[], Delta]) -> tuple[float, Delta]:
    """Return seconds and the result."""
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found


def compare(
    folder: Path, rows: int, rounds: int, spark: RunningSpark
) -> dict[str, dict[str, float]]:
    """Measure every query over tables of one size.

    Raises:
        RuntimeError: DuckDB has other rows.
    """
    known, found = catalog(), {}
    for name, pattern in QUERIES.items():
        text = pattern.format(last=rows - 1_000)
        plan = plan_of(text, known)
        times: dict[str, list[float]] = {"first": [], "again": [], "duckdb": []}
        by_spark = 0.0
        for _ in range(rounds):
            ours = Ours(folder, plan, rows, spark)
            first, answer = timed(ours.first)
            again, same = timed(ours.again)
            other, theirs = timed(lambda query=text: duckdb_rows(folder, query))  # type: ignore[misc]
            by_spark = float(ours.way == "Spark")
            if not answer == same == theirs:
                raise RuntimeError(f"DuckDB has other rows: {name}, {rows} rows")
            for way, seconds in zip(times, (first, again, other), strict=True):
                times[way].append(seconds * 1_000)
        middle = {way: median(values) for way, values in times.items()}
        found[f"{name}, {rows:,} rows"] = {
            "by Spark": by_spark,
            **{f"{way}, ms": value for way, value in middle.items()},
            "first/duckdb": middle["first"] / middle["duckdb"],
            "again/duckdb": middle["again"] / middle["duckdb"],
        }
    return found


def peak_mb(pid: int | None) -> float | None:
    """Return the most memory that a process had, in MB; None: it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return None
    line = next((line for line in text.splitlines() if line.startswith("VmHWM")), "VmHWM: 0")
    return int(line.split()[1]) / 1_000


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Stored parts of queries over large tables.")
    parser.add_argument("--rows", type=int, nargs="+", default=list(SIZES), help="of the table")
    parser.add_argument("--quick", action="store_true", help="one small table, one round")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="folder for large-fragments.json")
    options = parser.parse_args(argv)
    sizes = [20_000] if options.quick else options.rows
    tables: dict[str, dict[str, Any]] = {"milliseconds": {}, "peak memory, MB": {}}
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        folder = Path(name)
        spark = start_session(
            SessionSettings(folder / "spark", "local[2]", archive=False), lambda _text: None
        )
        try:
            for rows in sizes:
                fill(folder, rows)
                rounds = 1 if options.quick else 3
                tables["milliseconds"] |= compare(folder, rows, rounds, spark)
                tables["peak memory, MB"][f"{rows:,} rows"] = {
                    "this process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000,
                    "Java": peak_mb(spark.jvm_pid),
                }
        finally:
            spark.stop()
    result = {"benchmark": "large_fragments", **tables}
    write_results(options.out, "large-fragments.json", result)
    if options.json:
        print(json.dumps(result, indent=2))
        return 0
    print_tables(tables, digits=2)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
