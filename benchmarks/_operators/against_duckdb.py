"""One operator over three sizes of state, beside DuckDB starting anew: the loop all families share.

Times are CPU times; DuckDB has one thread, its tables are filled beforehand and only the query is
timed, its answer stored in a table.
"""

import argparse
import gc
import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from time import process_time
from typing import Any, Protocol

SINGLE_STEPS = 1_000
BULK = 10_000

Figures = dict[str, float]
"""By what was measured."""


class OperatorBench(Protocol):
    """An operator over a state of one size.

    Attributes:
        answer_rows: Rows of its answer; None where DuckDB's question is not the same to the row.
    """

    @property
    def answer_rows(self) -> int | None:
        """Rows of its answer."""

    def seconds(self, batch: int, steps: int) -> tuple[float, int]:
        """Return the CPU time of a step that replaces so many rows, and its changed rows."""

    def state_bytes(self) -> float:
        """Return the bytes of the state per row of the inputs, these not counted."""

    def tables(self) -> dict[str, dict[str, list[Any]]]:
        """Return what DuckDB's tables hold: values by column, by table."""


def compared(  # noqa: PLR0913  (what is measured, and over what)
    cases: Mapping[str, str],
    bench_of: Callable[[str, int], OperatorBench],
    *,
    rows: int,
    only: Sequence[str] | None,
    smallest: int,
    bulk: int,
    bulk_steps: int,
) -> dict[str, Figures]:
    """Measure operators at three sizes up to `rows`, and DuckDB at the largest.

    Args:
        cases: Their queries in DuckDB, by name; {n} is the size of the state.
        bench_of: Makes the operator of a name over a state of a size.
        rows: Of the largest state.
        only: The operators to measure; None: all.
        smallest: A size that only warms up.
        bulk: Rows that a step of a large batch replaces.
        bulk_steps: How many of these are timed.

    Returns:
        By operator: microseconds a step that replaces one row at each size, their growth, million
        changed rows a CPU second in large batches, bytes of state a row, and where DuckDB is
        installed its milliseconds and how many times longer that is than a step.
    """
    installed = all(map(importlib.util.find_spec, ("duckdb", "pyarrow")))
    table: dict[str, Figures] = {}
    for name in only or cases:
        entry = table.setdefault(name, {})
        figures = []
        bench = bench_of(name, smallest)
        for size in (rows // 100, rows // 10, rows):
            bench = bench_of(name, size)
            single, _changed = bench.seconds(1, min(SINGLE_STEPS, max(rows // 50, 20)))
            figures.append(single * 1e6)
            entry[f"batch 1, {size} rows, us"] = figures[-1]
        entry["batch 1, growth"] = figures[-1] / figures[0]
        seconds, changed = bench.seconds(bulk, bulk_steps)
        entry[f"batch {changed}, {rows} rows, M rows/CPU s"] = changed / seconds / 1e6
        entry["state, bytes a row"] = bench.state_bytes()
        if installed:
            again = _recomputed(cases[name].replace("{n}", str(rows)), bench)
            entry["DuckDB anew, ms"] = again * 1e3
            entry["DuckDB / batch 1"] = again * 1e6 / figures[-1]
    return table


@contextmanager
def without_old_garbage() -> Iterator[None]:
    """Let the garbage collector look only at what is made inside."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _recomputed(sql: str, bench: OperatorBench) -> float:
    """Return DuckDB's CPU time for the whole query over a state."""
    import duckdb  # noqa: PLC0415  (only where it is installed)
    import pyarrow as pa  # noqa: PLC0415

    database = duckdb.connect()
    database.execute("SET threads = 1")
    for name, columns in bench.tables().items():
        database.register("given", pa.table(columns))
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        database.unregister("given")
    times = []
    for _ in range(3):
        start = process_time()
        database.execute(f"CREATE OR REPLACE TABLE answer AS {sql}")
        times.append(process_time() - start)
    (count,) = database.execute("SELECT count(*) FROM answer").fetchone() or (0,)
    if bench.answer_rows is not None and count != bench.answer_rows:
        raise RuntimeError(f"DuckDB has {count} rows, the circuit {bench.answer_rows}: {sql}")
    return median(times)


def run(
    description: str,
    names: Sequence[str],
    measure: Callable[[int, list[str] | None], dict[str, Figures]],
    argv: list[str] | None,
) -> int:
    """Run a family by itself; return the exit status.

    Args:
        description: Of the family.
        names: Of its operators.
        measure: Takes the rows of the largest state, and the names to measure or None.
        argv: Arguments of the program.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", action="append", choices=list(names), help="may be repeated")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the largest state")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    table = measure(options.rows, options.only)
    if options.json:
        print(json.dumps(table, indent=2))
        return 0
    for name, figures in table.items():
        print(f"{name:<24}", "  ".join(f"{label}: {value:.3g}" for label, value in figures.items()))
    return 0
