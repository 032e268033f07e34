"""Do queries that read results of others at their site cost less, and how much does each cost?

    python -m benchmarks.result_feeds [--quick] [--json] [--readers 1 100 10000]

One base site, whose queries get rows of a gateway, step by step, in turns.

    node        ten queries that filter and count the pairs of one join: each on its own, or as
                readers of a silent query that has the join
    chain       a join, counts above it, a filter above these, and the largest count: each with all
                below it, or reading the one before
    equal       readers with one filter each, `k = c`; every changed row passes one of them
    between     likewise, `k >= c AND k < c + 1`
    expression  likewise, `k + 0 = c`
    function    likewise, `ABS(k) >= c AND ABS(k) < c + 1`
    columns     likewise, `k - n / 100 = c`, with n below 100
    prefix      likewise, `CAST(k AS TEXT) || '/' LIKE 'c/%'`
    either      likewise, `k = c OR n = -c - 1`
    piece       likewise, `'/' || CAST(k AS TEXT) || '/' LIKE '%/c/%'`
    same        likewise, but all filters are `n <> n + 0`, which no row passes
    inside      likewise, `k - c = n - n`: neither side is a constant
    asked       likewise, of a form that is evaluated for each reader: `ABS(k - c) = n - n`

    us/step     time of receiving one changed row a relation, and of the step (median)
    rows        that operators and channels of the site hold
    KB          that a reader adds (tracemalloc), and ms that its installation and first step take

How to read it: only ratios within one run mean anything. `times` is unshared / shared for the first
two, and many readers / one reader for the others. Shared and unshared answers are compared.
"""

import argparse
import gc
import json
import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from statistics import median

from msgspec.structs import replace

from gateway.__main__ import COLLECTIONS
from stream_engine.site.site_engine import SiteEngine
from stream_engine.testing.fed_bundles import Leaves, bundle_over
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    Join,
    JoinKind,
    Plan,
    Scan,
    SourceKind,
)
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch, WeightedRow

COLUMNS = Schema.of(("k", DataType.INTEGER), ("n", DataType.INTEGER))
LEFT, RIGHT = (Scan(name, SourceKind.STREAM, COLUMNS, (0,)) for name in ("left", "right"))
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "c")
MOST = AggregateCall(AggregateFunction.MAX, (Column(1, "c", DataType.INTEGER),), "most")
PAIRS = Join(LEFT, RIGHT, JoinKind.INNER, ((0, 0),))
QUERIES = 10
TURN = 20
"""Steps of one base before it is the turn of the next."""
HELD = ("state_rows", "rows_held")
BELOW = (
    "equal",
    "between",
    "expression",
    "function",
    "columns",
    "prefix",
    "either",
    "piece",
    "same",
    "inside",
    "asked",
)
K = Column(0, "k", DataType.INTEGER)
N = Column(1, "n", DataType.INTEGER)
DIGITS = Call("CAST", (K,), DataType.TEXT)
SLASH = Literal("/", DataType.TEXT)
BEFORE_SLASH = Call("||", (DIGITS, SLASH), DataType.TEXT)
IN_SLASHES = Call("||", (SLASH, BEFORE_SLASH), DataType.TEXT)


def number(value: int) -> Literal:
    """Return a literal."""
    return Literal(value, DataType.INTEGER)


def compared(name: str, left: Expression, value: int) -> Call:
    """Return a comparison of an expression with a number."""
    return Call(name, (left, number(value)), DataType.BOOLEAN)


def over(name: str, plan: Callable[[Plan], Plan], owner: FragmentBundle | None) -> FragmentBundle:
    """Return a bundle over the result of another one; None: over what the gateway sends."""
    if owner is None:
        return bundle_over(name, plan(PAIRS), Leaves({}, ("gw",)))
    leaf = Scan(owner.query, SourceKind.TABLE, owner.schema, (0,))
    return bundle_over(name, plan(leaf), Leaves({owner.query: owner}, ("gw",)))


def node(*, shared: bool) -> list[FragmentBundle]:
    """Return ten queries over one join, or over a silent query that has it."""
    join = replace(over("q0", lambda leaf: leaf, None), silent=True)

    def counted(bound: int) -> Callable[[Plan], Plan]:
        return lambda leaf: Aggregate(Filter(leaf, compared(">=", N, bound)), (1,), (COUNT,))

    readers = [over(f"q{i}", counted(i), join) for i in range(1, QUERIES + 1)]
    return [join, *readers] if shared else [replace(reader, feeds=()) for reader in readers]


