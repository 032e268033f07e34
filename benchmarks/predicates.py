"""Do LIKE with any pattern and IN with 30,000 constants stay cheap, to plan and per row?

    python benchmarks/predicates.py [--quick] [--json] [--seed N]

LIKE: nanoseconds of CPU a text. Ours, the translation of a pattern to an expression of `re`
(which went before it), and DuckDB's over a stored table of the same texts, in turns. Then hostile
patterns, eight or more `%` that fit nearly: seconds on the wall for one text in a process of its
own (DuckDB's opens a database); whoever takes more than LIMIT is stopped.

IN: a list of n integers as a list, and as a join with VALUES, in turns. CPU milliseconds to parse,
bind and plan the statement, size of what a gateway is sent, milliseconds until it has an operator,
and microseconds a row (half of the rows are in the list; every second batch takes its rows back, so
state stays as it is). Beside them DuckDB: the whole statement with the list in its text, and with
the list as VALUES, over a stored table of the rows; the same statement over an empty table is what
it takes to read and plan it. VALUES takes 10,000 rows at most; larger ones are put together.

How to read it: only ratios within one run mean anything. Every contestant must give the same rows.
"""

import argparse
import json
import multiprocessing
import random
import re
import string
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from statistics import mean, median
from typing import Any

import duckdb

from benchmarks._figures import print_tables
from federated_optimizer import Topology, normalize
from federated_optimizer.cutting.placing import place
from stream_engine.circuit.compiler import compile_plan
from stream_engine.operators.rows.operator import RecursiveOperator
from streamsql.algebra.operators import Fixpoint, Plan, RemoteSource, Scan, SourceKind, transform_up
from streamsql.algebra.scalar_functions.like_patterns import like
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.syntax import Query, parse_statement
from streamsql.wire.codec import encode_packed

LIMIT = 2.0
"""Seconds that one test of a hostile pattern may take."""
SCHEMA = Schema.of(("id", DataType.INTEGER), ("name", DataType.TEXT))
PATTERNS = {
    "machine%": "a beginning",
    "%17": "an end",
    "%room 4%": "a part",
    "machine 1_ in%": "one character",
    "machine%room%": "two parts",
    "%a%e%i%o%": "five %",
}
_MOST_VALUES = 10_000
SIZES = (100, 1_000, 10_000, 30_000)

_FORKING = multiprocessing.get_context("fork")

Figures = dict[str, float]


@lru_cache(maxsize=512)
def _translated(pattern: str) -> re.Pattern[str]:
    parts = [{"%": ".*", "_": "."}.get(c) or re.escape(c) for c in pattern]
    return re.compile("".join(parts), re.DOTALL)


def like_by_re(text: str, pattern: str) -> bool:
    """Test a text with an expression of `re`, which backtracks."""
    return _translated(pattern).fullmatch(text) is not None


