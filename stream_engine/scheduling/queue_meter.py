"""How much memory the queues between the operators of a site take, now and over time."""

from dataclasses import dataclass


@dataclass(slots=True)
class QueueMeter:
    """Changed rows in the queues of a site, each queue counted.

    A step that runs to its end without scheduler leaves nothing waiting and is not counted.

    Attributes:
        rows: Rows that wait now.
        batches: Changes that wait now.
        peak_rows: The most rows that ever waited, within a step too.
        begun_rows: Rows that waited in the last step when all that had come in was in the queues
            and no operator had run yet.
        row_ns: Integral of the rows over the time counted: the difference of two readings by that
            of `ns` is the average in between.
        ns: Time counted: within steps that of the operators, between steps that of the site.
    """

    rows: int = 0
    batches: int = 0
    peak_rows: int = 0
    begun_rows: int = 0
    row_ns: int = 0
    ns: int = 0
    _since: int | None = None
    _worked: int = 0

    @property
    def average_rows(self) -> float:
        """Rows that waited on average over all time counted."""
        return self.row_ns / self.ns if self.ns else 0.0

    def begin(self, now: int) -> None:
        """Count the time since the last step began, as far as no operator ran in it.

        Args:
            now: Microseconds since 1970 UTC, not before that of the last step.
        """
        if self._since is not None:
            rested = max((now - self._since) * 1000 - self._worked, 0)
            self.row_ns += rested * self.rows
            self.ns += rested
        self._since, self._worked = now, 0

    def ran(self, rows: int, time: int) -> None:
        """Count the time of one run, before which so many rows waited."""
        self.row_ns += rows * time
        self.ns += time
        self._worked += time

    def put(self, rows: int) -> None:
        """Count a change that begins to wait."""
        self.rows += rows
        self.batches += 1
        self.peak_rows = max(self.peak_rows, self.rows)

    def took(self, rows: int, batches: int = 1) -> None:
        """Count changes that wait no more."""
        self.rows -= rows
        self.batches -= batches
