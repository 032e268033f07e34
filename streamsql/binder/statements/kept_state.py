"""What operators remember of their inputs, and the sources whose rows they remember for ever."""

from collections.abc import Iterator

from streamsql.algebra.leaves import ScanPart
from streamsql.algebra.operators import (
    Aggregate,
    AggregateFunction,
    AsOfJoin,
    Distinct,
    Fixpoint,
    Join,
    JoinKind,
    OnClose,
    OverWindow,
    Plan,
    Scan,
    SessionWindow,
    SetOperation,
    SourceKind,
    StreamWindow,
    TopN,
    ToStream,
    Window,
    WindowKind,
)

Stateful = (
    Join
    | AsOfJoin
    | Aggregate
    | Distinct
    | TopN
    | OverWindow
    | SessionWindow
    | SetOperation
    | Fixpoint
)
"""Operators that remember rows of their inputs."""

_OF_NUMBERS = frozenset(
    (
        AggregateFunction.COUNT_ALL,
        AggregateFunction.COUNT,
        AggregateFunction.SUM,
        AggregateFunction.AVG,
        AggregateFunction.VAR_SAMP,
        AggregateFunction.VAR_POP,
        AggregateFunction.STDDEV_SAMP,
        AggregateFunction.STDDEV_POP,
        AggregateFunction.BOOL_AND,
        AggregateFunction.BOOL_OR,
    )
)
"""Aggregates that keep some numbers per group, however many rows there are."""


def operator_word(node: Stateful) -> str:
    """Return what a user writes for a stateful operator."""
    match node:
        case Join(kind=JoinKind.SEMI):
            return "IN or EXISTS"
        case Join(kind=JoinKind.ANTI):
            return "NOT IN or NOT EXISTS"
        case Join():
            return "JOIN"
        case AsOfJoin():
            return "ASOF JOIN"
        case Aggregate():
            return "GROUP BY"
        case Distinct():
            return "DISTINCT"
        case TopN():
            return "ORDER BY … LIMIT"
        case OverWindow():
            return "OVER"
        case SessionWindow():
            return "SESSION"
        case SetOperation(kind=kind):
            return str(kind)
        case Fixpoint():
            return "RECURSIVE"


def streams(plan: Plan) -> Iterator[Scan | Window]:
    """Yield the sources whose rows reach a place without another stateful operator between."""
    match plan:
        case Scan() | Window():
            yield plan
        case OnClose() | ToStream() | StreamWindow():
            return
        case _ if isinstance(plan, Stateful):
            return
        case _:
            for child in plan.inputs:
                yield from streams(child)


def is_unbounded(leaf: Scan | Window) -> bool:
    """Whether a source's contents grow for ever."""
    if isinstance(leaf, Window):
        return leaf.kind == WindowKind.UNBOUNDED and is_unbounded(leaf.input)
    is_stream = leaf.kind != SourceKind.TABLE and leaf.part != ScanPart.PROGRESS
    return is_stream and leaf.ttl is None and not leaf.key


def scan_of(leaf: Scan | Window) -> Scan:
    """Return the source of a leaf."""
    return leaf.input if isinstance(leaf, Window) else leaf


def kept_values(node: Aggregate) -> str:
    """Return the aggregates that keep all values of a group, or "" where numbers are enough."""
    kept = [
        call.implementation or call.function.value
        for call in node.aggregates
        if call.distinct or call.function not in _OF_NUMBERS
    ]
    return ", ".join(dict.fromkeys(kept))


def kept_streams(node: Plan) -> Iterator[ToStream]:
    """Yield the streams of queries whose rows reach an operator with no window between."""
    for child in node.inputs:
        if isinstance(child, ToStream):
            yield child
        elif not isinstance(child, OnClose | StreamWindow | Stateful):
            yield from kept_streams(child)
