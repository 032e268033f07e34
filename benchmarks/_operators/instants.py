"""ISTREAM, DSTREAM and RSTREAM: does the cost of a reading stay flat while the state grows?

    python -m benchmarks._operators.instants [--quick] [--json]

A window of N rows is full and stays so: every reading comes at an instant of its own, and at the
same instant the oldest row leaves. Each step hands in readings and a watermark that ends their
instants, in batches of 1 and 100. Told are CPU microseconds a reading (an instant each), beside
those of the same query kept as a relation, and the rows that the stream's operator remembers.
"""

import argparse
import json
import time
from statistics import median
from typing import Any

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.rows.operator import RecursiveOperator
from streamsql.algebra.leaves import EVENT_COLUMNS, PROGRESS_COLUMNS
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Fixpoint,
    Plan,
    RemoteSource,
    Scan,
    SortKey,
    SourceKind,
    StreamKind,
    TopN,
    ToStream,
    Window,
    WindowKind,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.errors import InternalError

COLUMNS = Schema.of(("id", DataType.INTEGER), ("k", DataType.INTEGER))
SCAN = Scan("s", SourceKind.STREAM, COLUMNS, lateness=0)
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
READINGS = 2_000
ROWS_PER_KEY = 10


def _window(rows: int) -> Window:
    return Window(SCAN, WindowKind.RANGE, rows)


def _groups(rows: int) -> Plan:
    return Aggregate(_window(rows), (1,), (COUNT,))


def _first(rows: int) -> Plan:
    return TopN(_window(rows), (SortKey(0, descending=True),), 10)


CASES = {
    "ISTREAM of rows": (StreamKind.ISTREAM, _window),
    "ISTREAM of groups": (StreamKind.ISTREAM, _groups),
    "DSTREAM of groups": (StreamKind.DSTREAM, _groups),
    "RSTREAM of the first 10": (StreamKind.RSTREAM, _first),
}


def _row(number: int, rows: int) -> Row:
    return (number, number * 7919 % max(rows // ROWS_PER_KEY, 1))


def _alone(_node: Fixpoint) -> RecursiveOperator:
    raise InternalError("these queries have no recursion")


class _Stream:
    """The stream of a query, fed as a base site is."""

    def __init__(self, kind: StreamKind, query: Plan) -> None:
        feed = RemoteSource("events", EVENT_COLUMNS + COLUMNS)
        progress = RemoteSource("progress", PROGRESS_COLUMNS)
        self.circuit = compile_plan(ToStream(kind, query, (SCAN,), (feed,), (progress,)), _alone)
        self.mark: Row | None = None

    def feed(self, rows: list[tuple[int, Row]], until: int) -> None:
        """Hand in rows with their instants, and a watermark."""
        events = {(ts, 0, False, ts, *row): 1 for ts, row in rows}
        progress: dict[Row, int] = {("here", until): 1}
        if self.mark is not None:
            progress[self.mark] = -1
        self.mark = ("here", until)
        self.circuit.step({}, {"events": events, "progress": progress}, until)


class _Relation:
    """The same query kept as a relation."""

    def __init__(self, query: Plan) -> None:
        self.circuit: Circuit = compile_plan(query, _alone)

    def feed(self, rows: list[tuple[int, Row]], until: int) -> None:
        """Hand in rows with their times, and the time."""
        self.circuit.step({SCAN: dict.fromkeys(rows, 1)}, {}, until - 1)


def _microseconds(running: _Stream | _Relation, rows: int, batch: int, readings: int) -> float:
    """Return CPU microseconds a reading, the median of steps, with the window full."""
    running.feed([(n, _row(n, rows)) for n in range(rows)], rows)
    times = []
    for start in range(rows, rows + readings, batch):
        events = [(n, _row(n, rows)) for n in range(start, start + batch)]
        began = time.process_time_ns()
        running.feed(events, start + batch)
        times.append((time.process_time_ns() - began) / 1_000 / batch)
    return median(times)


def measure(sizes: tuple[int, ...], readings: int) -> list[dict[str, Any]]:
    """Return one entry per case and batch."""
    found = []
    for name, (kind, query) in CASES.items():
        for batch in (1, 100):
            entry: dict[str, Any] = {"case": name, "batch": batch, "us": {}, "relation_us": {}}
            for rows in sizes:
                stream = _Stream(kind, query(rows))
                entry["us"][rows] = round(_microseconds(stream, rows, batch, readings), 2)
                entry["state_rows"] = stream.circuit.nodes[-1].state_rows()
                relation = _Relation(query(rows))
                entry["relation_us"][rows] = round(
                    _microseconds(relation, rows, batch, readings), 2
                )
            entry["ratio"] = round(entry["us"][sizes[-1]] / entry["us"][sizes[0]], 2)
            found.append(entry)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="small states, few readings")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = (100, 1_000) if options.quick else (1_000, 10_000, 100_000)
    found = measure(sizes, 200 if options.quick else READINGS)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    heads = "".join(f"{rows:>12,}" for rows in sizes)
    print(f"{'CPU us a reading, rows in window':<34}{'batch':>6}{heads}{'ratio':>8}  as a relation")
    for entry in found:
        cells = "".join(f"{entry['us'][rows]:>12.1f}" for rows in sizes)
        kept = ", ".join(f"{entry['relation_us'][rows]:.1f}" for rows in sizes)
        line = f"{entry['case']:<34}{entry['batch']:>6}{cells}{entry['ratio']:>8.2f}  {kept}"
        print(line)


if __name__ == "__main__":
    main()
