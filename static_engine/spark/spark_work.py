"""Work of one thread on Spark: the pool of its jobs, their end together, and the workers meanwhile.

Spark waits without end for workers when the last one is gone, and reports it in its log only.
"""

import itertools
import logging
import threading
import time
from contextlib import suppress
from enum import Enum, StrEnum
from types import TracebackType
from typing import Protocol, Self

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamsql.errors import DeploymentError

log = logging.getLogger(__name__)

WORKER_SECONDS = 20.0
"""For which a cluster may have no worker before work on it is cancelled."""
WORK_SECONDS = 600.0
"""For which interactive work may run before it is cancelled."""
_CLOSE_SECONDS = 30.0
"""For which a Connect server may take to end cancelled work; then its channel is closed."""
_POLL_SECONDS = 1.0
_PROPERTIES = ("spark.scheduler.pool", "spark.jobGroup.id", "spark.job.description")
_INTERRUPT = "spark.job.interruptOnCancel"
_NUMBERS = itertools.count(1)


class Pool(StrEnum):
    """Pools of jobs, which share the cores by the weights in `fair_pools.xml`."""

    INTERACTIVE = "interactive"
    PIPELINE = "pipeline"
    MAINTENANCE = "maintenance"
    """One work at a time: what compacts and rolls up may need all of a worker's memory."""


class Cancelled(Enum):
    """Why work was cancelled."""

    NO_WORKERS = "there was no worker"
    STOPPED = "nobody needs it any more"
    TOO_LONG = "it took too long"


class WorkCancelledError(DeploymentError):
    """Work was cancelled before it began."""

    code = "work_cancelled"


def no_workers(seconds: float = WORKER_SECONDS) -> DeploymentError:
    """Return the error of work that was cancelled for `Cancelled.NO_WORKERS`."""
    return DeploymentError(
        f"Spark has had no worker for {seconds:g} s",
        hint="start a worker of its cluster, or find out why the workers stop",
        code="no_workers",
    )


class WorkedSession(Protocol):
    """What work needs to know of the session it runs in."""

    session: SparkSession
    maintenance: threading.Lock

    @property
    def is_remote(self) -> bool:
        """Whether the driver is a Spark Connect server."""
        ...

    @property
    def has_workers(self) -> bool:
        """Whether others than the driver do the work, as far as we can see."""
        ...

    def workers(self) -> int:
        """Return the number of executors without the driver."""
        ...

    def end_cancelled(self) -> None:
        """See to it that cancelled tasks give their cores back."""
        ...


class SparkWork:
    """The jobs that a thread starts while it is inside.

    Use it as a context manager, once, on the thread that calls Spark. Work inside other work takes
    its place until it ends. A Spark Connect server decides itself on the pools of its jobs.

    Args:
        spark: The session.
        pool: Whose share of the cores the jobs get.
        name: For Spark's log and pages.
        worker_seconds: For which a cluster may have no worker before the jobs are cancelled.
        max_seconds: For which it may run; None: without end.

    Attributes:
        cancelled: Why it was cancelled, or None.
    """

    def __init__(
        self,
        spark: WorkedSession,
        pool: Pool,
        name: str,
        *,
        worker_seconds: float = WORKER_SECONDS,
        max_seconds: float | None = None,
    ) -> None:
        self._spark = spark
        self._pool = pool
        self._name = name
        self._worker_seconds = worker_seconds
        self._max_seconds = float("inf") if max_seconds is None else max_seconds
        self._group = f"pando-{pool}-{next(_NUMBERS)}"
        self._before: dict[str, str | None] = {}
        self._ended = threading.Event()
        self._watch: threading.Thread | None = None
        self.cancelled: Cancelled | None = None

    def __enter__(self) -> Self:
        """Begin.

        Raises:
            WorkCancelledError: It was cancelled meanwhile.
        """
        if self._pool is Pool.MAINTENANCE:
            while not self._spark.maintenance.acquire(timeout=_POLL_SECONDS):
                self._refuse_if_cancelled()
        try:
            self._refuse_if_cancelled()
            self._mark_thread()
        except BaseException:
            self._release()
            raise
        self._watch = threading.Thread(target=self._watched, name="spark-work", daemon=True)
        self._watch.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._watch is not None:
            self._watch.join()
        try:
            with suppress(PySparkException, Py4JError, OSError):  # its JVM may have ended
                self._unmark_thread()
        finally:
            self._release()

    def cancel(self, reason: Cancelled = Cancelled.STOPPED) -> None:
        """End its jobs, also those it has still to start; of any thread, safe to call twice."""
        if self.cancelled is not None or self._ended.is_set():
            return
        self.cancelled = reason
        with suppress(PySparkException, Py4JError, OSError):  # its JVM may have ended
            if self._spark.is_remote:
                self._spark.session.interruptTag(self._group)
            else:
                context = self._spark.session.sparkContext._jsc.sc()  # noqa: SLF001
                context.cancelJobGroupAndFutureJobs(self._group)
            self._spark.end_cancelled()

    def _refuse_if_cancelled(self) -> None:
        if self.cancelled is not None:
            raise WorkCancelledError(f"{self._name} was cancelled: {self.cancelled.value}")

    def _mark_thread(self) -> None:
        if self._spark.is_remote:
            self._spark.session.addTag(self._group)
            return
        context = self._spark.session.sparkContext
        values = (self._pool.value, self._group, self._name)
        for name, value in zip(_PROPERTIES, values, strict=True):
            self._before[name] = context.getLocalProperty(name)
            context.setLocalProperty(name, value)
        self._before[_INTERRUPT] = context.getLocalProperty(_INTERRUPT)
        context.setLocalProperty(_INTERRUPT, "true")

    def _unmark_thread(self) -> None:
        if self._spark.is_remote:
            self._spark.session.removeTag(self._group)
            return
        for name, value in self._before.items():
            self._spark.session.sparkContext.setLocalProperty(name, value)  # type: ignore[arg-type]

    def _release(self) -> None:
        if self._pool is Pool.MAINTENANCE:
            self._spark.maintenance.release()

    def _watched(self) -> None:
        began = seen = time.monotonic()
        while not self._ended.wait(_POLL_SECONDS):
            moment = time.monotonic()
            try:
                if not self._spark.has_workers or self._spark.workers():
                    seen = moment
            except (Py4JError, OSError):
                return  # the JVM has ended; the work fails
            if self.cancelled is None and moment - seen >= self._worker_seconds:
                log.warning("Spark has no worker; %s is cancelled", self._name)
                self.cancel(Cancelled.NO_WORKERS)
            elif self.cancelled is None and moment - began >= self._max_seconds:
                log.warning("%s takes more than %g s; it is cancelled", self._name, moment - began)
                self.cancel(Cancelled.TOO_LONG)
            if self._spark.is_remote and moment - began >= self._max_seconds + _CLOSE_SECONDS:
                self._spark.session.client.close()
                return