def chain(*, shared: bool) -> list[FragmentBundle]:
    """Return four queries of which each goes on from the one before."""
    join = over("q1", lambda leaf: leaf, None)
    counts = over("q2", lambda leaf: Aggregate(leaf, (1,), (COUNT,)), join)
    some = over("q3", lambda leaf: Filter(leaf, compared(">", N, 1)), counts)
    most = over("q4", lambda leaf: Aggregate(leaf, (), (MOST,)), some)
    found = [join, counts, some, most]
    return found if shared else [replace(bundle, feeds=()) for bundle in found]


def filter_of(kind: str, value: int) -> Call:
    """Return the filter of the reader of a number."""
    match kind:
        case "equal":
            return compared("=", K, value)
        case "between":
            return both(compared(">=", K, value), compared("<", K, value + 1))
        case "expression":
            return compared("=", Call("+", (K, number(0)), K.dtype), value)
        case "function":
            size = Call("ABS", (K,), K.dtype)
            return both(compared(">=", size, value), compared("<", size, value + 1))
        case "columns":
            none = Call("/", (N, number(100)), K.dtype)
            return compared("=", Call("-", (K, none), K.dtype), value)
        case "prefix":
            return like(BEFORE_SLASH, f"{value}/%")
        case "either":
            parts = (compared("=", K, value), compared("=", N, -value - 1))
            return Call("OR", parts, DataType.BOOLEAN)
        case "piece":
            return like(IN_SLASHES, f"%/{value}/%")
        case "same":
            return Call("<>", (N, Call("+", (N, number(0)), N.dtype)), DataType.BOOLEAN)
        case _:
            less = Call("-", (K, number(value)), K.dtype)
            less = less if kind == "inside" else Call("ABS", (less,), K.dtype)
            return Call("=", (less, Call("-", (N, N), N.dtype)), DataType.BOOLEAN)


def both(*parts: Expression) -> Call:
    """Return a conjunction."""
    return Call("AND", parts, DataType.BOOLEAN)


def like(text: Expression, pattern: str) -> Call:
    """Return a comparison of a text with a pattern."""
    return Call("LIKE", (text, Literal(pattern, DataType.TEXT)), DataType.BOOLEAN)


def readers(kind: str, count: int) -> list[FragmentBundle]:
    """Return a silent query and readers, each with the filter of one key."""
    node = replace(bundle_over("q0", LEFT, Leaves({}, ("gw",))), silent=True)

    def one(value: int) -> Callable[[Plan], Plan]:
        test = filter_of(kind, value)
        return lambda leaf: Filter(leaf, test)

    return [node, *(over(f"q{i + 1}", one(i), node) for i in range(count))]


class Base:
    """A base site with queries, and the rows that its gateway has sent."""

    def __init__(self, bundles: list[FragmentBundle], keys: int) -> None:
        self.site = SiteEngine("base", 1)
        self._random = random.Random(1)
        self._keys = keys
        self._now = 0
        self._readings: dict[str, dict[int, int]] = {"left": {}, "right": {}}
        self._sequence = 0
        self._names = [bundle.query for bundle in bundles]
        for bundle in bundles:
            self.site.install(bundle)
        self.site.step(0)
        own = ((b.query, [f.id for f in b.own if "gw" in f.sites]) for b in bundles)
        self._ports = [(query, ports) for query, ports in own if ports]

    def change(self, rows: int = 1) -> float:
        """Change readings of each relation; return the microseconds of the step."""
        parts = {name: tuple(self._changed(name, rows)) for name in self._readings}
        self._now += 1
        began = time.perf_counter()
        for query, ports in self._ports:
            for place, port in enumerate(ports):
                sequence = self._sequence + place
                changed = parts[port.rpartition(".")[2]]
                batch = DeltaBatch(1, 1, sequence, port, changed, reset=not self._sequence)
                self.site.receive(query, "gw", batch)
        self._sequence += len(self._ports[0][1])
        self.site.step(self._now)
        return (time.perf_counter() - began) * 1e6

    def _changed(self, relation: str, rows: int) -> list[WeightedRow]:
        values, found = self._readings[relation], []
        for _ in range(rows):
            key = self._random.randrange(self._keys)
            if key in values:
                found.append(WeightedRow((key, values[key]), -1))
            values[key] = self._random.randrange(100)
            found.append(WeightedRow((key, values[key]), 1))
        sums: dict[tuple[int, int], int] = {}
        for entry in found:
            sums[entry.row] = sums.get(entry.row, 0) + entry.weight  # type: ignore[index, arg-type]
        return [WeightedRow(row, weight) for row, weight in sums.items() if weight]

    def rows(self) -> int:
        """Return the rows in operators and channels."""
        held = [p for p in self.site.properties(self._now) if p.property in HELD]
        return int(sum(p.value for p in held))

    def answers(self) -> dict[str, Delta]:
        """Return the results of all queries."""
        return {name: self.site.kept_result(name) for name in self._names}


