"""Measures of the queues between the operators of a site, now and over time."""

from dataclasses import dataclass


@dataclass(slots=True)
class QueueMeter:
    """Changed rows in the queues of a site, each queue counted.

    A whole step leaves nothing pending and is not counted.

    Attributes:
        rows: Pending rows.
        batches: Pending changes.
        peak_rows: Max of pending rows, within steps too.
        begun_rows: Pending rows of the last step, before its first run, or one of its later ones.
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
        """Count the time (microseconds) since the last step began in which no operator ran."""
        if self._since is not None:
            rested = max((now - self._since) * 1000 - self._worked, 0)
            self.row_ns += rested * self.rows
            self.ns += rested
        self._since, self._worked = now, 0

    def ran(self, rows: int, time: int) -> None:
        """Count the nanoseconds of one run, before which `rows` were pending."""
        self.row_ns += rows * time
        self.ns += time
        self._worked += time

    def put(self, rows: int) -> None:
        """Count a change put into a queue."""
        self.rows += rows
        self.batches += 1
        self.peak_rows = max(self.peak_rows, self.rows)

    def took(self, rows: int, batches: int = 1) -> None:
        """Count changes taken from queues."""
        self.rows -= rows
        self.batches -= batches


@dataclass(frozen=True, slots=True)
class QueueMeasures:
    """One queue of a query; entity "f1/2-3.0" leads from node 2 to port 0 of node 3."""

    query: str
    entity: str
    rows: int
    batches: int
    peak_rows: int
