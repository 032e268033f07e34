"""Tests for streams (rows are added, none is ever deleted) and for plans that keep history."""

import enum

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    JoinKind,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    ScanPart,
    SessionWindow,
    SetOperation,
    SourceKind,
    TopN,
    ToStream,
    UnionAll,
    Values,
    Window,
    WindowBounds,
    WindowKind,
    Younger,
)

FUNCTIONS_OF_INPUTS = (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    HopWindow,
    Join,
    Materialize,
    OverWindow,
    Project,
    RemoteSource,
    Scan,
    SessionWindow,
    SetOperation,
    TopN,
    UnionAll,
    Values,
    Window,
    WindowBounds,
    Younger,
)
"""Plan nodes whose output is a function of their inputs' relations, however the inputs' changes are
mixed. Nodes not named here, later ones too, are taken not to be one."""

RECURSION = (Fixpoint, RecursiveReference)
"""Functions of their inputs as well, but they receive messages of other sites in every step."""


class Emit(enum.StrEnum):
    """Changes of a query's result: signed, or rows that are only added and not remembered."""

    RELATION = "relation"
    STREAM = "stream"


def emit_of(plan: Plan) -> Emit:
    """Return the changes that a plan gives."""
    return Emit.STREAM if is_stream(plan) else Emit.RELATION


def keeps_history(node: Plan) -> bool:
    """Whether a node's rows rest on changes that are over, not only on what its inputs hold now."""
    if isinstance(node, Scan):
        return node.is_log
    return not isinstance(node, (*FUNCTIONS_OF_INPUTS, *RECURSION))


def is_stream(plan: Plan) -> bool:
    """Whether a plan gives a stream whose rows it does not remember."""
    match plan:
        case ToStream():
            return True
        case Scan(part=part):
            return part == ScanPart.EVENTS
        case Filter(input=child) | Project(input=child) | Materialize(input=child):
            return is_stream(child)
        case UnionAll(branches=branches):
            return all(map(is_stream, branches))
        case _:
            return False


def is_final(plan: Plan) -> bool:
    """Whether a plan gives windows that have closed: what is given is never taken back."""
    match plan:
        case OnClose():
            return True
        case Filter(input=child) | Project(input=child) | Materialize(input=child):
            return is_final(child)
        case _:
            return False


def stream_time(plan: Plan) -> int | None:
    """Return the position of the instant in the rows of ISTREAM, DSTREAM or RSTREAM, or None."""
    match plan:
        case ToStream():
            return len(plan.schema) - 1
        case Filter(input=child) | Materialize(input=child):
            return stream_time(child)
        case Project(input=child, expressions=expressions):
            time = stream_time(child)
            shown = (
                position
                for position, expression in enumerate(expressions)
                if isinstance(expression, Column) and expression.position == time
            )
            return next(shown, None)
        case UnionAll(branches=branches):
            times = set(map(stream_time, branches))
            return times.pop() if len(times) == 1 else None
        case _:
            return None


def ordered_time(plan: Plan) -> int | None:
    """Return the position of a stream's instant if later changes always have later ones.

    A union of streams of different sources has no such order.
    """
    match plan:
        case UnionAll():
            return None
        case Filter() | Project() | Materialize() if ordered_time(plan.input) is None:
            return None
        case _:
            return stream_time(plan)


def is_monotone(plan: Plan) -> bool:
    """Whether rows only come and never leave, so that CQL takes the relation for a stream."""
    match plan:
        case Scan():
            return plan.kind == SourceKind.STREAM and plan.is_log
        case Window(kind=kind, input=scan):
            return kind == WindowKind.UNBOUNDED and is_monotone(scan)
        case ToStream():
            return True
        case Filter() | Project() | Distinct() | HopWindow() | Materialize():
            return is_monotone(plan.input)
        case Join(kind=JoinKind.INNER | JoinKind.SEMI) | UnionAll():
            return all(map(is_monotone, plan.inputs))
        case _:
            return False
