"""Groupings, orders, set operations and windows: cost of a change, beside DuckDB starting anew.

    python -m benchmarks._operators.groups_orders_windows [--only NAME …] [--rows N] [--json]

Every state grows a hundredfold while a group keeps ten rows. In every step rows are replaced (one
out, one in), so a state keeps its size. Times are CPU times; DuckDB has one thread, its table is
filled beforehand and only the query is timed, its answer stored in a table.
"""

import argparse
import gc
import importlib.util
import json
import random
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.operator import RecursiveOperator
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    Distinct,
    Fixpoint,
    HopWindow,
    Plan,
    Project,
    RemoteSource,
    Scan,
    SessionWindow,
    SetKind,
    SetOperation,
    SortKey,
    SourceKind,
    TopN,
    Window,
    WindowKind,
)
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

ROWS_PER_KEY = 10
SINGLE_STEPS = 1_000
BULK = 10_000
HOP, SIZE, GAP = 1_000_000, 2_000_000, 3_000_000
SPAN = 100_000_000
"""Event times of a state's rows lie within this many microseconds."""

COLUMNS = Schema.of(
    ("id", DataType.INTEGER),
    ("k", DataType.INTEGER),
    ("x", DataType.DOUBLE),
    ("ts", DataType.TIMESTAMP),
    ("b", DataType.BOOLEAN),
)
S = RemoteSource("s", COLUMNS)
OTHER = RemoteSource("other", Schema.of(("k", DataType.INTEGER)))
SCAN = Scan("s", SourceKind.STREAM, COLUMNS, ttl=10**15)
K, X, B = (Column(i, COLUMNS.names[i], COLUMNS.dtypes[i]) for i in (1, 2, 4))
KEYS = Project(S, (K,), ("k",))


@dataclass(frozen=True, slots=True)
class Case:
    """An operator, and its query in DuckDB over `s` (and `other`); {n} is the size of the state."""

    plan: Plan
    sql: str


def _group(sql: str, *calls: tuple[F, Column], distinct: bool = False) -> Case:
    made = tuple(AggregateCall(f, (c,), "a", distinct=distinct) for f, c in calls)
    return Case(Aggregate(S, (1,), made), f"SELECT k, {sql} FROM s GROUP BY k")


def _set(kind: SetKind, *, every: bool) -> Case:
    name = f"{kind} {'ALL' if every else ''}"
    return Case(
        SetOperation(KEYS, OTHER, kind, every), f"SELECT k FROM s {name} SELECT k FROM other"
    )


