"""Columns of sources whose values a plan's columns hold as they are."""

from streamsql.algebra.aggregates import AggregateFunction
from streamsql.algebra.expressions import Column
from streamsql.algebra.leaves import Scan, Window
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    HopWindow,
    Join,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    ScanPart,
    SessionWindow,
    TopN,
    ToStream,
    UnionAll,
    walk_plan,
)

Origin = tuple[str, int]
"""Source, and position among the columns that are declared of it (`Scan.columns`)."""

_SAME_MEASURE = frozenset(
    {
        AggregateFunction.SUM,
        AggregateFunction.AVG,
        AggregateFunction.MIN,
        AggregateFunction.MAX,
        AggregateFunction.ARG_MIN,
        AggregateFunction.ARG_MAX,
        AggregateFunction.STDDEV_SAMP,
        AggregateFunction.STDDEV_POP,
        AggregateFunction.PERCENTILE_CONT,
        AggregateFunction.PERCENTILE_DISC,
        AggregateFunction.MODE,
    }
)
"""Aggregates of values of a unit that are of that unit."""


def column_origins(plan: Plan) -> tuple[Origin | None, ...]:
    """Return for each column the source's column that it is, or an aggregate of the same unit.

    None: it is computed, or comes from more than one column of sources, or nobody looked deeper.
    """
    found = _known(plan)
    width = len(plan.schema)
    return (*found[:width], *(None for _ in range(width - len(found))))


def column_units(plan: Plan) -> tuple[str, ...]:
    """Return the unit of each column, as the source of its values declares it; "" for none."""
    by_source = {node.source: node.units for node in walk_plan(plan) if isinstance(node, Scan)}
    units = []
    for origin in column_origins(plan):
        source, position = origin or ("", 0)
        known = by_source.get(source, ())
        units.append(known[position] if position < len(known) else "")
    return tuple(units)


def _known(plan: Plan) -> tuple[Origin | None, ...]:
    """Return the origins of the first columns; of those behind them nothing is known."""
    match plan:
        case Scan(part=ScanPart.ROWS | ScanPart.LATE):
            return tuple((plan.source, position) for position in range(len(plan.schema)))
        case Project(input=child, expressions=expressions):
            below = column_origins(child)
            return tuple(
                below[each.position] if isinstance(each, Column) else None for each in expressions
            )
        case Aggregate():
            return _aggregated(plan)
        case Join(left=left, right=right) | AsOfJoin(left=left, right=right):
            return (*column_origins(left), *column_origins(right))
        case UnionAll(branches=branches):
            columns = zip(*map(column_origins, branches), strict=True)
            return tuple(each[0] if len(set(each)) == 1 else None for each in columns)
        case OnClose(left=child) | ToStream(query=child) | Window(input=child):
            return column_origins(child)
        case (
            Filter(input=child)
            | Distinct(input=child)
            | Materialize(input=child)
            | HopWindow(input=child)
            | SessionWindow(input=child)
            | OverWindow(input=child)
            | TopN(input=child)
        ):
            return column_origins(child)
        case _:
            return ()


def _aggregated(plan: Aggregate) -> tuple[Origin | None, ...]:
    below = column_origins(plan.input)
    found = [below[position] for position in plan.group]
    for call in plan.aggregates:
        first = call.arguments[0] if call.arguments else None
        keeps = call.function in _SAME_MEASURE and isinstance(first, Column)
        found.append(below[first.position] if keeps and isinstance(first, Column) else None)
    return tuple(found)
