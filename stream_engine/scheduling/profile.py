"""What an operator has cost and let through lately, from its own runs."""

from dataclasses import dataclass

MEMORY = 32
"""Runs after which a run counts 1/e: enough to even out, few enough to follow a change."""

_KEPT = 1 - 1 / MEMORY


@dataclass(slots=True)
class Profile:
    """Sums over the runs of an operator, each counting less with every later one.

    The queue that an operator empties and the queues that it fills are measured in changed rows, so
    a change that three operators take counts three times, and one that leaves the site's queues (to
    a channel, to the answer) does not count.

    Attributes:
        rows: Changed rows taken from its queue.
        queued: Changed rows put into queues in return.
        time: Nanoseconds it took.
    """

    rows: float = 0.0
    queued: float = 0.0
    time: float = 0.0

    def add(self, rows: int, queued: int, time: int) -> None:
        """Count a run."""
        self.rows = self.rows * _KEPT + rows
        self.queued = self.queued * _KEPT + queued
        self.time = self.time * _KEPT + max(time, 1)

    @property
    def is_measured(self) -> bool:
        """Whether it has run at all."""
        return self.rows > 0

    @property
    def selectivity(self) -> float:
        """Return the rows put into queues per row taken; 1 before the first run."""
        return self.queued / self.rows if self.rows else 1.0

    @property
    def time_per_row(self) -> float:
        """Return nanoseconds per row taken; 0 before the first run."""
        return self.time / self.rows if self.rows else 0.0

    @property
    def rate(self) -> float:
        """Return by how many rows per nanosecond a run shortens the queues.

        Below 0 for an operator that gives more than it takes; 0 before the first run.
        """
        return (self.rows - self.queued) / self.time if self.time else 0.0
