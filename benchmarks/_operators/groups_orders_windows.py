"""Groupings, orders, set operations and windows: cost of a change, beside DuckDB starting anew.

    python -m benchmarks._operators.groups_orders_windows [--only NAME …] [--rows N] [--json]

Every state grows a hundredfold while a group keeps ten rows. In every step rows are replaced (one
out, one in), so a state keeps its size. How it is measured is said in `against_duckdb`. Memory is
what the process grows by, without the rows themselves.
"""

import gc
import random
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._operators.against_duckdb import (
    BULK,
    Figures,
    compared,
    run,
    without_old_garbage,
)
from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.rows.operator import RecursiveOperator
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    Distinct,
    Fixpoint,
    Frame,
    HopWindow,
    OverWindow,
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
    WindowCall,
    WindowKind,
)
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.algebra.operators import WindowFunction as W
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

ROWS_PER_KEY = 10
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
_COUNT_AND_SUM = (AggregateCall(F.COUNT_ALL, (), "n"), AggregateCall(F.SUM, (X,), "total"))


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


def _over(*calls: WindowCall) -> OverWindow:
    return OverWindow(S, (1,), (SortKey(2, descending=True),), calls)


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
    "lag and mean of 10 per key": Case(
        _over(
            WindowCall(W.LAG, "before", (X,)),
            WindowCall(W.AGGREGATE, "mean", (X,), frame=Frame(-9, 0, peers=False), aggregate=F.AVG),
        ),
        "SELECT s.*, lag(x) OVER w, avg(x) OVER (w ROWS 9 PRECEDING) FROM s"
        " WINDOW w AS (PARTITION BY k ORDER BY x DESC, id)",
    ),
    "rank per key": Case(
        _over(WindowCall(W.RANK, "place")),
        "SELECT s.*, rank() OVER (PARTITION BY k ORDER BY x DESC) FROM s",
    ),
    "ntile of all": Case(
        OverWindow(S, (), (SortKey(2),), (WindowCall(W.NTILE, "quarter", number=4),)),
        "SELECT s.*, ntile(4) OVER (ORDER BY x, id) FROM s",
    ),
    "percent_rank, cume_dist per key": Case(
        _over(WindowCall(W.PERCENT_RANK, "place"), WindowCall(W.CUME_DIST, "share")),
        "SELECT s.*, percent_rank() OVER w, cume_dist() OVER w FROM s"
        " WINDOW w AS (PARTITION BY k ORDER BY x DESC)",
    ),
    "nth_value of 10 per key": Case(
        _over(WindowCall(W.NTH_VALUE, "v", (X,), frame=Frame(-9, 0, peers=False), number=3)),
        "SELECT s.*, nth_value(x, 3) OVER (PARTITION BY k ORDER BY x DESC, id ROWS 9 PRECEDING)"
        " FROM s",
    ),
    "share of key": Case(
        _over(WindowCall(W.AGGREGATE, "most", (X,), frame=Frame(None, None), aggregate=F.MAX)),
        "SELECT s.*, max(x) OVER (PARTITION BY k) FROM s",
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
    "groups by session": Case(
        Aggregate(SessionWindow(S, 3, GAP, (1,)), (1, 5, 6), _COUNT_AND_SUM),
        f"SELECT k, min(ts), max(ts) + {GAP}, count(*), sum(x) FROM (SELECT *, sum(opens) OVER"
        " (PARTITION BY k ORDER BY ts) AS n FROM (SELECT *, CASE WHEN ts - lag(ts) OVER"
        f" (PARTITION BY k ORDER BY ts) < {GAP} THEN 0 ELSE 1 END AS opens FROM s)) GROUP BY k, n",
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
        self.given_rows = sum(self.step(dict.fromkeys(self.rows, 1), first=True).values())
        gc.collect()
        self.grown_bytes = _resident_bytes() - before

    @property
    def answer_rows(self) -> int | None:
        """Rows of the answer; where the time takes rows away, DuckDB's window is another."""
        return None if self.by_time else self.given_rows

    def state_bytes(self) -> float:
        """Return the bytes by which the process grew with the state, per row."""
        return self.grown_bytes / self.size

    def tables(self) -> dict[str, dict[str, list[Any]]]:
        """Return the inputs by column."""
        columns = map(list, zip(*self.rows, strict=True))
        others = [key for (key,), times in self.others.items() for _ in range(times)]
        return {"s": dict(zip(COLUMNS.names, columns, strict=True)), "other": {"k": others}}

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
        times = []
        with without_old_garbage():
            for number, delta in enumerate(changes, 1):
                self.next = begin + number * batch
                start = time.process_time_ns()
                change = self.step(delta)
                times.append((time.process_time_ns() - start) / 1e9)
                self.given_rows += sum(change.values())
        stretch = steps // 10
        means = [sum(times[i : i + stretch]) / stretch for i in range(0, 10 * stretch, stretch)]
        return (median(means), len(changes[0]))


def _resident_bytes() -> int:
    """Return the memory this process occupies; Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def against_duckdb(*, rows: int = 1_000_000, only: list[str] | None = None) -> dict[str, Figures]:
    """Measure every operator at three sizes up to `rows`; see `compared`."""
    return compared(
        {name: case.sql for name, case in CASES.items()},
        lambda name, size: Bench(CASES[name], size),
        rows=rows,
        only=only,
        smallest=1,
        bulk=min(BULK // 2, rows // 2),
        bulk_steps=10,
    )


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    return run(
        "Groups, orders, sets, windows against DuckDB.",
        list(CASES),
        lambda rows, only: against_duckdb(rows=rows, only=only),
        argv,
    )


if __name__ == "__main__":
    raise SystemExit(main())
