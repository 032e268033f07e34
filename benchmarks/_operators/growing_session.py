"""One session that grows a hundredfold: cost of a change of its groups, and DuckDB starting anew.

    python -m benchmarks._operators.growing_session [--times N] [--json]

Changes are one row each: it comes after the last one (the session grows), the first one goes (it
shrinks), one near its end goes and comes back (the session falls apart and is whole again). With
the window and the grouping apart each of these would show every row of the session again.
"""

import argparse
import gc
import json
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.rows.operator import RecursiveOperator
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    Fixpoint,
    RemoteSource,
    SessionWindow,
)
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row

STEP, GAP, TAIL, CHANGES = 4, 5, 50, 300
COLUMNS = Schema.of(("k", DataType.INTEGER), ("x", DataType.DOUBLE), ("ts", DataType.TIMESTAMP))
X = Column(1, "x", DataType.DOUBLE)
CALLS: dict[str, tuple[AggregateCall, ...]] = {
    "count": (AggregateCall(F.COUNT_ALL, (), "n"),),
    "sum, avg": (AggregateCall(F.SUM, (X,), "s"), AggregateCall(F.AVG, (X,), "a")),
    "min, max": (AggregateCall(F.MIN, (X,), "l"), AggregateCall(F.MAX, (X,), "m")),
    "median": (AggregateCall(F.PERCENTILE_CONT, (X,), "m"),),
}
SQL = {
    "count": "count(*)",
    "sum, avg": "sum(x), avg(x)",
    "min, max": "min(x), max(x)",
    "median": "median(x)",
}


def _none(node: Fixpoint) -> RecursiveOperator:
    raise AssertionError(node.name)


def _row(number: int) -> Row:
    return (1, (number * 7_919 % 1_000) / 8, number * STEP)


def _changes(times: int) -> Iterator[tuple[str, Delta]]:
    """Yield what changes, with its name."""
    for number in range(CHANGES):
        newest = times + number
        yield "grows", {_row(newest): 1}
        yield "shrinks", {_row(number): -1}
        bridge = _row(newest - TAIL)
        yield "splits", {bridge: -1}
        yield "merges", {bridge: 1}


def measured(times: int, calls: tuple[AggregateCall, ...]) -> dict[str, float]:
    """Return microseconds a change (median) of a session of so many times, by kind of change."""
    window = SessionWindow(RemoteSource("s", COLUMNS), 2, GAP, (0,))
    circuit = compile_plan(Aggregate(window, (0, 3, 4), calls), _none)
    circuit.step({}, {"s": {_row(number): 1 for number in range(times)}}, 0)
    took: dict[str, list[float]] = {}
    gc.collect()
    gc.freeze()
    for kind, delta in _changes(times):
        began = perf_counter()
        circuit.step({}, {"s": delta}, 0)
        took.setdefault(kind, []).append(perf_counter() - began)
    gc.unfreeze()
    return {kind: median(of) * 1e6 for kind, of in took.items()}


def again(times: int, sql: str) -> float:
    """Return DuckDB's milliseconds (one thread, median of five) for the same session."""
    import duckdb  # noqa: PLC0415  (a peer, not needed to start)

    database = duckdb.connect(config={"threads": 1})
    database.execute(
        f"CREATE TABLE s AS SELECT 1 AS k, (n * 7919 % 1000) / 8.0 AS x, n * {STEP} AS ts"
        f" FROM range({times}) AS r(n)"
    )
    took = []
    for _ in range(5):
        began = perf_counter()
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE answer AS SELECT k, min(ts), max(ts) + {GAP}, {sql} FROM"
            " (SELECT *, sum(opens) OVER (PARTITION BY k ORDER BY ts) AS n FROM (SELECT *, CASE"
            f" WHEN ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) < {GAP} THEN 0 ELSE 1 END"
            " AS opens FROM s)) GROUP BY k, n"
        )
        took.append((perf_counter() - began) * 1e3)
    return median(took)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=1_000_000, help="of the longest session")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    table: dict[str, dict[str, float]] = {}
    for name, calls in CALLS.items():
        entry = table[name] = {}
        small = measured(options.times // 100, calls)
        for kind, cost in measured(options.times, calls).items():
            entry[f"{kind}, us"] = round(cost, 1)
            entry[f"{kind}, growth"] = round(cost / small[kind], 2)
        entry["DuckDB anew, ms"] = round(again(options.times, SQL[name]), 1)
    if options.json:
        print(json.dumps(table, indent=2))
        return
    for name, entry in table.items():
        print(f"{name:<10}", "  ".join(f"{label}: {value:g}" for label, value in entry.items()))


if __name__ == "__main__":
    main()
