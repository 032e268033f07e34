"""Groups that need no accumulators: of which only the rows are counted, or of a row or two."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from stream_engine.state.columns import picker
from streamsql.algebra.expressions import Column, Expression, Literal
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.algebra.scalar_functions.scalar import compile_row, in_range
from streamsql.data.delta import Delta, add
from streamsql.data.types import DataType, Row, Value

_ONE = Literal(1, DataType.INTEGER)

_MOST_ROWS = 2
"""Distinct rows above which accumulators are faster (MIN and SUM by key: 15 to 40 %).

Up to there they are slower (nearest machines with ties, benchmarks/recursive.py: 12 %).
"""

Spilled = tuple[Delta, Row | None]
"""The rows of a group that has become too large, and its row in the output so far."""


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


class SmallGroups:
    """Groups of one row, once, and of a few rows, all without NULLs and with positive weights.

    State: the rows. Work: one pass over the rows of a changed group.

    Args:
        group: Group columns.
        lone: The output of a group of one row, once.
        few: The aggregates of several rows, or None where they cannot be looked up.
    """

    def __init__(
        self,
        group: tuple[int, ...],
        lone: Callable[[Row], Row],
        few: Callable[[Delta], Row] | None,
    ) -> None:
        self._key_of = picker(group)
        self._output_of = lone
        self._of_few = few
        self._lone: dict[Row, Row] = {}
        self._few: dict[Row, tuple[Delta, Row]] = {}

    @staticmethod
    def of(group: tuple[int, ...], aggregates: tuple[AggregateCall, ...]) -> "SmallGroups | None":
        """Return an empty collection, or None where such aggregates need accumulators."""
        lone = lone_row_function(group, aggregates) if group else None
        return None if lone is None else SmallGroups(group, lone, few_rows_function(aggregates))

    def __len__(self) -> int:
        """Return the number of rows kept."""
        return len(self._lone) + sum(len(rows) for rows, _ in self._few.values())

    def forget(self, key: Row) -> None:
        """Discard a group silently."""
        self._lone.pop(key, None)
        self._few.pop(key, None)

    def change(
        self, delta: Delta, large: dict[Row, Any], result: Delta
    ) -> tuple[Delta, dict[Row, Spilled]]:
        """Take what small groups can take.

        A row that takes another one's place does so at once if it comes after the other has left,
        as it does when a recursion replaces a row; otherwise it waits for the second look.

        Args:
            delta: Changed rows.
            large: Groups that are kept elsewhere, by key.
            result: Gets the changes of the output.

        Returns:
            The changes of large groups, and the groups that have become large.
        """
        lone, few, key_of, output_of = self._lone, self._few, self._key_of, self._output_of
        rest: Delta = {}
        for row, weight in delta.items():
            key = key_of(row)
            only = lone.get(key)
            if only is not None:
                if weight == -1 and only == row:
                    del lone[key]
                    result[output_of(row)] = -1
                    continue
            elif weight == 1 and key not in few and key not in large and None not in row:
                lone[key] = row
                output = output_of(row)
                if output in result:
                    del result[output]
                else:
                    result[output] = 1
                continue
            rest[row] = weight
        return self._change_few(rest, large, result) if rest else (rest, {})

    def _change_few(
        self, delta: Delta, large: dict[Row, Any], result: Delta
    ) -> tuple[Delta, dict[Row, Spilled]]:
        by_key: dict[Row, Delta] = {}
        rest: Delta = {}
        key_of = self._key_of
        for row, weight in delta.items():
            key = key_of(row)
            if key in large:
                rest[row] = weight
            else:
                by_key.setdefault(key, {})[row] = weight
        spilled: dict[Row, Spilled] = {}
        for key, changes in by_key.items():
            rows, old = self._taken(key)
            new_rows = self._summed(rows, changes)
            if new_rows is None:
                spilled[key] = (rows, old)
                rest.update(changes)
                continue
            new = self._keep(key, new_rows)
            if new != old:
                if old is not None:
                    add(result, old, -1)
                if new is not None:
                    add(result, new, 1)
        return rest, spilled

    def _taken(self, key: Row) -> tuple[Delta, Row | None]:
        """Take a group out; return its rows and its row in the output."""
        row = self._lone.pop(key, None)
        if row is not None:
            return {row: 1}, self._output_of(row)
        return self._few.pop(key, None) or ({}, None)

    def _summed(self, rows: Delta, changes: Delta) -> Delta | None:
        """Return changed rows, or None if they are no small group."""
        total = dict(rows)
        for row, weight in changes.items():
            add(total, row, weight)
            if None in row:
                return None
        if len(total) > (_MOST_ROWS if self._of_few is not None else 1):
            return None
        if total and min(total.values()) < 0:
            return None
        return None if self._of_few is None and max(total.values(), default=1) > 1 else total

    def _keep(self, key: Row, rows: Delta) -> Row | None:
        """Keep the rows of a group; return its row in the output."""
        if not rows:
            return None
        if len(rows) == 1:
            ((row, weight),) = rows.items()
            if weight == 1:
                self._lone[key] = row
                return self._output_of(row)
        assert self._of_few is not None  # noqa: S101  (`_summed` has seen to it)
        output = key + self._of_few(rows)
        self._few[key] = (rows, output)
        return output


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


def few_rows_function(aggregates: tuple[AggregateCall, ...]) -> Callable[[Delta], Row] | None:
    """Return the aggregates of rows without NULLs and with positive weights, at least one.

    Returns:
        None where an aggregate is not simply found among the values of columns.
    """
    found = [_of_few(call) for call in aggregates]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    return lambda rows: tuple([part(rows) for part in parts])


def _of_few(call: AggregateCall) -> Callable[[Delta], Value] | None:
    """Return an aggregate as a function of the rows."""
    columns = [a.position for a in call.arguments if isinstance(a, Column)]
    if len(columns) < len(call.arguments):
        return None
    first: Callable[[Row], Any] = itemgetter(columns[0] if columns else 0)
    match call.function:
        case AggregateFunction.MIN:
            return lambda rows: min(map(first, rows))
        case AggregateFunction.MAX:
            return lambda rows: max(map(first, rows))
        case AggregateFunction.ARG_MIN:
            both: Callable[[Row], Any] = itemgetter(columns[1], columns[0])
            return lambda rows: min(map(both, rows))[1]
        case AggregateFunction.ARG_MAX:
            by: Callable[[Row], Any] = itemgetter(columns[1])
            return lambda rows: _least_where_greatest(rows, by, first)
        case AggregateFunction.COUNT | AggregateFunction.SUM if call.distinct:
            return None
        case AggregateFunction.COUNT_ALL | AggregateFunction.COUNT:
            return lambda rows: sum(rows.values())
        case AggregateFunction.SUM if call.arguments[0].dtype != DataType.DOUBLE:
            return lambda rows: in_range(sum([first(row) * rows[row] for row in rows]))
        case _:
            return None


def _least_where_greatest(
    rows: Delta, by: Callable[[Row], Any], value: Callable[[Row], Any]
) -> Value:
    greatest = max(map(by, rows))
    found: Value = min([value(row) for row in rows if by(row) == greatest])
    return found
