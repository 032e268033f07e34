"""Tasks that go on after their work was cancelled.

Spark asks a task to end, and the task looks where it reads a row of a file or of a shuffle. In a
product of three tables, such a row may be worth ten thousand million turns: the task keeps its core
for hours. On a cluster Spark ends the executor (`spark.task.reaper`), but not where executor and
driver are one JVM.
"""

import re
import time
from collections.abc import Callable, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # settings are read where there is no Spark
    from pyspark.sql import SparkSession

STUCK_SECONDS = 30.0
"""For which a task may go on after its work was cancelled."""
_POLL_SECONDS = 1.0
_CALM = 3
"""Looks without a task after which nothing is waited for: a cancelled stage ends a little later."""
_TASK = re.compile(r"Executor task launch worker for task \S+ in stage (\d+)\.\d+ \(TID (\d+)\)")


def tasks_left(session: "SparkSession") -> Callable[[], frozenset[int]]:
    """Return a function that tells which tasks in the driver's JVM have no stage any more, by id.

    It raises Py4JError or OSError when the JVM has ended, also when the session has stopped.
    """
    context = session.sparkContext
    jvm, jobs = context._jvm, context.statusTracker()  # noqa: SLF001

    def left() -> frozenset[int]:
        threads = jvm.java.lang.Thread.getAllStackTraces().keySet()  # type: ignore[union-attr]
        running = [found for thread in threads if (found := _TASK.match(thread.getName()))]
        active = set(jobs.getActiveStageIds())
        return frozenset(int(task[2]) for task in running if int(task[1]) not in active)

    return left


def is_stuck(
    left: Callable[[], Set[int]],
    *,
    seconds: float = STUCK_SECONDS,
    poll_seconds: float = _POLL_SECONDS,
) -> bool:
    """Wait until no task is left; return whether one stayed for as long as `seconds`."""
    since: dict[int, float] = {}
    calm = 0
    while calm < _CALM:
        moment = time.monotonic()
        since = {task: since.get(task, moment) for task in left()}
        if any(moment - began >= seconds for began in since.values()):
            return True
        calm = 0 if since else calm + 1
        time.sleep(poll_seconds)
    return False
