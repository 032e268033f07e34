"""The seam for engines that keep a recursion at one place, from set-level changes of its leaves."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from stream_engine.recursion.program.fixpoint_options import FixpointCounters
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class LocalEngine(Protocol):
    """Maintains a recursive view; all its leaf rows are here."""

    counters: FixpointCounters

    @property
    def description(self) -> str:
        """What it is, for EXPLAIN: "ranked", "kernel: cheapest (python)"."""

    def change(self, entered: Sequence[Sequence[Row]], left: Sequence[Sequence[Row]]) -> Delta:
        """Apply changes of the leaves as one change; return the view's (+1 / -1 per row).

        Args:
            entered: Per leaf, distinct narrowed rows that were not there.
            left: Per leaf, rows that were there; none of them is in `entered`.

        Raises:
            RecursionLimitError: The view or the work grew past its bound; the engine is of no
                more use then.
        """

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the view."""

    def size(self) -> int:
        """Return the number of rows of the view."""

    def clear(self) -> None:
        """Drop all state."""
