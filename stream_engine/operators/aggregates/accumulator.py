"""What the per-group accumulator of every aggregate function is."""

from typing import Any, Protocol, runtime_checkable

from streamsql.data.types import Row, Value

Changes = list[tuple[Row, int]]
"""Rows of arguments and their weights."""


class Accumulator(Protocol):
    """How one aggregate is kept up to date, correctly under deletion too.

    An accumulator is shared by all groups of an operator; each group holds only its slot. `update`
    receives all changes of one group at once, so that its loop touches locals only.
    """

    def empty(self) -> Any:
        """Return the slot of an empty group."""

    def update(self, slot: Any, changes: Changes) -> Any:
        """Return the slot after changes; the old one is not used again."""

    def result(self, slot: Any) -> Value:
        """Return the aggregate; NULL without values."""

    def rows(self, slot: Any) -> int:  # noqa: ARG002  (most slots are a few numbers)
        """Return how many values the slot remembers one by one."""
        return 0


@runtime_checkable
class MergingAccumulator(Accumulator, Protocol):
    """One whose slots are sums of a fixed size: those of two groups make that of both at once."""

    def merge(self, slot: Any, other: Any) -> Any:
        """Return the slot of two groups together; the two are not used again."""
