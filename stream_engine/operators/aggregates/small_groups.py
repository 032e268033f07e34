"""Groups that need no accumulators: of which only the number of rows is asked, or of one row."""

from collections.abc import Callable
from typing import Any

from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.algebra.scalar import compile_row
from streamsql.data.delta import Delta, accumulate, add
from streamsql.data.types import DataType, Row

_ONE = Literal(1, DataType.INTEGER)

Spilled = tuple[list[Row], Row | None]
"""The rows of a group that has become too large, one at most, and its row in the output so far."""


class CountedGroups:
    """COUNT(*) by the values of columns; also several of them.

    State: a number a group. Work: one step a changed row and one a touched group.
    """

    # 3 times as fast as groups with accumulators (benchmarks/operators.py, COUNT(*) by key).

    def __init__(self, group: tuple[int, ...], times: int) -> None:
        self._key_of = picker(group)
        self._times = times
        self._counts: dict[Row, int] = {}

    @staticmethod
    def of(group: tuple[int, ...], aggregates: tuple[AggregateCall, ...]) -> "CountedGroups | None":
        """Return an empty collection, or None where something else is asked."""
        counted = all(call.function == AggregateFunction.COUNT_ALL for call in aggregates)
        if not (group and aggregates and counted):
            return None
        return CountedGroups(group, len(aggregates))

    def __len__(self) -> int:
        return len(self._counts)

    def forget(self, key: Row) -> None:
        """Discard a group silently."""
        self._counts.pop(key, None)

    def change(self, delta: Delta) -> Delta:
        """Ingest changed rows; return the change of the output."""
        counts, times, key_of = self._counts, self._times, self._key_of
        changes: Delta = {}
        changed = changes.get
        for row, weight in delta.items():
            key = key_of(row)
            changes[key] = changed(key, 0) + weight
        result: Delta = {}
        for key, weight in changes.items():
            old = counts.get(key, 0)
            new = old + weight
            if new == old:
                continue
            if old > 0:
                result[key + (old,) * times] = -1
            if new > 0:
                result[key + (new,) * times] = 1
            if new:
                counts[key] = new
            else:
                del counts[key]
        return result


class LoneGroups:
    """Groups of one row, once, without NULLs: most groups of a view of best rows per key.

    State: the rows, whose aggregates are looked up in them. Work: O(1) a changed row.
    """

    # 4 times as fast as groups with accumulators (benchmarks/operators.py, MIN by a unique key).

    def __init__(self, group: tuple[int, ...], output_of: Callable[[Row], Row]) -> None:
        self._key_of = picker(group)
        self._output_of = output_of
        self._lone: dict[Row, Row] = {}

    @staticmethod
    def of(group: tuple[int, ...], aggregates: tuple[AggregateCall, ...]) -> "LoneGroups | None":
        """Return an empty collection, or None where such aggregates need accumulators."""
        output_of = lone_row_function(group, aggregates) if group else None
        return None if output_of is None else LoneGroups(group, output_of)

    def __len__(self) -> int:
        return len(self._lone)

    def forget(self, key: Row) -> None:
        """Discard a group silently."""
        self._lone.pop(key, None)

    def change(
        self, delta: Delta, large: dict[Row, Any], result: Delta
    ) -> tuple[Delta, dict[Row, Spilled]]:
        """Ingest the changes after which groups have one row at most; return the others.

        A row that takes another one's place does so at once if it comes after the other has left,
        as it does when a recursion replaces a row; otherwise it waits for the second look.

        Returns:
            The changes of large groups, and the groups that have become large.
        """
        lone, key_of, output_of = self._lone, self._key_of, self._output_of
        rest: Delta = {}
        for row, weight in delta.items():
            key = key_of(row)
            only = lone.get(key)
            if only is not None:
                if weight == -1 and only == row:
                    del lone[key]
                    result[output_of(row)] = -1
                    continue
            elif weight == 1 and key not in large and None not in row:
                lone[key] = row
                output = output_of(row)
                if output in result:
                    del result[output]
                else:
                    result[output] = 1
                continue
            rest[row] = weight
        return self._change_again(rest, large, result) if rest else (rest, {})

    def _change_again(
        self, delta: Delta, large: dict[Row, Any], result: Delta
    ) -> tuple[Delta, dict[Row, Spilled]]:
        by_key: dict[Row, Delta] = {}
        rest: Delta = {}
        for row, weight in delta.items():
            key = self._key_of(row)
            if key in large:
                rest[row] = weight
            else:
                by_key.setdefault(key, {})[row] = weight
        spilled: dict[Row, Spilled] = {}
        for key, changes in by_key.items():
            only = self._lone.pop(key, None)
            old = None if only is None else self._output_of(only)
            rows: Delta = {} if only is None else {only: 1}
            accumulate(rows, changes)
            if len(rows) > 1 or any(weight != 1 or None in row for row, weight in rows.items()):
                spilled[key] = ([] if only is None else [only], old)
                rest.update(changes)
                continue
            if old is not None:
                add(result, old, -1)
            for row in rows:
                self._lone[key] = row
                add(result, self._output_of(row), 1)
        return rest, spilled


def lone_row_function(
    group: tuple[int, ...], aggregates: tuple[AggregateCall, ...]
) -> Callable[[Row], Row] | None:
    """Return the output row of a group that holds one row without NULLs, once.

    Returns:
        None where an aggregate of one row is not simply a value of the row.
    """
    values: list[Expression] = []
    for call in aggregates:
        value = _of_one(call)
        if value is None:
            return None
        values.append(value)
    columns = [value.position for value in values if isinstance(value, Column)]
    if len(columns) == len(values):
        return picker(group + tuple(columns))
    key_of, rest_of = picker(group), compile_row(tuple(values))
    return lambda row: key_of(row) + rest_of(row)


def _of_one(call: AggregateCall) -> Expression | None:
    """Return an aggregate of one row, as an expression over it.

    The row has no NULLs, but what is computed from it may be NULL: then only MIN and MAX are what
    they are of. A sum of doubles makes 0.0 of -0.0, so it is no copy either.
    """
    first = call.arguments[0] if call.arguments else _ONE
    match call.function:
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return first
        case AggregateFunction.ARG_MIN | AggregateFunction.ARG_MAX:
            return first if isinstance(call.arguments[1], Column) else None
        case AggregateFunction.COUNT_ALL:
            return _ONE
        case AggregateFunction.COUNT:
            return _ONE if isinstance(first, Column) else None
        case AggregateFunction.SUM:
            return first if first.dtype != DataType.DOUBLE else None
        case _:
            return None
