"""Streams of the protocol: what is declared, what lies there already, what comes in batches."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamsql.data.types import MICROSECONDS, Row

DAY = 24 * 3_600 * MICROSECONDS
NOVEMBER_2002 = 1_036_108_800 * MICROSECONDS
"""Midnight of the first of November 2002, UTC."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream, its rows in the order of their arrival.

    Attributes:
        definition: As a statement.
        name: Of the source.
        history: Rows that are there before the first query.
        batches: Rows that come afterwards, as many together as an update has.
    """

    definition: str
    name: str
    history: Sequence[Row]
    batches: Sequence[Sequence[Row]]

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [*self.history, *(row for batch in self.batches for row in batch)]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of a stream.

    Attributes:
        history: Rows before the first query.
        batch: Rows of an update.
        batches: Updates that there are.
    """

    history: int
    batch: int
    batches: int

    @property
    def all(self) -> int:
        """Rows together."""
        return self.history + self.batch * self.batches

    def split(self, definition: str, name: str, rows: Sequence[Row]) -> Stream:
        """Return the stream of some rows."""
        starts = range(self.history, self.all, self.batch)
        batches = [rows[start : start + self.batch] for start in starts]
        return Stream(definition, name, rows[: self.history], batches)


def thesis_sizes(history: int, batch: int, batches: int, scale: float) -> Sizes:
    """Return the sizes of the thesis by a factor, at least one row of each kind."""
    return Sizes(max(1, round(history * scale)), max(1, round(batch * scale)), batches)