_BY_KEY = "OVER (PARTITION BY k ORDER BY id DESC)"
CASES: dict[str, Case] = {
    "distinct": Case(Distinct(KEYS), "SELECT DISTINCT k FROM s"),
    "intersect": _set(SetKind.INTERSECT, every=False),
    "except all": _set(SetKind.EXCEPT, every=True),
    "count, sum, avg": _group("count(x), sum(x), avg(x)", (F.COUNT, X), (F.SUM, X), (F.AVG, X)),
    "min, max": _group("min(x), max(x)", (F.MIN, X), (F.MAX, X)),
    "count, sum distinct": _group(
        "count(DISTINCT x), sum(DISTINCT x)", (F.COUNT, X), (F.SUM, X), distinct=True
    ),
    "stddev, variance": _group("stddev_samp(x), var_pop(x)", (F.STDDEV_SAMP, X), (F.VAR_POP, X)),
    "median": _group("median(x)", (F.PERCENTILE_CONT, X)),
    "median of all": Case(
        Aggregate(S, (), (AggregateCall(F.PERCENTILE_CONT, (X,), "m"),)), "SELECT median(x) FROM s"
    ),
    "stddev of all": Case(
        Aggregate(S, (), (AggregateCall(F.STDDEV_SAMP, (X,), "m"),)), "SELECT stddev(x) FROM s"
    ),
    "array_agg": _group("array_agg(x ORDER BY x)", (F.ARRAY_AGG, X)),
    "bool_and, bool_or": _group("bool_and(b), bool_or(b)", (F.BOOL_AND, B), (F.BOOL_OR, B)),
    "top 100": Case(
        TopN(S, (SortKey(2, descending=True),), 100),
        "SELECT * FROM s ORDER BY x DESC, id LIMIT 100",
    ),
    "top 100 from the middle": Case(
        TopN(S, (SortKey(2),), 100, 5_000),
        "SELECT * FROM s ORDER BY x, id LIMIT 100 OFFSET 5000",
    ),
    "top 3 per key": Case(
        TopN(S, (SortKey(2, descending=True),), 3, 0, (1,)),
        "SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY x DESC, id) <= 3",
    ),
    "hop window": Case(
        HopWindow(S, 3, SIZE, HOP),
        f"SELECT s.*, w, w + {SIZE} FROM (SELECT *, unnest([ts // {HOP} * {HOP},"
        f" ts // {HOP} * {HOP} - {HOP}]) AS w FROM s) AS s",
    ),
    "session window": Case(
        SessionWindow(S, 3, GAP, (1,)),
        f"SELECT *, min(ts) OVER w, max(ts) OVER w + {GAP} FROM (SELECT *, sum(opens) OVER"
        " (PARTITION BY k ORDER BY ts) AS n FROM (SELECT *, CASE WHEN ts - lag(ts) OVER"
        f" (PARTITION BY k ORDER BY ts) < {GAP} THEN 0 ELSE 1 END AS opens FROM s))"
        " WINDOW w AS (PARTITION BY k, n)",
    ),
    "window range": Case(
        Window(SCAN, WindowKind.RANGE, size=1), "SELECT * FROM s WHERE id > {n} - {n}"
    ),
    "window range slide": Case(
        Window(SCAN, WindowKind.RANGE, size=1, slide=100),
        "SELECT * FROM s WHERE id > {n} // 100 * 100 - {n} AND id <= {n} // 100 * 100",
    ),
    "window rows per key": Case(
        Window(SCAN, WindowKind.ROWS, size=5, partition=(1,)),
        f"SELECT * FROM s QUALIFY row_number() {_BY_KEY} <= 5",
    ),
    "window rows and range": Case(
        Window(SCAN, WindowKind.ROWS, size=5, partition=(1,), range=1),
        f"SELECT * FROM s QUALIFY row_number() {_BY_KEY} <= 5 AND id > {{n}} - {{n}}",
    ),
}


def _none(node: Fixpoint) -> RecursiveOperator:
    raise AssertionError(node.name)


