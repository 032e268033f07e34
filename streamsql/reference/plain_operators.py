"""Operators over whole relations: orders, as-of joins, sets, time windows, window functions."""

from collections import Counter
from typing import Any

from streamsql.algebra.expressions import Expression
from streamsql.algebra.operators import (
    AsOfJoin,
    HopWindow,
    JoinKind,
    OverWindow,
    SessionWindow,
    SetKind,
    SetOperation,
    TopN,
    WindowCall,
    WindowFunction,
)
from streamsql.algebra.operators.orders import in_order
from streamsql.algebra.scalar_functions.scalar import compile_expression, key_of
from streamsql.data.delta import sort_key
from streamsql.data.types import GREATEST_TIME, LEAST_TIME, Row, Value
from streamsql.reference.group_aggregates import aggregate


def top(plan: TopN, rows: list[Row]) -> list[Row]:
    """Return the first rows of every partition.

    Examples:
        >>> from streamsql.algebra.operators import SortKey, TopN, Values
        >>> from streamsql.data.schema import Schema
        >>> from streamsql.data.types import DataType
        >>> two = Values(((1,), (2,)), Schema.of(("n", DataType.INTEGER)))
        >>> top(TopN(two, (SortKey(0, descending=True),), 1), [(1,), (2,)])
        [(2,)]
    """
    key = key_of(plan.partition)
    partitions: dict[Row, list[Row]] = {}
    for row in rows:
        partitions.setdefault(key(row), []).append(row)
    end = None if plan.limit is None else plan.offset + plan.limit

    ordered = (in_order(members, plan.order) for members in partitions.values())
    return [row for members in ordered for row in members[plan.offset : end]]


def as_of(plan: AsOfJoin, left: list[Row], right: list[Row]) -> list[Row]:
    """Return each left row with the right row that was current at its time."""
    left_key = key_of(tuple(a for a, _ in plan.keys))
    right_key = key_of(tuple(b for _, b in plan.keys))
    padding = (None,) * len(plan.right.schema)
    result = []

    def newest(other: Row) -> tuple[object, object]:
        return (sort_key((other[plan.right_time],)), sort_key(other))

    for row in left:
        time = row[plan.left_time]
        current = [
            other
            for other in right
            if time is not None
            and other[plan.right_time] is not None
            and None not in left_key(row)
            and left_key(row) == right_key(other)
            and _not_after(other[plan.right_time], time, strict=plan.strict)
        ]
        if current:
            result.append(row + max(current, key=newest))
        elif plan.kind == JoinKind.LEFT:
            result.append(row + padding)
    return result


def _not_after(value: object, time: object, *, strict: bool) -> bool:
    a, b = sort_key((value,)), sort_key((time,))  # type: ignore[arg-type]
    return a < b if strict else a <= b


def combined(plan: SetOperation, left: list[Row], right: list[Row]) -> list[Row]:
    """Return the bag that the operation gives of two bags."""
    ours, theirs = Counter(left), Counter(right)
    if not plan.all:
        wanted = plan.kind == SetKind.INTERSECT
        return [row for row in ours if (row in theirs) == wanted]
    kept = ours & theirs if plan.kind == SetKind.INTERSECT else ours - theirs
    return list(kept.elements())


def hops(plan: HopWindow, rows: list[Row]) -> list[Row]:
    """Return each row once per window that holds its time, and whose bounds are TIMESTAMPs."""
    result: list[Row] = []
    for row in rows:
        time: Any = row[plan.time]
        if time is None:
            continue
        start = (time - plan.offset) // plan.hop * plan.hop + plan.offset
        while start + plan.size > time:
            if start >= LEAST_TIME and start + plan.size <= GREATEST_TIME:
                result.append((*row, start, start + plan.size))
            start -= plan.hop
    return result


