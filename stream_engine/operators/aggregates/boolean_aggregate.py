"""BOOL_AND and BOOL_OR by counting."""

from stream_engine.operators.aggregates.accumulator import Changes
from streamsql.data.types import Value


class BooleanAggregate:
    """BOOL_AND(x) and BOOL_OR(x): whether no value is FALSE, whether one is TRUE.

    The slot is (values that are TRUE, values that are FALSE), so a value taken back is no trouble.
    State: two counts a group. Work: O(1) a changed row.
    """

    def __init__(self, position: int, *, every: bool) -> None:
        self._position = position
        self._every = every

    def empty(self) -> tuple[int, int]:
        """Return (0, 0)."""
        return (0, 0)

    def update(self, slot: tuple[int, int], changes: Changes) -> tuple[int, int]:
        """Count the values."""
        true, false = slot
        position = self._position
        for row, weight in changes:
            value = row[position]
            if value is None:
                continue
            if value:
                true += weight
            else:
                false += weight
        return (true, false)

    def merge(self, slot: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        """Add the counts."""
        return (slot[0] + other[0], slot[1] + other[1])

    def result(self, slot: tuple[int, int]) -> Value:
        """Return the conjunction or disjunction; NULL without values."""
        true, false = slot
        if true <= 0 and false <= 0:
            return None
        return false <= 0 if self._every else true > 0

    def rows(self, slot: tuple[int, int]) -> int:  # noqa: ARG002  (the protocol's signature)
        """Return 0."""
        return 0