class Bench:
    """One operator over a state of one size; a row's number is its event time."""

    def __init__(self, case: Case, size: int) -> None:
        self.choice = random.Random(size)
        self.size = size
        self.keys = max(size // ROWS_PER_KEY, 1)
        self.next = size
        self.rows = [self.row(number) for number in range(size)]
        self.others: Delta = {(key,): 4 for key in range(0, self.keys, 2)}
        plan = case.plan
        self.by_time = False
        if isinstance(plan, Window):
            self.by_time = plan.kind == WindowKind.RANGE or plan.range is not None
            within = size if plan.range is not None else None
            width = size if plan.kind == WindowKind.RANGE else plan.size
            plan = Window(SCAN, plan.kind, width, plan.slide, plan.partition, within)
        self.timed = isinstance(plan, Window)
        self.circuit = compile_plan(plan, _none)
        before = _resident_bytes()
        self.answer_rows = sum(self.step(dict.fromkeys(self.rows, 1), first=True).values())
        gc.collect()
        self.state_bytes = _resident_bytes() - before

    def row(self, number: int) -> Row:
        """Return a new row."""
        choice = self.choice
        time_of_row = choice.randrange(SPAN)
        return (number, choice.randrange(self.keys), choice.random(), time_of_row, number % 3 == 0)

    def step(self, delta: Delta, *, first: bool = False) -> Delta:
        """Push a change."""
        if self.timed:
            timed: TimedDelta = {(int(row[0] or 0), row): w for row, w in delta.items()}
            return self.circuit.step({SCAN: timed}, {}, self.next - 1)
        return self.circuit.step({}, {"s": delta, "other": self.others if first else {}}, 0)

    def changes(self, batch: int, steps: int) -> Iterator[Delta]:
        """Yield changes that replace so many rows; where time takes rows away, they only come."""
        for _ in range(steps):
            delta: Delta = {}
            for _ in range(batch):
                new = self.row(self.next)
                delta[new] = 1
                if not self.by_time:
                    position = self.next % self.size
                    delta[self.rows[position]] = -1
                    self.rows[position] = new
                self.next += 1
            yield delta

    def seconds(self, batch: int, steps: int) -> tuple[float, int]:
        """Return the CPU time of a step (the median of ten means) and its changed rows."""
        changes = list(self.changes(batch, steps))
        begin = self.next - batch * steps
        gc.collect()
        gc.freeze()
        times = []
        for number, delta in enumerate(changes, 1):
            self.next = begin + number * batch
            start = time.process_time_ns()
            change = self.step(delta)
            times.append((time.process_time_ns() - start) / 1e9)
            self.answer_rows += sum(change.values())
        gc.unfreeze()
        stretch = steps // 10
        means = [sum(times[i : i + stretch]) / stretch for i in range(0, 10 * stretch, stretch)]
        return (median(means), len(changes[0]))


def _resident_bytes() -> int:
    """Return the memory this process occupies; Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _recompute(sql: str, bench: Bench) -> float:
    """Return DuckDB's CPU time for the whole query over a state."""
    import duckdb  # noqa: PLC0415  (only where it is installed)
    import pyarrow as pa  # noqa: PLC0415

    database = duckdb.connect()
    database.execute("SET threads = 1")
    columns: Any = zip(*bench.rows, strict=True)
    rows = pa.table(dict(zip(COLUMNS.names, map(list, columns), strict=True)))
    others = pa.table({"k": [key for (key,), times in bench.others.items() for _ in range(times)]})
    for name, table in (("s", rows), ("other", others)):
        database.register("given", table)
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        database.unregister("given")
    text = sql.replace("{n}", str(bench.size))
    times = []
    for _ in range(3):
        start = time.process_time()
        database.execute(f"CREATE OR REPLACE TABLE answer AS {text}")
        times.append(time.process_time() - start)
    (count,) = database.execute("SELECT count(*) FROM answer").fetchone() or (0,)
    if not bench.by_time and count != bench.answer_rows:
        raise RuntimeError(f"DuckDB has {count} rows, the circuit {bench.answer_rows}: {sql}")
    return median(times)


def against_duckdb(
    *, rows: int = 1_000_000, only: list[str] | None = None
) -> dict[str, dict[str, float]]:
    """Measure every operator at three sizes up to `rows`, and DuckDB at the largest.

    Returns:
        By operator: microseconds a step that replaces one row at each size, their growth, million
        changed rows a CPU second in large batches, the memory of the state (without the rows
        themselves, which it shares with its input), and where DuckDB is installed its milliseconds
        and how many times longer that is than a step.
    """
    table: dict[str, dict[str, float]] = {}
    for name in only or CASES:
        case, entry = CASES[name], table.setdefault(name, {})
        figures = []
        bench = Bench(case, 1)
        for size in (rows // 100, rows // 10, rows):
            bench = Bench(case, size)
            single, _changed = bench.seconds(1, SINGLE_STEPS)
            figures.append(single * 1e6)
            entry[f"batch 1, {size} rows, us"] = figures[-1]
        entry["batch 1, growth"] = figures[-1] / figures[0]
        seconds, changed = bench.seconds(min(BULK // 2, rows // 2), 10)
        entry[f"batch {changed}, {rows} rows, M rows/CPU s"] = changed / seconds / 1e6
        entry["state, bytes a row"] = bench.state_bytes / rows
        if not all(map(importlib.util.find_spec, ("duckdb", "pyarrow"))):
            continue
        again = _recompute(case.sql, bench)
        entry["DuckDB anew, ms"] = again * 1e3
        entry["DuckDB / batch 1"] = again * 1e6 / figures[-1]
    return table


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Groups, orders, sets, windows against DuckDB.")
    parser.add_argument("--only", action="append", choices=list(CASES), help="may be repeated")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the largest state")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    table = against_duckdb(rows=options.rows, only=options.only)
    if options.json:
        print(json.dumps(table, indent=2))
        return 0
    for name, figures in table.items():
        print(f"{name:<24}", "  ".join(f"{label}: {value:.3g}" for label, value in figures.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