def sessions(plan: SessionWindow, rows: list[Row]) -> list[Row]:
    """Return each row with the bounds of its session, if the gap after it is a TIMESTAMP."""
    key = key_of(plan.partition)
    partitions: dict[Row, list[Row]] = {}
    for row in rows:
        time: Any = row[plan.time]
        if time is not None and time <= GREATEST_TIME - plan.gap:
            partitions.setdefault(key(row), []).append(row)
    result: list[Row] = []
    for members in partitions.values():
        times: list[Any] = sorted({row[plan.time] for row in members})
        bounds: dict[Any, tuple[int, int]] = {}
        session: list[Any] = []
        for time in (*times, None):
            if session and (time is None or time - session[-1] >= plan.gap):
                bounds.update(dict.fromkeys(session, (session[0], session[-1] + plan.gap)))
                session = []
            session.append(time)
        result.extend(row + bounds[row[plan.time]] for row in members)
    return result


def over(plan: OverWindow, rows: list[Row]) -> list[Row]:
    """Return each row with the values of the calls.

    Examples:
        >>> from streamsql.algebra.operators import SortKey, Values
        >>> from streamsql.data.schema import Schema
        >>> from streamsql.data.types import DataType
        >>> rows = ((5,), (5,), (7,))
        >>> values = Values(rows, Schema.of(("x", DataType.INTEGER)))
        >>> calls = (WindowCall(WindowFunction.RANK, "r"),)
        >>> over(OverWindow(values, (), (SortKey(0),), calls), list(rows))
        [(5, 1), (5, 1), (7, 3)]
    """
    key = key_of(plan.partition)
    partitions: dict[Row, list[Row]] = {}
    for row in rows:
        partitions.setdefault(key(row), []).append(row)
    keys_of = key_of(tuple(sort.position for sort in plan.order))
    result: list[Row] = []
    for members in partitions.values():
        ordered = in_order(members, plan.order)
        keys = [keys_of(row) for row in ordered]
        result += [
            row + tuple([_value(call, ordered, keys, at) for call in plan.calls])
            for at, row in enumerate(ordered)
        ]
    return result


def _value(call: WindowCall, rows: tuple[Row, ...], keys: list[Row], at: int) -> Value:
    """Return the value of a call for the row at a place of its partition."""
    match call.function:
        case WindowFunction.ROW_NUMBER:
            return at + 1
        case WindowFunction.RANK:
            return keys.index(keys[at]) + 1
        case WindowFunction.DENSE_RANK:
            return len(set(keys[: at + 1]))
        case WindowFunction.PERCENT_RANK:
            return keys.index(keys[at]) / (len(rows) - 1) if len(rows) > 1 else 0.0
        case WindowFunction.CUME_DIST:
            return (keys.index(keys[at]) + keys.count(keys[at])) / len(rows)
        case WindowFunction.NTILE:
            return _run(at, call.number, len(rows))
        case WindowFunction.LAG | WindowFunction.LEAD:
            other = at + call.shift
            if 0 <= other < len(rows):
                return _evaluated(call.arguments[0], rows[other])
            default = call.arguments[1:]
            return _evaluated(default[0], rows[at]) if default else None
        case _:
            return _of_frame(call, _frame(call, rows, keys, at))


def _of_frame(call: WindowCall, frame: list[Row]) -> Value:
    over_rows = call.aggregate_call
    if over_rows is not None:
        return aggregate(over_rows, frame)
    if not frame:
        return None
    match call.function:
        case WindowFunction.FIRST_VALUE:
            place = 0
        case WindowFunction.NTH_VALUE:
            place = call.number - 1
        case _:
            place = len(frame) - 1
    return _evaluated(call.arguments[0], frame[place]) if place < len(frame) else None


def _run(at: int, runs: int, total: int) -> int:
    """Return the number of a row's run of NTILE: runs are dealt out one after the other."""
    length, longer = divmod(total, runs)
    lengths = [length + (run < longer) for run in range(min(runs, total))]
    numbers = [run + 1 for run, rows in enumerate(lengths) for _ in range(rows)]
    return numbers[at]


def _evaluated(expression: Expression, row: Row) -> Value:
    value: Value = compile_expression(expression)(row)
    return value


def _frame(call: WindowCall, rows: tuple[Row, ...], keys: list[Row], at: int) -> list[Row]:
    frame = call.frame
    first = last = at
    if frame.peers:
        first = keys.index(keys[at])
        last = first + keys.count(keys[at]) - 1
    start = 0 if frame.start is None else max(first + frame.start, 0)
    end = len(rows) if frame.end is None else max(last + frame.end + 1, 0)
    return list(rows[start:end])
