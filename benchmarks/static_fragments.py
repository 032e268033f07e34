"""How long does Spark take to start, and what does a stored part of a query cost on each engine?

    python benchmarks/static_fragments.py [--quick] [--json]

Start: seconds to a session and to the first answer, and the JVM's CPU seconds until then; cold (no
archive of loaded classes) and warm (the archive that the cold one left).

Latency: wall milliseconds, median of several rounds in rotating order, from plan to rows of Python
values, over tables of several sizes; everything is read and warm. `difference` is what a refresh
adds: the change between two results of that size.

    spark    the executor of the static engine
    local    the executor of `--no-spark`: the reference evaluator in this process
    duckdb   the same query in SQL, when DuckDB is installed; an anchor, not a peer of the service

How to read it: only ratios within one run mean anything. Every engine must give the same rows.
"""

import argparse
import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._figures import print_tables
from static_engine.evaluation.bag_difference import difference
from static_engine.evaluation.bags import Bag
from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import StaticExecutor
from static_engine.sources.table_locations import Locations
from static_engine.sources.values.conversion import arrow_schema
from static_engine.spark.spark_executor import SparkExecutor
from static_engine.spark.spark_session import RunningSpark, SessionSettings, start_session
from static_engine.tables.table_store import TableStore
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    SourceKind,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta, from_rows
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

INT, D, T, B = DataType.INTEGER, DataType.DOUBLE, DataType.TEXT, DataType.BOOLEAN
ROOMS = 1_000


def _table(name: str, *columns: tuple[str, DataType]) -> SourceDefinition:
    options = (("source", "csv"), ("path", f"{name}.csv"))
    return SourceDefinition(name, SourceKind.TABLE, Schema.of(*columns), options=options)


DESKS = _table("desks", ("desk", INT), ("room", INT), ("x", D), ("y", D), ("owner", T))
PLACES = _table("rooms", ("room", INT), ("level", INT), ("x", D), ("y", D))


def _column(plan: Plan, position: int) -> Expression:
    field = plan.schema.fields[position]
    return Column(position, field.name, field.dtype)


JOINED = Join(DESKS.scan(), PLACES.scan(), JoinKind.INNER, ((1, 0),))
QUERIES: dict[str, tuple[Plan, str]] = {
    "filter": (
        Filter(DESKS.scan(), Call("<", (_column(DESKS.scan(), 2), Literal(5.0, D)), B)),
        "SELECT * FROM desks WHERE c2 < 5.0",
    ),
    "join, count and mean": (
        Aggregate(
            JOINED,
            (6,),
            (
                AggregateCall(AggregateFunction.COUNT_ALL, (), "n"),
                AggregateCall(AggregateFunction.AVG, (_column(JOINED, 2),), "mean"),
            ),
        ),
        "SELECT r.c1, count(*), fsum(d.c2) / count(*) FROM desks d JOIN rooms r ON d.c1 = r.c0 "
        "GROUP BY r.c1",
    ),
    "join, distance": (
        Project(
            JOINED,
            (
                _column(JOINED, 0),
                Call("DISTANCE", tuple(_column(JOINED, p) for p in (2, 3, 7, 8)), D),
            ),
            ("desk", "far"),
        ),
        "SELECT d.c0, sqrt((d.c2 - r.c2) * (d.c2 - r.c2) + (d.c3 - r.c3) * (d.c3 - r.c3)) "
        "FROM desks d JOIN rooms r ON d.c1 = r.c0",
    ),
}


def _cpu_seconds(pid: int | None) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(folder: Path, *, archive: bool) -> tuple[RunningSpark, dict[str, float]]:
    """Start a session and ask it one question; return it and the figures."""
    begun = time.perf_counter()
    spark = start_session(SessionSettings(folder, "local[2]", archive=archive), lambda _text: None)
    session = time.perf_counter() - begun
    spark.session.range(10).count()
    figures = {
        "session, s": session,
        "first answer, s": time.perf_counter() - begun,
        "JVM CPU, s": _cpu_seconds(spark.jvm_pid),
    }
    return spark, figures


def start_up(folder: Path, *, archive: bool) -> tuple[RunningSpark, dict[str, dict[str, float]]]:
    """Start cold, stop, start warm; return the second session and all figures.

    Args:
        folder: For the sessions' data.
        archive: Whether the first one leaves its classes; else both starts are cold.
    """
    cold, table = start(folder, archive=archive)
    begun = time.perf_counter()
    cold.stop()
    table["stop (writes the archive), s"] = time.perf_counter() - begun
    spark, warm = start(folder, archive=archive)
    ratios = {name: table[name] / value for name, value in warm.items()}
    return spark, {"cold": table, "warm": warm, "cold/warm": ratios}


