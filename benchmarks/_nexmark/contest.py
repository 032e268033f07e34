"""One query over the same events: the product beside DuckDB computing it again."""

import gc
import time
from dataclasses import dataclass
from itertools import islice
from typing import Any

import psutil

from benchmarks._nexmark.events import Event, events
from benchmarks._nexmark.queries import DUCKDB_TABLES, QUERIES, SOURCES
from benchmarks._recursive.measuring import quantile
from benchmarks._recursive.product import Change, Product

BATCHES = (1, 100, 10_000)
_SIDE = tuple((number, f"value {number}") for number in range(0, 1_000, 7))


@dataclass(frozen=True, slots=True)
class Contest:
    """What is measured.

    Attributes:
        query: Its name.
        loaded: Events before anything is timed.
        singles: Timed events, one an update.
        hundreds: Timed updates of a hundred events.
        batches: Timed updates of ten thousand events.
        again: How often DuckDB computes.
    """

    query: str
    loaded: int
    singles: int = 2_000
    hundreds: int = 50
    batches: int = 3
    again: int = 5


def run(contest: Contest) -> dict[str, Any]:
    """Return the figures of one query.

    Returns:
        Milliseconds a change at batch size 1 (p50, p99), events a second by batch size, DuckDB's
        milliseconds to compute again, megabytes of the process per million events, and ratios.

    Raises:
        AssertionError: The product's rows are not DuckDB's.
    """
    query = next(q for q in QUERIES if q.name == contest.query)
    timed = contest.singles + 100 * contest.hundreds + 10_000 * contest.batches
    stream = events(contest.loaded + timed)
    before = _resident()
    product = Product(SOURCES + query.text)
    product.update([("side_input", row, 1) for row in _SIDE])
    history: list[Event] = []
    while len(history) < contest.loaded:
        part = list(islice(stream, min(10_000, contest.loaded - len(history))))
        product.update(_changes(part))
        history += part
    memory = (_resident() - before) / 2**20
    gc.collect()
    gc.freeze()
    single = [_timed(product, stream, 1, history) for _ in range(contest.singles)]
    rates = {
        "1": len(single) / sum(single),
        "100": _rate(product, stream, 100, contest.hundreds, history),
        "10000": _rate(product, stream, 10_000, contest.batches, history),
    }
    gc.unfreeze()
    peer = _duckdb(query.again, history, contest.again)
    _compare(query.name, product, peer.rows)
    p50 = quantile(single, 0.5) * 1_000
    found: dict[str, Any] = {
        "what": query.what,
        "events": len(history),
        "rows": len(product.view),
        "change_p50_ms": round(p50, 4),
        "change_p99_ms": round(quantile(single, 0.99) * 1_000, 3),
        "events_per_second": {size: round(rate) for size, rate in rates.items()},
        "again_ms": round(peer.milliseconds, 2),
        "again_over_change": round(peer.milliseconds / p50, 1),
        "again_over_batch_of_10000": round(peer.milliseconds / (10_000_000 / rates["10000"]), 2),
        "megabytes_per_million_events": round(memory / contest.loaded * 1_000_000, 1),
    }
    return found


def _changes(part: list[Event]) -> list[Change]:
    return [(source, row, 1) for source, row in part]


def _timed(product: Product, stream: Any, size: int, history: list[Event]) -> float:
    part = list(islice(stream, size))
    changes = _changes(part)
    began = time.perf_counter()
    product.update(changes)
    took = time.perf_counter() - began
    history += part
    return took


def _rate(product: Product, stream: Any, size: int, count: int, history: list[Event]) -> float:
    took = [_timed(product, stream, size, history) for _ in range(count)]
    return size * count / sum(took)


def _resident() -> int:
    """Return the bytes of this process in memory now; the most it had would be its parent's."""
    return int(psutil.Process().memory_info().rss)


@dataclass(frozen=True, slots=True)
class _Again:
    milliseconds: float
    rows: list[tuple[Any, ...]]


def _duckdb(text: str, history: list[Event], times: int) -> _Again:
    """Return DuckDB's rows, and the median of its time to make a table of them."""
    import duckdb  # noqa: PLC0415  (a peer, not needed to start)
    import pyarrow as pa  # noqa: PLC0415

    connection = duckdb.connect(config={"threads": 1})
    connection.execute(DUCKDB_TABLES)
    connection.executemany("INSERT INTO side_input VALUES (?, ?)", _SIDE)
    for source in ("person", "auction", "bid"):
        columns = zip(*(row for name, row in history if name == source), strict=True)
        table = pa.table({f"c{i}": list(column) for i, column in enumerate(columns)})
        connection.register("loaded", table)
        connection.execute(f"INSERT INTO {source} SELECT * FROM loaded")
        connection.unregister("loaded")
    took = []
    for _ in range(times):
        began = time.perf_counter()
        connection.execute(f"CREATE OR REPLACE TEMP TABLE answer AS {text}")
        took.append((time.perf_counter() - began) * 1_000)
    return _Again(quantile(took, 0.5), connection.execute("FROM answer").fetchall())


def _compare(name: str, product: Product, expected: list[tuple[Any, ...]]) -> None:
    found = [row for row, count in product.view.items() for _ in range(count)]
    if sorted(found, key=repr) != sorted(expected, key=repr):
        raise AssertionError(f"{name}: other rows than DuckDB's")
