"""Queries of a site, and events that come in bursts."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    Filter,
    HopWindow,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
    SourceKind,
)
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SECOND = 1_000_000
KEYS = 500
INT, T, D, B = DataType.INTEGER, DataType.TEXT, DataType.DOUBLE, DataType.BOOLEAN

READINGS = Scan(
    "readings",
    SourceKind.STREAM,
    Schema.of(("id", INT), ("k", INT), ("v", INT), ("x", D), ("ts", DataType.TIMESTAMP)),
    time_column=4,
)
ROOMS = Scan("rooms", SourceKind.STREAM, Schema.of(("k", INT), ("room", T)), key=(0,))

COUNT = AggregateCall(F.COUNT_ALL, (), "n")


def _column(plan: Plan, position: int) -> Column:
    field = plan.schema.fields[position]
    return Column(position, field.name, field.dtype)


def _below(plan: Plan, position: int, limit: int) -> Filter:
    bound = Literal(limit, INT)
    return Filter(plan, Call("<", (_column(plan, position), bound), B))


def _scaled(plan: Plan) -> Project:
    """Compute something of every row."""
    columns: list[Expression] = [_column(plan, p) for p in range(4)]
    columns.append(Call("+", (Call("*", (columns[3], Literal(1.8, D)), D), Literal(32.0, D)), D))
    return Project(plan, tuple(columns), ("id", "k", "v", "x", "f"))


def _averages(plan: Plan, key: int, value: int) -> Aggregate:
    return Aggregate(plan, (key,), (COUNT, AggregateCall(F.AVG, (_column(plan, value),), "a")))


def _selective_first() -> Plan:
    """A filter that drops most rows, in front of what is dear."""
    few = _below(READINGS, 2, 20)
    return Aggregate(
        _scaled(few), (1,), (COUNT, AggregateCall(F.PERCENTILE_CONT, (_column(few, 3),), "m"))
    )


def _selective_last() -> Plan:
    """Operators that drop little or nothing, in front of a filter that drops most rows."""
    return _averages(_below(_scaled(_below(READINGS, 2, 95)), 2, 2), 1, 4)


def _windows() -> Plan:
    """Every row in four windows, of which few are looked at."""
    windows = HopWindow(READINGS, 4, SECOND, SECOND // 4)
    return _averages(_below(windows, 2, 10), 1, 3)


def _join() -> Plan:
    """Rows joined with a keyed relation, counted by what that says."""
    joined = Join(_below(READINGS, 2, 50), ROOMS, JoinKind.INNER, ((1, 0),))
    return _averages(joined, 6, 3)


QUERIES: dict[str, Plan] = {
    "selective first": _selective_first(),
    "selective last": _selective_last(),
    "windows": _windows(),
    "join": _join(),
}

LOADS: dict[str, tuple[str, ...]] = {
    "selective first": ("selective first",),
    "selective last": ("selective last",),
    "join and windows": ("join", "windows"),
    "all four": tuple(QUERIES),
}
"""Queries that run at the site together."""


def site_with(load: str, site: SiteEngine) -> None:
    """Let a site run the queries of a load; its rooms are there."""
    for scan in (READINGS, ROOMS):
        site.declare(scan)
    for name in LOADS[load]:
        plan = QUERIES[name]
        fragment = Fragment("f1", Engine.GATEWAY, plan, (site.site,))
        site.install(FragmentBundle(name, 1, (fragment,), plan.schema))
    site.ingest("rooms", [SourceEvent((k, f"room {k % 40}"), 0) for k in range(KEYS)])
    site.step(0)


@dataclass(frozen=True, slots=True)
class Burst:
    """A time in which events come evenly, and a rest behind it.

    Attributes:
        seconds: Of the burst.
        rest: Seconds without events after it.
        rate: Events a second in the burst.
    """

    seconds: float
    rest: float
    rate: float


def arrivals(burst: Burst, bursts: int, seed: int = 1) -> Iterator[SourceEvent]:
    """Yield the events of several bursts, in order; microseconds from second 1 on."""
    choice = random.Random(seed)
    number = 0
    start = float(SECOND)
    for _ in range(bursts):
        count = int(burst.seconds * burst.rate)
        for position in range(count):
            ts = int(start + position / burst.rate * SECOND)
            row = (number, choice.randrange(KEYS), choice.randrange(100), choice.random(), ts)
            yield SourceEvent(row, ts)
            number += 1
        start += (burst.seconds + burst.rest) * SECOND
