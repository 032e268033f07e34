"""Progress of the pipeline, for people: counts, rate, lag, and what was unusual."""

import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from static_engine.pipeline.pipeline_batches import BatchReport
from streamsql.wire.site_messages import PipelineState

RATE_SECONDS = 60.0
MAX_SENTENCES = 20
_MAX_TEXT = 300


class PipelineProgress:
    """Sums of batch reports. Threads may share it.

    Args:
        monotonic: Seconds, for rates.
        wall: Microseconds since 1970.
    """

    def __init__(self, wall: Callable[[], int], monotonic: Callable[[], float] = time.monotonic):
        self._wall = wall
        self._monotonic = monotonic
        self._began = monotonic()
        self._lock = Lock()
        self._recent: deque[tuple[float, int]] = deque()
        self._drift: deque[str] = deque(maxlen=MAX_SENTENCES)
        self._damaged: deque[str] = deque(maxlen=MAX_SENTENCES)
        self._batches = self._rows = self._repeated = self._dead = 0
        self._lag: float | None = None
        self._seconds: float | None = None
        self._last: int | None = None
        self.running = False
        self.problem = ""

    def add(self, report: BatchReport) -> None:
        """Count a batch that was committed just now."""
        with self._lock:
            now = self._wall()
            self._batches += 1
            self._rows += report.rows
            self._repeated += report.repeated
            self._dead += report.dead
            self._drift.extend(text[:_MAX_TEXT] for text in report.drift)
            self._damaged.extend(text[:_MAX_TEXT] for text in report.damaged)
            self._recent.append((self._monotonic(), report.rows))
            self._seconds, self._last = report.seconds, now
            if report.arrived is not None:
                self._lag = max(now - report.arrived, 0) / 1_000_000

    def state(self, waiting: int, waiting_bytes: int) -> PipelineState:
        """Return all of it.

        Args:
            waiting: Segments that are not kept yet.
            waiting_bytes: Of these.
        """
        with self._lock:
            moment = self._monotonic()
            while self._recent and self._recent[0][0] < moment - RATE_SECONDS:
                self._recent.popleft()
            span = min(max(moment - self._began, 1.0), RATE_SECONDS)
            return PipelineState(
                running=self.running,
                batches=self._batches,
                rows=self._rows,
                rate=round(sum(rows for _, rows in self._recent) / span, 1),
                lag=None if self._lag is None else round(self._lag, 3),
                batch_seconds=None if self._seconds is None else round(self._seconds, 3),
                repeated=self._repeated,
                dead=self._dead,
                waiting=waiting,
                waiting_bytes=waiting_bytes,
                last=self._last,
                problem=self.problem[:_MAX_TEXT],
                drift=tuple(self._drift),
                damaged=tuple(self._damaged),
            )
