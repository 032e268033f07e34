"""The best rows per group under aggregate selection."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from stream_engine.recursion.ranked.entries import DEAD, Entry
from stream_engine.recursion.rules import Rule
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.types import DataType, Row


class Group:
    """A group that has live rows.

    Attributes:
        bests: Per aggregate, the best value; None when all values are NULL.
        entries: The rows that are best for some aggregate; dead ones may be among them until the
            group is refreshed.
    """

    __slots__ = ("bests", "entries")

    def __init__(self, bests: list[Any], entries: list[Entry]) -> None:
        self.bests = bests
        self.entries = entries


class Selector:
    """Compares rows of a group by the aggregates of a selection."""

    def __init__(self, selection: AggregateSelection) -> None:
        self.group_of = _group_key(selection.group)
        self._bests = tuple((best.value, best.minimum) for best in selection.bests)

    def values(self, row: Row) -> list[Any]:
        """Return the row's value per aggregate."""
        return [row[at] for at, _ in self._bests]

    def is_best(self, row: Row, bests: list[Any]) -> bool:
        """Return whether a row has one of the best values."""
        for (at, _), best in zip(self._bests, bests, strict=True):
            if best is not None and row[at] == best:
                return True
        return False

    def improve(self, row: Row, bests: list[Any]) -> bool:
        """Take over the row's values where they are better; return whether one was."""
        improved = False
        for number, (at, minimum) in enumerate(self._bests):
            value: Any = row[at]
            best = bests[number]
            if value is not None and (best is None or (value < best if minimum else value > best)):
                bests[number] = value
                improved = True
        return improved

    def front(self, rows: list[Row]) -> list[Any]:
        """Return the best values of some rows."""
        bests = self.values(rows[0])
        for row in rows:
            self.improve(row, bests)
        return bests

    def refresh(self, group: Group) -> bool:
        """Forget a group's dead rows; return whether it has live ones."""
        group.entries = [entry for entry in group.entries if entry.rank != DEAD]
        if group.entries:
            group.bests = self.front([entry.row for entry in group.entries])
        return bool(group.entries)


def _group_key(columns: tuple[int, ...]) -> Callable[[Row], Any]:
    """Return the key that generated loops use: a bare value for one column, else a tuple."""
    if len(columns) == 1:
        (only,) = columns
        return lambda row: row[only]
    return lambda row: tuple([row[column] for column in columns])


def priority_of(rules: Sequence[Rule], selection: AggregateSelection) -> Callable[[Row], Any]:
    """Return the key by which candidates wait: best values of the first aggregate first.

    Values that are not numbers have no order that can be turned round: these wait in their order of
    arrival.
    """
    best = selection.bests[0]
    at, sign = best.value, 1 if best.minimum else -1
    if any(rule.head[at].dtype in (DataType.TEXT, DataType.NULL) for rule in rules):
        return lambda _row: 0

    def priority(row: Row) -> Any:
        value: Any = row[at]
        return math.inf if value is None else sign * value

    return priority
