"""Chain: greedy on chains of operators instead of on single ones."""

from collections.abc import Sequence
from typing import ClassVar

from stream_engine.scheduling.chains import rates_of
from stream_engine.scheduling.scheduler import Priority
from stream_engine.scheduling.tasks import Task

REMEASURED = 8
"""Operator runs after which the chains are made again; as many as there are operators if these are
more, so that a run pays for one operator."""


class ChainScheduler:
    """The steepest chain first, inside a chain the oldest batch (STREAM thesis, section 2.3).

    Its queues are close to the shortest that any scheduler could have, one that knew the future
    included, for the chains it knows; an operator that has never run does so at once.
    """

    may_starve: ClassVar[bool] = True

    def __init__(self) -> None:
        self._rates: dict[int, float] = {}
        self._tasks = 0
        self._asked = 0

    def begin(self, tasks: Sequence[Task]) -> bool:
        """Make the chains again if there are other operators or enough has been measured."""
        if len(tasks) == self._tasks and self._asked < max(REMEASURED, len(tasks)):
            return False
        self._asked = 0
        self._tasks = len(tasks)
        self._rates = rates_of(tasks)
        return True

    def priority(self, task: Task) -> Priority:
        """Return what the operator's chain takes away in a unit of time, the most first."""
        self._asked += 1
        if not task.profile.is_measured:
            self._tasks = 0  # it is measured with this run
            return (0, 0.0, task.batch, task.order)
        return (1, -self._rates.get(task.order, 0.0), task.batch, task.order)
