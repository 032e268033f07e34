"""Settings of an engine site that may be changed while it runs.

No setting changes an answer: only when it comes, how much memory waits between operators, and how
much is reported. The static engine, which has none of them, is only asked to report.
"""

import enum

import msgspec

from streamsql.wire.bounds import Count, Number

MAX_QUEUE_ROWS = 10_000_000
LONGEST_SLICE_MS = 60_000.0
LONGEST_REPORT_SECONDS = 3_600.0
SHORTEST_REPORT_SECONDS = 0.1


class SchedulerKind(enum.StrEnum):
    """Strategies that choose the next operator of a site (STREAM thesis, section 2.3)."""

    FIFO = "fifo"
    GREEDY = "greedy"
    CHAIN = "chain"
    ROUND_ROBIN = "round_robin"


class SiteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one site.

    Attributes:
        scheduler: Which operator runs next.
        slice_ms: Milliseconds that a step may work before what is left waits in the queues between
            operators for the next step; None: a step works until nothing waits.
        queue_rows: Changed rows that may wait between the operators of the site; with more a step
            goes on beyond its slice.
        share_synopses: Whether equal synopses, of one query or of several, are kept once.
        report_seconds: How often the site reports to `sys_stream` while a query reads it.
    """

    scheduler: SchedulerKind = SchedulerKind.FIFO
    slice_ms: Number | None = None
    queue_rows: Count = 100_000
    share_synopses: bool = True
    report_seconds: Number = 1.0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: One is out of its bounds; says which, and what they are.
        """
        if self.slice_ms is not None and not 0 < self.slice_ms <= LONGEST_SLICE_MS:
            raise ValueError(f"slice_ms is above 0 and up to {LONGEST_SLICE_MS:g}, or null")
        if not 1 <= self.queue_rows <= MAX_QUEUE_ROWS:
            raise ValueError(f"queue_rows ranges from 1 to {MAX_QUEUE_ROWS}")
        if not SHORTEST_REPORT_SECONDS <= self.report_seconds <= LONGEST_REPORT_SECONDS:
            raise ValueError(
                f"report_seconds ranges from {SHORTEST_REPORT_SECONDS:g} to "
                f"{LONGEST_REPORT_SECONDS:g}"
            )


class ReportRequest(msgspec.Struct, frozen=True):
    """Asks a host that is no engine site to report to `sys_stream`.

    Its rows go out as observations of that stream; the base site that gathers a query ingests
    them as its own.

    Attributes:
        seconds: Between two reports.
    """

    seconds: Number = 1.0

    def __post_init__(self) -> None:
        if not SHORTEST_REPORT_SECONDS <= self.seconds <= LONGEST_REPORT_SECONDS:
            raise ValueError(
                f"seconds ranges from {SHORTEST_REPORT_SECONDS:g} to {LONGEST_REPORT_SECONDS:g}"
            )
