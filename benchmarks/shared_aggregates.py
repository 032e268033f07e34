"""Do groups cost less as groups of a node's groups than of the rows themselves?

    python -m benchmarks.shared_aggregates [--quick] [--json] [--readers 1 10 50]

One base site, which receives visits (category, hospital, day, fee) once for all queries. Each query
groups by some of the three, or by less of the day, with other functions and conditions. Alone it
reads the visits; shared it reads a silent query that has all groups with the statistics of the
functions, as the rule of coarser groups says. Step by step, in turns.

    dashboards  each query has the groups of one category, hospital or day
    coarser     each query has counts, means, deviations or maxima of coarser groups

    changed     visits that change in a step, of 100 groups: what a node saves its readers is that
                changes of one group are one change
    us/step     time of receiving the changed visits, and of the step (median)
    rows        that operators and channels of the site hold

How to read it: only ratios within one run mean anything. `times` is alone / shared; answers are
compared.
"""

import argparse
import gc
import json
import random
import sys
import time
from statistics import median

from msgspec.structs import replace

from federated_optimizer.sharing.rules.coarser_groups import answered
from federated_optimizer.sharing.rules.more_functions import groups_to_share
from gateway.__main__ import COLLECTIONS
from stream_engine.site.site_engine import SiteEngine
from stream_engine.testing.fed_bundles import Leaves, bundle_over
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Filter,
    Plan,
    Project,
    Scan,
    SourceKind,
)
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import DeltaBatch, WeightedRow

F = AggregateFunction
INTEGER, DOUBLE = DataType.INTEGER, DataType.DOUBLE
COLUMNS = Schema.of(
    ("visit", INTEGER),
    ("category", INTEGER),
    ("hospital", INTEGER),
    ("day", INTEGER),
    ("fee", DOUBLE),
)
VISITS = Scan("visits", SourceKind.STREAM, COLUMNS, (0,))
CATEGORY, HOSPITAL, DAY, FEE = (Column(n, COLUMNS.names[n], COLUMNS.dtypes[n]) for n in range(1, 5))
COUNT = AggregateCall(F.COUNT_ALL, (), "n")
MEAN = AggregateCall(F.AVG, (FEE,), "mean")
SPREAD = AggregateCall(F.STDDEV_SAMP, (FEE,), "spread")
MOST = AggregateCall(F.MAX, (FEE,), "most")
CATEGORIES, HOSPITALS, DAYS = 4, 5, 5
TURN = 10
"""Steps of one base before it is the turn of the next."""
HELD = ("state_rows", "rows_held")
KINDS = ("dashboards", "coarser")


def grouped(rows: Plan, keys: tuple[Expression, ...], calls: tuple[AggregateCall, ...]) -> Plan:
    """Return groups of visits by expressions."""
    shown = (*keys, FEE)
    names = (*(f"k{n}" for n in range(len(keys))), "fee")
    fee = Column(len(keys), "fee", DOUBLE)
    moved = tuple(replace(c, arguments=(fee,)) if c.arguments else c for c in calls)
    return Aggregate(Project(rows, shown, names), tuple(range(len(keys))), moved)


NODE = grouped(VISITS, (CATEGORY, HOSPITAL, DAY), (COUNT, MEAN, SPREAD, MOST))


def number(value: int) -> Literal:
    """Return a literal."""
    return Literal(value, INTEGER)


