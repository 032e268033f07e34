"""Plans over the rows that sources hold at a time: Spark reads relations, not streams."""

from itertools import pairwise

from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Filter,
    Join,
    JoinKind,
    OnClose,
    Plan,
    Project,
    Scan,
    SetKind,
    SetOperation,
    StreamKind,
    StreamWindow,
    ToStream,
    UnionAll,
    Values,
    Window,
    WindowKind,
    identity_columns,
    with_inputs,
)
from streamsql.algebra.past_times import History
from streamsql.data.delta import expand
from streamsql.data.types import MICROSECONDS, DataType, Row
from streamsql.reference import evaluate
from streamsql.reference.reference_database import Database
from streamsql.reference.stream_instants import closings, databases, first_open


def frozen(plan: Plan, database: Database, now: int) -> Plan:
    """Return a plan with every source replaced by its rows at a time; the answer is the same.

    What is emitted moment by moment becomes the union over the moments.
    """
    match plan:
        case Scan() | Window() | StreamWindow(kind=WindowKind.ROWS):
            return Values(tuple(expand(evaluate(plan, database, now))), plan.schema)
        case OnClose():
            return _frozen_closings(plan, database, now)
        case ToStream():
            return _frozen_instants(plan, database, now)
        case StreamWindow():
            return _frozen_window(plan, frozen(plan.input, database, now), now)
        case _:
            return with_inputs(plan, tuple(frozen(child, database, now) for child in plan.inputs))


def with_past_rows(plan: Plan, database: Database, now: int) -> Plan:
    """Return a plan with every scan of the past replaced by its rows, which do not change."""
    match plan:
        case Scan(history=History()) | Window(input=Scan(history=History())):
            return Values(tuple(expand(evaluate(plan, database, now))), plan.schema)
        case _:
            inputs = tuple(with_past_rows(child, database, now) for child in plan.inputs)
            return with_inputs(plan, inputs)


def _frozen_closings(plan: OnClose, database: Database, now: int) -> Plan:
    """Return the union of what closed at each moment, as the sources were then."""
    branches: list[Plan] = []
    field = plan.schema.fields[plan.end]
    end = Column(plan.end, field.name, field.dtype)
    for closing in closings(
        plan, database, lambda then: list(expand(evaluate(plan.right, then, now)))
    ):
        then = closing.database
        sides = tuple(frozen(child, then, now) for child in plan.inputs)
        branch = with_inputs(plan, sides)
        if closing.after is not None:
            branch = _compared(branch, end, ">", closing.after)
        branches.append(branch)
    return _union(branches) if branches else Values((), plan.schema)


def _frozen_instants(plan: ToStream, database: Database, now: int) -> Plan:
    """Return the union of what each instant emits, as the sources were then."""

    def rows(part: Plan) -> list[Row]:
        return list(expand(evaluate(part, database, now)))

    final = first_open(list(map(rows, plan.progress)), database)
    relations = [
        (instant, frozen(plan.query, then, at))
        for instant, then, at in databases(plan, list(map(rows, plan.feeds)), final)
    ]
    changes = [
        (instant, before, after)
        for (_, before), (instant, after) in pairwise(relations)
        if before != after
    ]
    if not changes:
        return Values((), plan.schema)
    now_there = _union([_stamped(after, instant, plan.name) for instant, _, after in changes])
    was_there = _union([_stamped(before, instant, plan.name) for instant, before, _ in changes])
    came = SetOperation(now_there, was_there, SetKind.EXCEPT, all=True)
    went = SetOperation(was_there, now_there, SetKind.EXCEPT, all=True)
    match plan.kind:
        case StreamKind.ISTREAM:
            return came
        case StreamKind.DSTREAM:
            return went
        case StreamKind.RSTREAM:
            time = len(plan.query.schema)
            return Join(now_there, UnionAll((came, went)), JoinKind.SEMI, ((time, time),))


def _union(branches: list[Plan]) -> Plan:
    return branches[0] if len(branches) == 1 else UnionAll(tuple(branches))


def _stamped(plan: Plan, instant: int, name: str) -> Plan:
    stamp = Literal(instant, DataType.TIMESTAMP)
    return Project(plan, (*identity_columns(plan.schema), stamp), (*plan.schema.names, name))


def _frozen_window(window: StreamWindow, rows: Plan, now: int) -> Plan:
    """Return the rows of a stream that a window by time holds."""
    name = rows.schema.names[window.time]
    time = Column(window.time, name, DataType.TIMESTAMP)
    if window.kind == WindowKind.NOW:
        since = now // MICROSECONDS * MICROSECONDS - 1
        until: int | None = since + MICROSECONDS
    else:
        until = None if window.slide is None else now // window.slide * window.slide
        since = (now if until is None else until) - (window.size or 0)
    found = _compared(rows, time, ">", since)
    return found if until is None else _compared(found, time, "<=", until)


def _compared(rows: Plan, time: Column, comparison: str, instant: int) -> Plan:
    """Return the rows whose time compares so with an instant."""
    sides = (time, Literal(instant, DataType.TIMESTAMP))
    return Filter(rows, Call(comparison, sides, DataType.BOOLEAN))
