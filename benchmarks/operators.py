"""Does the cost of a change stay flat while an operator's state grows a hundredfold?

    python benchmarks/operators.py [--quick] [--json]

Per operator: CPU microseconds a changed row in batches of 1 and 100, over states of three sizes,
and the ratio of the largest to the smallest. `two readings` are of one join with groups under
different filters, as a table of WITH is read without and with MATERIALIZED. Beside it, in the same
run, evaluating the query again from scratch over the middle size. Rows are replaced (one out, one
in), so the state keeps its size.

Then a stream joined with a relation and made distinct, in million rows a CPU second: circuits
against plain loops that only insert (no weights, no deletions, nothing kept of the stream: what
Python can do at best), and DuckDB joining every batch with a stored table, when it is installed.

Last, groupings, orders, set operations and windows, and joins of every kind, up to a million rows,
beside DuckDB answering the query anew (`benchmarks/_operators/`; each of the two runs by itself).

How to read it: only ratios within one run mean anything; CPU time, because machines are shared.
Work per change is constant, but a larger state misses the processor's caches more often: a ratio of
2 to 3 over a factor of 100 is memory.
"""

import argparse
import gc
import importlib.util
import json
import random
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from benchmarks._figures import print_tables
from benchmarks._operators.groups_orders_windows import against_duckdb
from benchmarks._operators.joins import joins_against_duckdb
from federated_optimizer.rules.push_filters import push_filters
from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.rows.operator import RecursiveOperator
from stream_engine.state.source_relation import TimedDelta
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    RemoteSource,
    Scan,
    SourceKind,
    UnionAll,
    Window,
    WindowKind,
)
from streamsql.data.delta import Delta, expand
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.reference.evaluate import evaluate
from streamsql.reference.reference_database import Database

COLUMNS = Schema.of(
    ("id", DataType.INTEGER), ("k", DataType.INTEGER), ("x", DataType.DOUBLE), ("t", DataType.TEXT)
)
S = RemoteSource("s", COLUMNS)
R = RemoteSource("r", Schema.of(("k", DataType.INTEGER), ("name", DataType.TEXT)))
SCAN = Scan("s", SourceKind.STREAM, COLUMNS, ttl=10**15)
ID, K, X = (Column(i, COLUMNS.names[i], COLUMNS.dtypes[i]) for i in range(3))
CHANGES = 2_000
ROWS_PER_KEY = 10


def _calls(*functions: AggregateFunction) -> tuple[AggregateCall, ...]:
    return tuple(AggregateCall(function, (X,), function.lower()) for function in functions)


PLANS: dict[str, Plan] = {
    "filter": Filter(S, Call(">", (X, Literal(0.5, DataType.DOUBLE)), DataType.BOOLEAN)),
    "project": Project(S, (K, Call("+", (X, X), DataType.DOUBLE)), ("k", "y")),
    "distinct": Distinct(Project(S, (K,), ("k",))),
    "join": Join(S, R, JoinKind.INNER, ((1, 0),)),
    "left join": Join(S, R, JoinKind.LEFT, ((1, 0),)),
    "sum, avg": Aggregate(S, (1,), _calls(AggregateFunction.SUM, AggregateFunction.AVG)),
    "sum of all": Aggregate(S, (), _calls(AggregateFunction.SUM)),
    "min, max of all": Aggregate(S, (), _calls(AggregateFunction.MIN, AggregateFunction.MAX)),
}


def _read_twice(table: Plan) -> Plan:
    """Return two readings of a table under different filters, each where it comes to stand."""
    zero, group = Literal(0, DataType.INTEGER), Column(0, "k", DataType.INTEGER)
    readings = (Filter(table, Call(test, (group, zero), DataType.BOOLEAN)) for test in ("<>", ">="))
    return push_filters(UnionAll(tuple(readings)))


