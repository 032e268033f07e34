"""What the per-group accumulator of every aggregate function is."""

from typing import Any, Protocol

from streamsql.data.types import Row, Value

Changes = list[tuple[Row, int]]
"""Rows of arguments and their weights."""


class Accumulator(Protocol):
    """How one aggregate is kept up to date."""

    def empty(self) -> Any:
        """Return the slot of an empty group."""

    def update(self, slot: Any, changes: Changes) -> Any:
        """Return the slot after changes; the old one is not used again."""

    def result(self, slot: Any) -> Value:
        """Return the aggregate."""

    def rows(self, slot: Any) -> int:
        """Return how many values the slot remembers one by one."""
