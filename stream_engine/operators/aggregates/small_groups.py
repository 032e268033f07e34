"""Groups of few rows, kept as these rows: most groups of a view that keeps the best row per key.

Their aggregates are looked up in the rows whenever one changes, which for a row or two is less work
than keeping counts and ordered values, and takes less room.
"""

from collections.abc import Callable
from typing import Any

from stream_engine.operators.rows.few_rows import few_rows_function, lone_row_function
from stream_engine.state.columns import picker
from streamsql.algebra.operators import AggregateCall
from streamsql.data.delta import Delta, add
from streamsql.data.types import Row

MOST_ROWS = 6
"""Distinct rows above which a group is kept by accumulators."""

Spilled = tuple[Delta, Row | None]
"""The rows of a group that has become too large, and its row in the output so far."""


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
        """Drop a group without a word."""
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
        row = self._lone.pop(key, None)
        if row is not None:
            return {row: 1}, self._output_of(row)
        return self._few.pop(key, None) or ({}, None)

    def _summed(self, rows: Delta, changes: Delta) -> Delta | None:
        total = dict(rows)
        for row, weight in changes.items():
            add(total, row, weight)
            if None in row:
                return None
        if len(total) > (MOST_ROWS if self._of_few is not None else 1):
            return None
        if total and min(total.values()) < 0:
            return None
        return None if self._of_few is None and max(total.values(), default=1) > 1 else total

    def _keep(self, key: Row, rows: Delta) -> Row | None:
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
