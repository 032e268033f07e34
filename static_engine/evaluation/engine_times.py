"""Times of evaluations by engine: of the smallest one, and rows a second of large ones."""

from collections import deque
from dataclasses import dataclass, field

from streamsql.wire.site_messages import FLOOR_US, ROWS_A_SECOND

LARGE_ROWS = 10_000
"""Rows that are read by an evaluation whose speed counts."""
_KEPT = 50


@dataclass(slots=True)
class EngineTimes:
    """Times of one engine.

    State: its shortest evaluation, and the last ones that read many rows.
    """

    floor: float | None = None
    large: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def add(self, rows: int, seconds: float) -> None:
        """Count an evaluation that has read so many rows of tables in so long."""
        self.floor = seconds if self.floor is None else min(self.floor, seconds)
        if rows >= LARGE_ROWS:
            self.large.append((rows, seconds))

    @property
    def rows_a_second(self) -> float | None:
        """Rows read a second beyond the floor; None: nothing large was evaluated."""
        seconds = sum(seconds - (self.floor or 0.0) for _, seconds in self.large)
        return sum(rows for rows, _ in self.large) / seconds if seconds > 0 else None

    def figures(self, engine: str) -> dict[str, int]:
        """Return the counters of the static engine's state, under the name of the engine."""
        found: dict[str, int] = {}
        if self.floor is not None:
            found[engine + FLOOR_US] = int(self.floor * 1e6)
        if self.rows_a_second is not None:
            found[engine + ROWS_A_SECOND] = int(self.rows_a_second)
        return found
