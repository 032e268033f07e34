"""STRING_AGG: the texts of a group, joined."""

from stream_engine.operators.aggregates.accumulator import Changes
from stream_engine.state.ranked_order import RankedOrder
from streamsql.data.types import Value


class StringAggregate:
    """STRING_AGG(x, separator): the texts that are not NULL, in order, with the separator between.

    State: the distinct texts with their weights. Work: O(log texts) a changed row; the texts are
    joined once per group and batch, in the length of the group: it is the answer.
    """

    def __init__(self, position: int, separator: str) -> None:
        self._position = position
        self._separator = separator

    def empty(self) -> RankedOrder[str]:
        """Return an empty multiset."""
        return RankedOrder()

    def update(self, slot: RankedOrder[str], changes: Changes) -> RankedOrder[str]:
        """Add and remove texts."""
        position, change = self._position, slot.change
        for row, weight in changes:
            value = row[position]
            if isinstance(value, str):
                change(value, weight)
        return slot

    def result(self, slot: RankedOrder[str]) -> Value:
        """Return the joined text; NULL without values."""
        return self._separator.join(slot.copies()) if slot.total else None

    def rows(self, slot: RankedOrder[str]) -> int:
        """Return the number of distinct texts."""
        return len(slot)
