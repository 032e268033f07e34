"""Linear Road's standing queries in CQL, second by second, beside DuckDB computing again.

Cars report every thirty seconds. Each query first lives through some minutes, then through timed
seconds: its reports come and what is older leaves the windows. DuckDB computes from all reports at
the end. Both must give the same rows. Ratios only mean something within one run.

    pando bench linear_road --quick
    python -m benchmarks.linear_road --queries tolls --cars 20000 --json
"""

import argparse
import gc
import json
import os
import platform
import sys
import time
from collections import Counter
from itertools import islice
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks._linear_road.queries import PEER, QUERIES, SCRIPT, RoadQuery
from benchmarks._linear_road.traffic import Report, reports
from benchmarks._recursive.measuring import quantile
from benchmarks._recursive.product import Product

AGAIN = 5
"""How often DuckDB computes."""


def main() -> None:
    """Run the benchmark."""
    names = [query.name for query in QUERIES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--cars", type=int, default=10_000, help="on the road (10,000)")
    parser.add_argument("--minutes", type=int, default=6, help="before anything is timed (6)")
    parser.add_argument("--seconds", type=int, default=60, help="that are timed (60)")
    parser.add_argument("--quick", action="store_true", help="600 cars, 2 minutes, 15 seconds")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    chosen = [part.strip() for part in options.queries.split(",")]
    unknown = [part for part in chosen if part not in names]
    if unknown:
        parser.error(f"no query {unknown[0]!r}; choose of {', '.join(names)}")
    size = (options.cars, options.minutes * 60, options.seconds)
    cars, before, timed = (600, 120, 15) if options.quick else size
    console = Console(stderr=True)
    found = {
        query.name: measure(query, cars, before, timed)
        for query in track(QUERIES, description="queries", console=console, transient=True)
        if query.name in chosen
    }
    result = {
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load": [round(value, 2) for value in os.getloadavg()],
        "cars": cars,
        "seconds": before + timed,
        "queries": found,
    }
    if options.json:
        json.dump(result, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        show(result)


def measure(query: RoadQuery, cars: int, before: int, timed: int) -> dict[str, Any]:
    """Return the figures of one query.

    Args:
        query: What runs.
        cars: On the road.
        before: Seconds that it lives through first.
        timed: Seconds after that.

    Returns:
        Reports a second of work, milliseconds for a second of traffic (p50, p99), DuckDB's
        milliseconds to compute again, and how many times that is the time of ours.

    Raises:
        AssertionError: The product's rows are not DuckDB's.
    """
    free = cars // 600
    product = Product(SCRIPT.format(free=free) + query.text)
    history: list[Report] = []
    took: list[float] = []
    counted, now = 0, 0
    stream = islice(reports(cars), before + timed)
    for second, (now, batch) in enumerate(stream):
        if second == before:
            gc.collect()
        changes = [("pos", row, 1) for row in batch]
        began = time.perf_counter()
        product.update(changes, at=now)
        if second >= before:
            took.append(time.perf_counter() - began)
            counted += len(batch)
        history += batch
    again, rows = _duckdb(query, free, history, now)
    if Counter(_plain(row) for row in rows) != Counter(
        {_plain(row): count for row, count in product.view.items()}
    ):
        raise AssertionError(f"{query.name}: other rows than DuckDB's")
    p50 = quantile(took, 0.5) * 1_000
    return {
        "what": query.what,
        "reports": len(history),
        "rows": sum(product.view.values()),
        "reports_per_second": round(counted / sum(took)),
        "second_p50_ms": round(p50, 3),
        "second_p99_ms": round(quantile(took, 0.99) * 1_000, 3),
        "again_ms": round(again, 2),
        "again_over_second": round(again / p50, 2),
    }


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(value, 9) if isinstance(value, float) else value for value in row)


def _duckdb(
    query: RoadQuery, free: int, history: list[Report], now: int
) -> tuple[float, list[tuple[Any, ...]]]:
    """Return the median of DuckDB's milliseconds to make a table of the rows, and the rows."""
    import duckdb  # noqa: PLC0415  (a peer, not needed to start)
    import pyarrow as pa  # noqa: PLC0415

    connection = duckdb.connect(config={"threads": 1})
    connection.execute(PEER.format(free=free))
    columns = zip(*history, strict=True)
    table = pa.table({f"c{number}": list(column) for number, column in enumerate(columns)})
    connection.register("loaded", table)
    connection.execute("INSERT INTO pos SELECT * FROM loaded")
    connection.execute("INSERT INTO clock VALUES (?)", [now])
    took = []
    for _ in range(AGAIN):
        began = time.perf_counter()
        connection.execute(f"CREATE OR REPLACE TEMP TABLE answer AS {query.text}")
        took.append((time.perf_counter() - began) * 1_000)
    return quantile(took, 0.5), connection.execute("FROM answer").fetchall()


def show(result: dict[str, Any]) -> None:
    """Print a table."""
    console = Console()
    table = Table(title="Linear Road", title_justify="left", title_style="bold")
    heads = ("", "rows", "reports/s", "p50 ms", "p99", "again ms", "ratio")
    for column in heads:
        table.add_column(column, justify="right" if column else "left")
    for name, figures in result["queries"].items():
        table.add_row(
            name,
            f"{figures['rows']:,}",
            f"{figures['reports_per_second']:,}",
            f"{figures['second_p50_ms']:.2f}",
            f"{figures['second_p99_ms']:.2f}",
            f"{figures['again_ms']:.1f}",
            f"{figures['again_over_second']:.1f}",
        )
    console.print(table)
    console.print(
        f"{result['cars']:,} cars for {result['seconds']} s. Reports in a second of work; "
        "milliseconds for a second of traffic; DuckDB computing again from all reports, and how "
        "many times that is a second of traffic here."
    )
    console.print(f"{result['machine']}, load {result['load'][0]}")


if __name__ == "__main__":
    main()
