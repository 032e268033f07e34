"""The best rows per group under aggregate selection.

A group that has live rows is one flat list, for there may be a million groups: the best value of
every aggregate (None when all values are NULL), then the entries that are best for some aggregate.
Dead ones may be among them until the group is refreshed.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from stream_engine.recursion.program.rules import Rule
from stream_engine.recursion.ranked.ranked_entries import DEAD, Entry, key_of
from streamsql.algebra.operators import AggregateSelection
from streamsql.data.types import DataType, Row

Group = list[Any]
Groups = dict[object, Group]
Candidate = tuple[Row, tuple[Entry, ...]]
"""A derived row and its proof."""


class Selector:
    """Compares rows of a group by the aggregates of a selection.

    Attributes:
        width: Number of aggregates: the entries of a group begin there.
    """

    def __init__(self, selection: AggregateSelection) -> None:
        self.group_of = key_of(selection.group)
        self.width = len(selection.bests)
        self._bests = tuple((best.value, best.minimum) for best in selection.bests)

    def new_group(self, row: Row) -> Group:
        """Return the group of a first row, still without its entry."""
        return [row[at] for at, _ in self._bests]

    def claim(self, group: Group, row: Row) -> Sequence[Entry] | None:
        """Let a row compete in its group.

        Returns:
            None when it is not best; else the entries that it supersedes, no longer in the group.
        """
        if not self._improve(group, row):
            return () if self._is_best(group, row) else None
        entries = group[self.width :]
        group[self.width :] = [entry for entry in entries if self._is_best(group, entry.row)]
        return [entry for entry in entries if not self._is_best(group, entry.row)]

    def best_of(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the candidates that are best among these."""
        if len(candidates) < 2:
            return candidates
        front = self._front([row for row, _ in candidates])
        return [candidate for candidate in candidates if self._is_best(front, candidate[0])]

    def refresh(self, group: Group) -> bool:
        """Forget a group's dead rows; return whether it has live ones."""
        entries = [entry for entry in group[self.width :] if entry.rank != DEAD]
        if entries:
            group[:] = self._front([entry.row for entry in entries]) + entries
        return bool(entries)

    def _front(self, rows: list[Row]) -> Group:
        front = self.new_group(rows[0])
        for row in rows:
            self._improve(front, row)
        return front

    def _is_best(self, group: Group, row: Row) -> bool:
        for number, (at, _) in enumerate(self._bests):
            if row[at] == group[number] and row[at] is not None:
                return True
        return False

    def _improve(self, group: Group, row: Row) -> bool:
        """Take over the row's values where they are better; return whether one was."""
        improved = False
        for number, (at, minimum) in enumerate(self._bests):
            value: Any = row[at]
            best = group[number]
            if value is not None and (best is None or (value < best if minimum else value > best)):
                group[number] = value
                improved = True
        return improved


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