def compare(make: Callable[..., list[FragmentBundle]], keys: int, steps: int) -> dict[str, object]:
    """Return the figures of queries that share and that do not, measured in turns."""
    alone, shared = Base(make(shared=False), keys), Base(make(shared=True), keys)
    for base in (alone, shared):
        base.change(keys)
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(steps // TURN):
        for base, times in ((alone, took[0]), (shared, took[1])):
            base.change()  # what the other has left in the caches of the processor is not its
            times.extend(base.change() for _ in range(TURN))
    right, found = alone.answers(), shared.answers()
    if any(found[name] != rows for name, rows in right.items()):
        raise AssertionError("queries answer otherwise when they share")
    return {
        "alone_us": median(took[0]),
        "shared_us": median(took[1]),
        "alone_rows": alone.rows(),
        "shared_rows": shared.rows(),
    }


def measure_readers(kind: str, counts: list[int], steps: int) -> list[dict[str, object]]:
    """Return the figures of each number of readers, measured in turns."""
    bases, found = [], []
    for count in counts:
        gc.collect()
        bundles = readers(kind, count)
        tracemalloc.start()
        few = Base(bundles[: min(count, 200) + 1], count)
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del few
        began = time.perf_counter()
        bases.append(Base(bundles, count))
        took = (time.perf_counter() - began) * 1e3
        bases[-1].change(min(count, 1_000))
        each = {"kb": size / 1e3 / min(count, 200), "install_ms": took / count}
        found.append({"kind": kind, "readers": count, **each})
    took_each: list[list[float]] = [[] for _ in counts]
    for _ in range(steps // TURN):
        for base, times in zip(bases, took_each, strict=True):
            base.change()  # what the others have left in the caches of the processor is not its
            times.extend(base.change() for _ in range(TURN))
    for figures, times in zip(found, took_each, strict=True):
        figures["us"] = median(times)
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--quick", action="store_true", help="200 keys, 1 and 100 readers")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args()
    keys, steps = (200, 100) if options.quick else (5_000, 200)
    counts = [1, 100] if options.quick else options.readers
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    shapes = {name: compare(make, keys, steps) for name, make in (("node", node), ("chain", chain))}
    thin = [figures for kind in BELOW for figures in measure_readers(kind, counts, steps)]
    if options.json:
        print(json.dumps({"keys": keys, "shapes": shapes, "readers": thin}))
        return 0
    print(f"{'':8} {'alone us':>9} {'shared':>8} {'times':>6} {'alone rows':>11} {'shared':>8}")
    for name, f in shapes.items():
        times = f["alone_us"] / f["shared_us"]  # type: ignore[operator]
        print(f"{name:8} {f['alone_us']:9.0f} {f['shared_us']:8.0f} {times:6.1f}", end="")
        print(f" {f['alone_rows']:11} {f['shared_rows']:8}")
    print(f"\n{'':10} {'readers':>8} {'us/step':>9} {'times':>7} {'KB each':>8} {'ms each':>8}")
    for f in thin:
        one = next(g for g in thin if g["kind"] == f["kind"])
        times = f["us"] / one["us"]  # type: ignore[operator]
        print(f"{f['kind']:10} {f['readers']:8} {f['us']:9.0f} {times:7.1f}", end="")
        print(f" {f['kb']:8.1f} {f['install_ms']:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