GROUPS = Aggregate(
    Project(Join(S, R, JoinKind.INNER, ((1, 0),)), (K, X), ("k", "x")),
    (0,),
    (AggregateCall(AggregateFunction.MIN, (Column(1, "x", DataType.DOUBLE),), "least"),),
)
PLANS["two readings"] = _read_twice(GROUPS)
PLANS["two readings, materialized"] = _read_twice(Materialize(GROUPS, "t"))
WINDOWS: dict[str, Plan] = {
    "window range": Window(SCAN, WindowKind.RANGE, size=1),
    "window rows": Window(SCAN, WindowKind.ROWS, size=1),
}


def _none(node: Fixpoint) -> RecursiveOperator:
    raise AssertionError(node.name)


def _row(number: int, keys: int, choice: random.Random) -> Row:
    return (number, choice.randrange(keys), choice.random(), f"sensor {number % 97}")


class Bench:
    """One operator over a state of one size."""

    def __init__(self, name: str, size: int) -> None:
        self.choice = random.Random(size)
        self.size = size
        self.keys = max(size // ROWS_PER_KEY, 1)
        self.next = size
        self.rows = [_row(number, self.keys, self.choice) for number in range(size)]
        self.names: Delta = {(key, f"name {key}"): 1 for key in range(self.keys)}
        plan = PLANS.get(name) or WINDOWS[name]
        if isinstance(plan, Window):
            plan = Window(SCAN, plan.kind, size=size)
        self.plan = plan
        self.windowed = isinstance(plan, Window)
        self.circuit = compile_plan(plan, _none)
        self.step(dict.fromkeys(self.rows, 1), first=True)

    def step(self, delta: Delta, *, first: bool = False) -> None:
        """Push a change; a row's number is its event time."""
        if self.windowed:
            timed: TimedDelta = {(int(row[0] or 0), row): w for row, w in delta.items()}
            self.circuit.step({SCAN: timed}, {}, self.next - 1)
        else:
            self.circuit.step({}, {"s": delta, "r": self.names if first else {}}, 0)

    def changes(self, batch: int) -> Iterator[Delta]:
        """Yield changes of `batch` rows, half of them insertions (windows by time: all)."""
        by_time = isinstance(self.plan, Window) and self.plan.kind == WindowKind.RANGE
        for _ in range(max(CHANGES // batch, 20)):
            delta: Delta = {}
            for _ in range(batch if by_time else (batch + 1) // 2):
                new = _row(self.next, self.keys, self.choice)
                delta[new] = 1
                if not by_time:
                    position = self.next % self.size
                    delta[self.rows[position]] = -1
                    self.rows[position] = new
                self.next += 1
            yield delta

    def microseconds(self, batch: int) -> float:
        """Return the CPU time per changed row: the median of ten stretches."""
        changes = list(self.changes(batch))
        stretch = len(changes) // 10
        times = []
        for begin in range(0, 10 * stretch, stretch):
            part = changes[begin : begin + stretch]
            start = time.process_time()
            for delta in part:
                if self.windowed:
                    self.next = max(int(row[0] or 0) for row in delta) + 1
                self.step(delta)
            times.append((time.process_time() - start) / sum(map(len, part)))
        return median(times) * 1e6

    def recompute(self) -> float:
        """Return the time of the reference evaluator for the whole, in microseconds."""
        remote = {"s": self.rows, "r": list(expand(self.names))}
        start = time.process_time()
        evaluate(self.plan, Database(), 0, remote)
        return (time.process_time() - start) * 1e6


def flatness(*, quick: bool) -> dict[str, dict[str, float]]:
    """Measure every operator at three sizes."""
    sizes = (20, 40, 80) if quick else (1_000, 10_000, 100_000)
    table: dict[str, dict[str, float]] = {}
    for name in (*PLANS, *WINDOWS):
        entry = table[name] = {}
        for batch in (1, 100):
            figures = []
            for size in sizes:
                bench = Bench(name, size)
                gc.collect()
                figures.append(bench.microseconds(batch))
                entry[f"batch {batch}, {size} rows, us/row"] = figures[-1]
                if batch == 1 and size == sizes[1] and not bench.windowed:
                    entry[f"recompute {size} rows, us"] = bench.recompute()
            entry[f"batch {batch}, growth"] = figures[-1] / figures[0]
    return table


# --- throughput -------------------------------------------------------------------------------


def _loops(batches: list[list[Row]], names: list[Row]) -> int:
    """Join and make distinct by loops that only insert; return the number of distinct rows."""
    index: dict[Any, list[Row]] = {}
    for row in names:
        index.setdefault(row[0], []).append(row)
    seen: dict[Row, int] = {}
    for batch in batches:
        joined: list[Row] = []
        for row in batch:
            partners = index.get(row[1])
            if partners is not None:
                for partner in partners:
                    joined.append((row[1], partner[1]))  # noqa: PERF401  (the loop is measured)
        for row in joined:
            seen[row] = seen.get(row, 0) + 1
    return len(seen)


def _circuit(batches: list[list[Row]], names: list[Row]) -> int:
    join = Join(S, R, JoinKind.INNER, ((1, 0),))
    pair = Project(join, (K, Column(5, "name", DataType.TEXT)), ("k", "name"))
    circuit = compile_plan(Distinct(pair), _none)
    circuit.step({}, {"r": dict.fromkeys(names, 1)}, 0)
    total = 0
    for batch in batches:
        total += sum(circuit.step({}, {"s": dict.fromkeys(batch, 1)}, 0).values())
    return total


def _duckdb(batches: list[list[Row]], names: list[Row]) -> int:
    import duckdb  # noqa: PLC0415  (only where it is installed)
    import pyarrow as pa  # noqa: PLC0415

    database = duckdb.connect()
    database.execute("CREATE TABLE r (k BIGINT, name TEXT)")
    database.execute("CREATE TABLE seen (k BIGINT, name TEXT)")
    stored = pa.table({"k": [row[0] for row in names], "name": [row[1] for row in names]})
    database.register("stored", stored)
    database.execute("INSERT INTO r SELECT * FROM stored")
    for batch in batches:
        database.register("delta", pa.table({"k": [row[1] for row in batch]}))
        database.execute(
            "INSERT INTO seen SELECT DISTINCT r.k, r.name FROM delta JOIN r USING (k)"
            " ANTI JOIN seen ON seen.k = r.k"
        )
    (count,) = database.execute("SELECT count(*) FROM seen").fetchone() or (0,)
    return int(count)


def throughput(*, quick: bool) -> dict[str, dict[str, float]]:
    """Measure million rows a second through join, projection and distinct."""
    count, keys = (500, 100) if quick else (500_000, 100_000)
    choice = random.Random(1)
    names: list[Row] = [(key, f"name {key}") for key in range(keys)]
    rows = [_row(number, 2 * keys, choice) for number in range(count)]
    ways: dict[str, Callable[[list[list[Row]], list[Row]], int]] = {
        "plain loops": _loops,
        "circuit": _circuit,
    }
    if importlib.util.find_spec("duckdb") and importlib.util.find_spec("pyarrow"):
        ways["duckdb"] = _duckdb
    table: dict[str, dict[str, float]] = {name: {} for name in ways}
    for batch in (1, 100, 10_000):
        batches = [rows[start : start + batch] for start in range(0, count, batch)]
        answers: dict[int, set[int]] = {}
        for name, way in ways.items():
            part = batches[:2_000] if name == "duckdb" else batches
            taken = sum(map(len, part))
            gc.collect()
            start = time.process_time()
            answer = way(part, names)
            table[name][f"batch {batch}, M rows/CPU s"] = (
                taken / (time.process_time() - start) / 1e6
            )
            answers.setdefault(taken, set()).add(answer)
        if any(len(found) > 1 for found in answers.values()):
            raise RuntimeError(f"the ways disagree: {answers}")
    return table


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Cost of a change while the state grows.")
    parser.add_argument("--quick", action="store_true", help="small states, few rows")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    gc.freeze()  # before each measurement garbage is looked for, but not among modules
    result = {
        "flatness": flatness(quick=options.quick),
        "throughput": throughput(quick=options.quick),
        "groups, orders, windows": against_duckdb(rows=300 if options.quick else 1_000_000),
        "joins": joins_against_duckdb(rows=600 if options.quick else 1_000_000),
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return 0
    print_tables(result, digits=3)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
