"""Watch over the workers of a Spark cluster while a plan is evaluated.

Spark waits without end for workers when the last one is gone, and says so in its log only.
"""

import logging
import threading
import time
from types import TracebackType

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from static_engine.spark.spark_session import RunningSpark

log = logging.getLogger(__name__)

WORKER_SECONDS = 20.0
_POLL_SECONDS = 1.0


class WorkerWatch:
    """Cancels all of Spark's work once there has been no worker for some time.

    On this machine the driver does the work itself, so nothing is watched.

    Attributes:
        has_cancelled: Whether that has happened.
    """

    def __init__(self, spark: RunningSpark, seconds: float) -> None:
        self._spark = spark
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.has_cancelled = False

    def __enter__(self) -> None:
        """Begin to watch."""
        if self._spark.has_workers:
            self._thread = threading.Thread(target=self._watch, name="spark-workers", daemon=True)
            self._thread.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Watch no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        seen = time.monotonic()
        while not self._ended.wait(_POLL_SECONDS):
            try:
                if self._spark.workers():
                    seen = time.monotonic()
                elif time.monotonic() - seen >= self._seconds:
                    log.warning("Spark has no worker; its waiting jobs are cancelled")
                    self.has_cancelled = True
                    self._spark.session.sparkContext.cancelAllJobs()
            except (Py4JError, OSError):
                return  # the JVM has ended, which whoever waits for the result hears