def wanted(kind: str, place: int) -> Plan:
    """Return the query of a number."""
    if kind == "dashboards":
        column, count = ((CATEGORY, CATEGORIES), (HOSPITAL, HOSPITALS), (DAY, DAYS))[place % 3]
        equal = Call("=", (column, number(place // 3 % count)), DataType.BOOLEAN)
        others = tuple(c for c in (CATEGORY, HOSPITAL, DAY) if c != column)
        return grouped(Filter(VISITS, equal), others, (COUNT, MEAN))
    week = Call("/", (DAY, number(3)), INTEGER)
    keys = ((HOSPITAL, DAY), (CATEGORY, DAY), (HOSPITAL,), (CATEGORY, week), (DAY,))[place % 5]
    calls = ((COUNT, MEAN), (COUNT, MOST), (MEAN, SPREAD))[place % 3]
    more = Call(
        ">", (Column(len(keys), "n", calls[0].dtype), number(place // 15)), DataType.BOOLEAN
    )
    if calls[0] == COUNT:
        return Filter(grouped(VISITS, keys, calls), more)
    return grouped(VISITS, keys, calls)


def bundles(kind: str, count: int, *, shared: bool) -> list[FragmentBundle]:
    """Return queries over visits that a silent query has, or over the groups of another one."""
    visits = replace(bundle_over("q0", VISITS, Leaves({}, ("gw",))), silent=True)
    rows = Scan("q0", SourceKind.TABLE, COLUMNS, (0,))
    groups = groups_to_share(NODE)
    if groups is None:
        raise AssertionError("the node has no groups")
    node = replace(
        bundle_over("q1", _over(groups, rows), Leaves({"q0": visits}, ("gw",))), silent=True
    )
    leaf = Scan("q1", SourceKind.TABLE, groups.schema)
    made = []
    for place in range(count):
        query = wanted(kind, place)
        plan = answered(query, groups, leaf) if shared else _over(query, rows)
        owners = {"q1": node} if shared else {"q0": visits}
        made.append(bundle_over(f"q{place + 2}", plan, Leaves(owners, ("gw",))))
    return [visits, node, *made] if shared else [visits, *made]


def _over(plan: Plan, rows: Scan) -> Plan:
    """Return a plan over other rows than those of visits."""
    match plan:
        case Scan():
            return rows
        case Filter(input=child, predicate=predicate):
            return Filter(_over(child, rows), predicate)
        case Project(input=child, expressions=expressions, names=names):
            return Project(_over(child, rows), expressions, names)
        case Aggregate(input=child, group=group, aggregates=calls):
            return Aggregate(_over(child, rows), group, calls)
        case _:
            raise AssertionError(plan)


class Base:
    """A base site with queries, and the visits that it has received."""

    def __init__(self, made: list[FragmentBundle]) -> None:
        self.site = SiteEngine("base", 1)
        self._names = [bundle.query for bundle in made if not bundle.silent]
        for bundle in made:
            self.site.install(bundle)
        self.site.step(0)
        self._random = random.Random(1)
        self._visits: dict[int, Row] = {}
        self._sequence = 0

    def change(self, rows: int, most: int) -> float:
        """Change some of at most so many visits; return the microseconds of the step."""
        parts = tuple(self._changed(rows, most))
        began = time.perf_counter()
        batch = DeltaBatch(1, 1, self._sequence, "visits", parts, reset=not self._sequence)
        self.site.receive("q0", "gw", batch)
        self._sequence += 1
        self.site.step(self._sequence)
        return (time.perf_counter() - began) * 1e6

    def _changed(self, rows: int, most: int) -> list[WeightedRow]:
        found = []
        chance = self._random
        for visit in chance.sample(range(most), min(rows, most)):
            if visit in self._visits:
                found.append(WeightedRow(self._visits[visit], -1))
            place = chance.randrange(HOSPITALS)
            day, fee = chance.randrange(DAYS), chance.randrange(100_000) / 100
            self._visits[visit] = (visit, chance.randrange(CATEGORIES), place, day, fee)
            found.append(WeightedRow(self._visits[visit], 1))
        return found

    def rows(self) -> int:
        """Return the rows in operators and channels."""
        held = [p for p in self.site.properties(self._sequence) if p.property in HELD]
        return int(sum(p.value for p in held))

    def answers(self) -> list[Delta]:
        """Return the results of all queries."""
        return [self.site.kept_result(name) for name in self._names]


def compare(kind: str, count: int, changed: int, visits: int, steps: int) -> dict[str, object]:
    """Return the figures of queries alone and shared, measured in turns."""
    alone, shared = (Base(bundles(kind, count, shared=is_shared)) for is_shared in (False, True))
    for base in (alone, shared):
        base.change(visits, visits)
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(max(steps // TURN, 1)):
        for base, times in ((alone, took[0]), (shared, took[1])):
            base.change(changed, visits)  # what the other has left in the caches is not its own
            times.extend(base.change(changed, visits) for _ in range(TURN))
    if alone.answers() != shared.answers():
        raise AssertionError(f"{kind}: queries answer otherwise when they share")
    return {
        "kind": kind,
        "readers": count,
        "changed": changed,
        "alone_us": median(took[0]),
        "shared_us": median(took[1]),
        "alone_rows": alone.rows(),
        "shared_rows": shared.rows(),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 10, 50])
    parser.add_argument("--quick", action="store_true", help="2,000 visits, 1 and 10 readers")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args()
    visits, steps = (2_000, 20) if options.quick else (10_000, 20)
    counts = [1, 10] if options.quick else options.readers
    sizes = (10, 1_000) if options.quick else (10, 1_000, 5_000)
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    found = [
        compare(kind, count, changed, visits, steps if changed < 1_000 else TURN)
        for kind in KINDS
        for count in counts
        for changed in sizes
    ]
    if options.json:
        print(json.dumps({"visits": visits, "found": found}))
        return 0
    print(
        f"{'':11} {'readers':>8} {'changed':>8} {'alone us':>9} {'shared':>8} {'times':>6}", end=""
    )
    print(f" {'alone rows':>11} {'shared':>8}")
    for f in found:
        times = f["alone_us"] / f["shared_us"]  # type: ignore[operator]
        print(f"{f['kind']:11} {f['readers']:8} {f['changed']:8} {f['alone_us']:9.0f}", end="")
        print(f" {f['shared_us']:8.0f}", end="")
        print(f" {times:6.1f} {f['alone_rows']:11} {f['shared_rows']:8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
