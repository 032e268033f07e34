"""Window functions: every row with its frame written out."""

from streamsql.algebra.expressions import Expression
from streamsql.algebra.operators import OverWindow, WindowCall, WindowFunction
from streamsql.algebra.row_order import in_order
from streamsql.algebra.scalar import compile_expression, key_of
from streamsql.data.types import Row, Value
from streamsql.reference.aggregates import aggregate


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