def _fill(folder: Path, desks: int) -> None:
    rooms = "".join(f"{n},{n % 7},{n / 7:.4f},{n / 3:.4f}\n" for n in range(ROOMS))
    (folder / "rooms.csv").write_text("room,level,x,y\n" + rooms, encoding="ascii")
    text = "".join(
        f"{n},{n * 7919 % ROOMS},{n % 97 / 8},{n % 89 / 4},owner {n % 50}\n" for n in range(desks)
    )
    (folder / "desks.csv").write_text("desk,room,x,y,owner\n" + text, encoding="ascii")


def _duckdb(store: TableStore) -> Callable[[str], Delta] | None:
    if not importlib.util.find_spec("duckdb"):
        return None
    import duckdb  # noqa: PLC0415 - optional

    connection: Any = duckdb.connect()
    for definition in (DESKS, PLACES):
        table = store.find(definition.name)
        if table is not None and table.data is not None:
            schema = arrow_schema(definition.schema)
            connection.register("incoming", table.data.cast(schema))
            connection.execute(f"CREATE TABLE {definition.name} AS SELECT * FROM incoming")
            connection.unregister("incoming")
    return lambda sql: from_rows(connection.execute(sql).fetchall())


def _close(one: Delta, other: Delta) -> bool:
    """Whether results are equal, doubles up to the last digits (DuckDB rounds otherwise)."""

    def rounded(rows: Delta) -> Delta:
        return from_rows(
            tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row)
            for row in rows
            for _ in range(rows[row])
        )

    return rounded(one) == rounded(other)


def latency(
    spark: RunningSpark, folder: Path, *, sizes: tuple[int, ...], rounds: int
) -> dict[str, dict[str, float]]:
    """Measure every query on every engine over tables of every size."""
    tables: dict[str, dict[str, float]] = {}
    for size in sizes:
        _fill(folder, size)
        store = TableStore(Locations(folder), folder / "snapshots")
        begun = time.perf_counter()
        for definition in (DESKS, PLACES):
            store.load(definition)
        reading = (time.perf_counter() - begun) * 1000
        executors: dict[str, StaticExecutor] = {
            "spark": SparkExecutor(spark, store),
            "local": LocalExecutor(store),
        }
        anchor = _duckdb(store)
        for name, (plan, sql) in QUERIES.items():
            ways: dict[str, Callable[[], Delta]] = {
                engine: (lambda e=executor, p=plan: e.evaluate(p))  # type: ignore[misc]
                for engine, executor in executors.items()
            }
            if anchor is not None:
                ways["duckdb"] = lambda run=anchor, text=sql: run(text)  # type: ignore[misc]
            figures = _compare(plan.schema, ways, rounds)
            figures["reading both tables, ms"] = reading
            tables[f"{name}, {size} rows"] = figures
    return tables


def _compare(schema: Schema, ways: dict[str, Callable[[], Delta]], rounds: int) -> dict[str, float]:
    results = {name: way() for name, way in ways.items()}  # also warms up
    if results["spark"] != results["local"]:
        raise RuntimeError("Spark and the local executor disagree")
    if "duckdb" in results and not _close(results["local"], results["duckdb"]):
        raise RuntimeError("DuckDB disagrees")
    times: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            begun = time.perf_counter()
            ways[name]()
            times[name].append((time.perf_counter() - begun) * 1000)
    figures = {f"{name}, ms": median(values) for name, values in times.items()}
    bags = {name: Bag.of_rows(schema, results[name]) for name in ("local", "spark")}
    begun = time.perf_counter()
    difference(bags["local"], bags["spark"])
    figures["difference, ms"] = (time.perf_counter() - begun) * 1000
    for name in names[1:]:
        figures[f"spark/{name}"] = figures["spark, ms"] / figures[f"{name}, ms"]
    return figures


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Start and latency of the static engine.")
    parser.add_argument("--quick", action="store_true", help="small tables, one round, no archive")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    sizes = (1_000,) if options.quick else (1_000, 10_000, 100_000)
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        folder = Path(name)
        spark, starts = start_up(folder / "spark", archive=not options.quick)
        try:
            latencies = latency(spark, folder, sizes=sizes, rounds=1 if options.quick else 9)
        finally:
            spark.stop()
    result = {"start": starts, "latency": latencies}
    if options.json:
        print(json.dumps({"benchmark": "static_fragments", **result}, indent=2))
        return 0
    print_tables(result, digits=2)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