def _cpu(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _summary(values: Sequence[float], scale: float) -> Figures:
    return {
        "median": median(values) * scale,
        "mean": mean(values) * scale,
        "max": max(values) * scale,
    }


def usual_patterns(texts: list[str], rounds: int) -> dict[str, dict[str, Figures]]:
    """Return nanoseconds of CPU a text by pattern and contestant."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("CREATE TABLE t AS SELECT UNNEST(?) AS s", [texts])

        def in_duckdb(pattern: str) -> int:
            found = connection.execute("SELECT COUNT(*) FROM t WHERE s LIKE ?", [pattern])
            return int(found.fetchall()[0][0])

        ways: dict[str, Callable[[str], int]] = {
            "ours": lambda pattern: sum(like(text, pattern) or False for text in texts),
            "re": lambda pattern: sum(like_by_re(text, pattern) for text in texts),
            "duckdb": in_duckdb,
        }
        table: dict[str, dict[str, Figures]] = {}
        for pattern, what in PATTERNS.items():
            if len({way(pattern) for way in ways.values()}) != 1:
                raise AssertionError(f"LIKE {pattern!r} gives different rows")
            taken: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(rounds):
                for name, way in ways.items():
                    taken[name].append(_cpu(lambda way=way, p=pattern: way(p)))  # type: ignore[misc]
            scale = 1e9 / len(texts)
            figures = {name: _summary(times, scale) for name, times in taken.items()}
            table[f"{what}: {pattern}"] = figures
    return table


def _seconds_or_limit(work: Callable[[], object]) -> tuple[float, bool]:
    """Return the seconds of a test in a process of its own, and whether it ended by itself."""
    receiving, sending = _FORKING.Pipe(duplex=False)

    def child() -> None:
        begin = time.perf_counter()
        work()
        sending.send(time.perf_counter() - begin)

    process = _FORKING.Process(target=child)
    process.start()
    ended = receiving.poll(LIMIT)
    seconds = receiving.recv() if ended else LIMIT
    process.kill()
    process.join()
    return seconds, ended


def _by_duckdb(text: str, pattern: str) -> object:
    with duckdb.connect() as connection:
        return connection.execute("SELECT ? LIKE ?", [text, pattern]).fetchall()


def hostile_patterns(lengths: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Return seconds for one text that a pattern nearly fits, by contestant."""
    patterns = {
        "eight %": "%a" * 8 + "%b%",
        "thirty %": "%a" * 30 + "%b%",
        "eight % and _": "%a_a" * 8 + "%b%",
    }
    ways: dict[str, Callable[[str, str], object]] = {
        "ours": like,
        "re": like_by_re,
        "duckdb": _by_duckdb,
    }
    table: dict[str, dict[str, Any]] = {}
    for what, pattern in patterns.items():
        for length in lengths:
            row: dict[str, Any] = {}
            for name, way in ways.items():
                seconds, ended = _seconds_or_limit(partial(way, "a" * length, pattern))
                row[name] = {"seconds": seconds, "ended": ended}
            table[f"{what}, {length} characters"] = row
    return table


# --- IN ----------------------------------------------------------------------------------------


def _catalog() -> Catalog:
    catalog = Catalog(())
    catalog.define(SourceDefinition("r", SourceKind.STREAM, SCHEMA))
    return catalog


def _none(node: Fixpoint) -> RecursiveOperator:
    raise AssertionError(node.name)


def _remote(node: Plan) -> Plan:
    return RemoteSource("r", SCHEMA) if isinstance(node, Scan) else node


class List:
    """One statement over r: parsed, bound, planned and run."""

    def __init__(self, text: str) -> None:
        self.catalog, self.text = _catalog(), text
        self.topology = Topology(dict.fromkeys(("gw-1", "gw-2"), frozenset({"r"})))
        self.statement: Query
        self.plan: Plan
        self.bundle: object

    def parse(self) -> None:
        """Read the text."""
        found = parse_statement(self.text)
        if not isinstance(found, Query):
            raise TypeError(self.text)
        self.statement = found

    def bind(self) -> None:
        """Resolve names and types."""
        self.plan = bind_query(self.statement, self.catalog).plan

    def place(self) -> None:
        """Make the fragments of all sites."""
        ready = normalize(self.plan, self.topology)
        self.bundle = place(ready, self.topology, query="q1", text="")

    def compile(self) -> None:
        """Make the operators of one site."""
        ready = normalize(self.plan, self.topology)
        self.circuit = compile_plan(transform_up(ready, _remote), _none)
        self.step({})

    def step(self, delta: Delta) -> int:
        """Push a change; return how many rows the answer changes by."""
        return sum(abs(w) for w in self.circuit.step({}, {"r": delta}, 0).values())


def _statements(numbers: Sequence[int]) -> dict[str, str]:
    listed = ", ".join(map(str, numbers))
    # VALUES takes no more than 10,000 rows.
    parts = [numbers[n : n + _MOST_VALUES] for n in range(0, len(numbers), _MOST_VALUES)]
    relations = (
        f"SELECT x FROM (VALUES {', '.join(f'({number})' for number in part)}) AS v{n}(x)"
        for n, part in enumerate(parts)
    )
    rows = " UNION ALL ".join(relations)
    return {
        "list": f"SELECT name FROM r WHERE id IN ({listed})",
        "join": f"SELECT r.name FROM r JOIN ({rows}) AS v ON r.id = v.x",
    }


def _duckdb(
    statements: dict[str, str], rows: list[tuple[int, str]], rounds: int
) -> dict[str, Figures]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("CREATE TABLE r (id BIGINT, name VARCHAR)")
        planned = {
            way: [_cpu(lambda t=text: connection.execute(t).fetchall()) for _ in range(rounds)]  # type: ignore[misc]
            for way, text in statements.items()
        }
        ids, names = map(list, zip(*rows, strict=True))
        connection.execute("INSERT INTO r SELECT UNNEST(?), UNNEST(?)", [ids, names])
        run = {
            way: [_cpu(lambda t=text: connection.execute(t).fetchall()) for _ in range(rounds)]  # type: ignore[misc]
            for way, text in statements.items()
        }
        return {
            f"duckdb, {way}": {
                "plan ms": median(planned[way]) * 1e3,
                "whole ms": median(run[way]) * 1e3,
            }
            for way in statements
        }


def lists(
    sizes: Sequence[int], count: int, rounds: int, seed: int
) -> dict[str, dict[str, Figures]]:
    """Return the figures of IN lists and joins by size and contestant."""
    table: dict[str, dict[str, Figures]] = {}
    for size in sizes:
        choice = random.Random(seed + size)
        numbers = choice.sample(range(10 * size), size)
        inside = set(numbers)
        others = [number for number in range(2 * size) if number not in inside]
        rows = [
            (choice.choice(numbers if index % 2 else others), f"room {index}")
            for index in range(count)
        ]
        statements = _statements(numbers)
        times: dict[str, dict[str, list[float]]] = {}
        contestants: dict[str, List] = {}
        for _ in range(rounds):
            for way, text in statements.items():
                made = contestants[way] = List(text)
                steps = (made.parse, made.bind, made.place, made.compile)
                for step in steps:
                    of_way = times.setdefault(way, {})
                    of_way.setdefault(f"{step.__name__} ms", []).append(_cpu(step))
        answers: dict[str, set[int]] = {way: set() for way in statements}
        for weight in (1, -1) * rounds:
            delta: Delta = dict.fromkeys(rows, weight)
            for way, made in contestants.items():
                begin = time.process_time()
                answers[way].add(made.step(delta))
                taken = time.process_time() - begin
                times[way].setdefault("us a row", []).append(taken * 1e3 / len(rows))
        if len(set.union(*answers.values())) != 1:
            raise AssertionError(f"lists of {size} give different rows: {answers}")
        found: dict[str, Figures] = {}
        for way, measured in times.items():
            figures = {name: median(values) * 1e3 for name, values in measured.items()}
            figures["us a row, mean"] = mean(measured["us a row"]) * 1e3
            figures["us a row, max"] = max(measured["us a row"]) * 1e3
            figures["sent kB"] = len(encode_packed(contestants[way].bundle)) / 1e3
            found[way] = figures
        table[f"{size} numbers"] = found | _duckdb(statements, rows, rounds)
    return table


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="LIKE and IN: planning and rows.")
    parser.add_argument("--quick", action="store_true", help="fewer texts, rows and rounds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seed", type=int, default=1, help="of texts, lists and rows")
    options = parser.parse_args(argv)
    texts_count, rounds = (1_000, 3) if options.quick else (20_000, 15)
    choice = random.Random(options.seed)
    texts = [
        f"machine {choice.randrange(100)} in room {choice.randrange(60)}"
        f" {''.join(choice.choices(string.ascii_lowercase, k=8))} {choice.randrange(100)}"
        for _ in range(texts_count)
    ]
    result: dict[str, Any] = {
        "benchmark": "predicates",
        "settings": {
            "quick": options.quick,
            "seed": options.seed,
            "texts": texts_count,
            "rows": texts_count,
            "rounds": rounds,
            "limit_s": LIMIT,
        },
        "like_ns_a_text": usual_patterns(texts, rounds),
        "hostile": hostile_patterns((30, 1_000) if options.quick else (30, 60, 1_000, 100_000)),
        "in": lists(
            SIZES[:2] if options.quick else SIZES,
            texts_count,
            2 if options.quick else 7,
            options.seed,
        ),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return 0
    for pattern, figures in result["like_ns_a_text"].items():
        print_tables({f"LIKE, ns a text, {pattern}": figures}, digits=0)
    print("\nhostile patterns, seconds for one text")
    for what, row in result["hostile"].items():
        shown = (f"{n} {f['seconds']:.6f}" + ("" if f["ended"] else "+") for n, f in row.items())
        print(f"  {what:<40} {'  '.join(shown)}")
    for size, figures in result["in"].items():
        print_tables({f"IN, {size}": figures}, digits=2)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
