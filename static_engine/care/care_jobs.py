"""Jobs on the lake: what waits, what runs, and what became of the last ones."""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from static_engine.lake.lake_errors import LakeError
from streamsql.wire.stored_tables.lake_messages import JobState, LakeJob

MAX_WAITING = 50
MAX_KEPT = 100
_OVER = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class JobBook:
    """Jobs by their ids. Threads may share it.

    Args:
        clock: Microseconds since 1970.
        prefix: Begins all ids, so that they differ from those of an earlier incarnation.
    """

    def __init__(self, clock: Callable[[], int], prefix: str) -> None:
        self._clock = clock
        self._prefix = prefix
        self._numbers = itertools.count(1)
        self._jobs: OrderedDict[str, LakeJob] = OrderedDict()
        self._cancelled: set[str] = set()
        self._lock = threading.Lock()

    def all(self) -> tuple[LakeJob, ...]:
        """Return the jobs, the newest last."""
        with self._lock:
            return tuple(self._jobs.values())

    def add(self, task: str, table: str) -> LakeJob:
        """Note a job that waits.

        Raises:
            LakeError: Too many wait.
        """
        with self._lock:
            waiting = sum(job.state == JobState.WAITING for job in self._jobs.values())
            if waiting >= MAX_WAITING:
                raise LakeError(
                    f"{MAX_WAITING} jobs of the lake already wait",
                    hint="retry later",
                    code="lake_busy",
                )
            job = LakeJob(f"{self._prefix}-{next(self._numbers)}", task, table, JobState.WAITING)
            self._jobs[job.id] = job
            for old in [j.id for j in self._jobs.values() if j.state in _OVER]:
                if len(self._jobs) <= MAX_KEPT:
                    break
                del self._jobs[old]
            return job

    def begin(self, job_id: str) -> bool:
        """Note that a job runs; return False if it was cancelled meanwhile."""
        with self._lock:
            if job_id in self._cancelled:
                self._end(job_id, JobState.CANCELLED, "cancelled before it began")
                return False
            self._set(job_id, state=JobState.RUNNING, began=self._clock())
            return True

    def progress(self, job_id: str, done: int, total: int, message: str = "") -> bool:
        """Note how far a job is; return whether it may go on."""
        with self._lock:
            self._set(job_id, done=done, total=total, message=message)
            return job_id not in self._cancelled

    def end(self, job_id: str, message: str) -> None:
        """Note that a job has ended, or that it was cancelled on the way."""
        with self._lock:
            state = JobState.CANCELLED if job_id in self._cancelled else JobState.DONE
            self._end(job_id, state, message)

    def fail(self, job_id: str, message: str) -> None:
        """Note why a job has failed."""
        with self._lock:
            self._end(job_id, JobState.FAILED, message)

    def cancel(self, job_id: str) -> LakeJob:
        """Tell a job to end at its next step; one that is over stays as it is.

        Raises:
            LakeError: There is none.
        """
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None:
                raise LakeError(
                    f"there is no job {job_id!r:.80} of the lake",
                    hint="pando lake status lists them",
                )
            if job.state not in _OVER:
                self._cancelled.add(job_id)
            return job

    def discard(self, job_id: str) -> None:
        """Forget a job: nothing came of it that anybody wants to know."""
        with self._lock:
            self._jobs.pop(job_id, None)
            self._cancelled.discard(job_id)

    def _end(self, job_id: str, state: JobState, message: str) -> None:
        self._cancelled.discard(job_id)
        self._set(job_id, state=state, ended=self._clock(), message=message)

    def _set(self, job_id: str, **changes: object) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            self._jobs[job_id] = msgspec.structs.replace(job, **changes)
