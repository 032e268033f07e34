"""Time and memory that a table's new version takes: rows that differ from the old, key check.

    python benchmarks/refreshes.py [--quick] [--rows N] [--changes N] [--rounds N] [--json]

A table of four columns (number, text of 22 characters, double, time) is read again with some
changes: in place, as a file that is written again has them, and moved, as an engine that computes
rows in parallel may give them. Measured, in rotating order, the median of several rounds:

    pando    rows stay Arrow columns; only the difference becomes Python objects
    dicts    rows are Python objects in dictionaries
    duckdb   EXCEPT ALL in both directions on the same Arrow tables, and GROUP BY … HAVING for the
             keys; one thread, as the others have

`memory` is what the process grew by at most, in a process of its own per way; Arrow tables of both
versions are there before. `difference` has the old version at hand in its form, as the static
engine has; its memory counts, its time does not. `keys` checks that no two rows have the same
primary key.

How to read it: only ratios within one run mean anything. All ways must find the same rows.
"""

import argparse
import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks._figures import print_tables
from static_engine.evaluation.bag_difference import difference
from static_engine.evaluation.bags import Bag
from static_engine.sources.values.conversion import arrow_schema, rows_in
from static_engine.sources.values.unique_keys import unique_rows
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data import delta as dictionaries
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

SCHEMA = Schema.of(
    ("id", DataType.INTEGER),
    ("name", DataType.TEXT),
    ("v", DataType.DOUBLE),
    ("at", DataType.TIMESTAMP),
)
TABLE = SourceDefinition("things", SourceKind.TABLE, SCHEMA, key=(1,))
PAGE = 4096
Way = Callable[[], object]


def made(rows: int) -> pa.Table:
    """Return a table."""
    numbers = np.arange(rows)
    names = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 9, "0")
    columns = [
        pa.array(numbers),
        pc.binary_join_element_wise("room/sensor/", names, "-"),
        pa.array(np.random.default_rng(1).random(rows)),
        pa.array(numbers * 1_000_000),
    ]
    return pa.table(columns, schema=arrow_schema(SCHEMA))


def changed(table: pa.Table, changes: int, *, moved: bool) -> pa.Table:
    """Return a table some of whose rows have another number."""
    chance = np.random.default_rng(2)
    values = table.column(2).to_numpy().copy()
    values[chance.choice(len(values), min(changes, len(values)), replace=False)] += 1
    later = table.set_column(2, "c2", pa.array(values))
    return later.take(pa.array(chance.permutation(len(values)))) if moved else later


def differences(new: pa.Table, old: pa.Table) -> dict[str, Way]:
    """Return the ways to compare two versions, the old of which is at hand."""

    # Made by the first call, which the memory is measured of: both versions count.
    @cache
    def kept() -> Bag:
        return Bag.of_table(SCHEMA, old)

    @cache
    def known() -> Delta:
        return dictionaries.from_rows(rows_in(old))

    def by_pando() -> Delta:
        return difference(Bag.of_table(SCHEMA, new), kept()).delta()

    def by_dicts() -> Delta:
        return dictionaries.difference(dictionaries.from_rows(rows_in(new)), known())

    def by_duckdb() -> Delta:
        with _duckdb(new=new, old=old) as database:
            come = database.execute("FROM new EXCEPT ALL FROM old").fetchall()
            gone = database.execute("FROM old EXCEPT ALL FROM new").fetchall()
        change = dictionaries.from_rows(come)
        dictionaries.accumulate(change, dictionaries.negated(dictionaries.from_rows(gone)))
        return change

    return {"pando": by_pando, "dicts": by_dicts, "duckdb": by_duckdb}


def key_checks(table: pa.Table) -> dict[str, Way]:
    """Return the ways to find out that no key repeats; each returns the number of rows."""

    def by_pando() -> int:
        rows = [int(batch.num_rows) for batch in unique_rows(TABLE, _batches(table))]
        return sum(rows)

    def by_dicts() -> int:
        seen: dict[tuple[object, ...], int] = {}
        for batch in _batches(table):
            for key in zip(*(batch.column(k).to_pylist() for k in TABLE.key), strict=True):
                seen.setdefault(key, len(seen))
        return len(seen)

    def by_duckdb() -> int:
        with _duckdb(things=table) as database:
            twice = "FROM (SELECT c1, count(*) AS n FROM things GROUP BY c1) WHERE n > 1"
            repeated = len(database.execute(twice).fetchall())
        return int(table.num_rows) - repeated

    return {"pando": by_pando, "dicts": by_dicts, "duckdb": by_duckdb}


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches(max_chunksize=65_536)


def _duckdb(**tables: pa.Table) -> Any:
    connection: Any = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def compared(ways: dict[str, Way], rounds: int) -> dict[str, float]:
    """Return the memory and the time of each way; all must find the same."""
    memory = {name: _memory(way) for name, way in ways.items()}
    found = {name: way() for name, way in ways.items()}  # also warms up
    if any(each != found["pando"] for each in found.values()):
        raise RuntimeError("the ways disagree")
    times: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            begun = time.perf_counter()
            ways[name]()
            times[name].append((time.perf_counter() - begun) * 1000)
    figures = {f"{name}, ms": median(values) for name, values in times.items()}
    figures |= {f"{name}, MB": value for name, value in memory.items()}
    for name in names[1:]:
        figures[f"{name}/pando, time"] = figures[f"{name}, ms"] / figures["pando, ms"]
        figures[f"{name}/pando, memory"] = memory[name] / max(memory["pando"], 1)
    return figures


def _memory(way: Way) -> float:
    """Return the MB that a process grows by at most; in a process of its own."""
    context = multiprocessing.get_context("fork")  # which has the tables already
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measured, args=(way, sender))
    child.start()
    grown = float(receiver.recv())
    child.join()
    return grown


def _measured(way: Way, sender: Any) -> None:
    pa.default_memory_pool().release_unused()  # what the parent has freed would hide growth
    before, most, done = _resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            most[0] = max(most[0], _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    way()
    done.set()
    watcher.join()
    sender.send((max(most[0], _resident()) - before) / 1e6)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Differences of two versions of a table.")
    parser.add_argument("--quick", action="store_true", help="20,000 rows, one round")
    parser.add_argument("--rows", type=int, help="of the table; by default 1,000,000")
    parser.add_argument("--changes", type=int, default=100, help="rows that are another")
    parser.add_argument("--rounds", type=int, help="of each way; by default 5")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    rows = options.rows or (20_000 if options.quick else 1_000_000)
    rounds = options.rounds or (1 if options.quick else 5)
    old = made(rows)
    tables = {"keys": compared(key_checks(old), rounds)}
    for moved, name in ((False, "difference, in place"), (True, "difference, moved")):
        new = changed(old, options.changes, moved=moved)
        tables[name] = compared(differences(new, old), rounds)
    settings = {"rows": rows, "changes": options.changes, "rounds": rounds}
    if options.json:
        print(json.dumps({"benchmark": "refreshes", "settings": settings, **tables}, indent=2))
        return 0
    print_tables({f"{rows:,} rows, {options.changes} changes": tables}, digits=2)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
