"""Aggregate selection over a set of rows, computed from scratch."""

from collections.abc import Iterable
from typing import Any

from stream_engine.recursion.program.item_tables import values_at
from streamsql.algebra.operators import AggregateSelection, Best
from streamsql.data.types import Row


def best_rows(selection: AggregateSelection, rows: Iterable[Row]) -> set[Row]:
    """Return the rows that are best of their group for one of the aggregates, all ties.

    A row whose value is NULL is not best for that aggregate.
    """
    rows = list(rows)
    return set().union(*(_front(selection.group, best, rows) for best in selection.bests))


def _front(group: tuple[int, ...], best: Best, rows: list[Row]) -> set[Row]:
    key_of, at, minimum = values_at(group), best.value, best.minimum
    values: dict[Any, Any] = {}
    for row in rows:
        value: Any = row[at]
        if value is not None:
            key = key_of(row)
            known = values.get(key)
            if known is None or (value < known if minimum else value > known):
                values[key] = value
    return {row for row in rows if row[at] is not None and values[key_of(row)] == row[at]}
