"""Greedy: the operator that shortens the queues fastest runs first."""

from collections.abc import Sequence
from typing import ClassVar

from stream_engine.scheduling.scheduler import Priority
from stream_engine.scheduling.tasks import Task


class GreedyScheduler:
    """The largest measured queue reduction per unit of time first (STREAM thesis, section 2.3).

    Of two alike the older batch comes first. An operator that has never run does so at once, or
    nothing would be known of it. It looks at one operator at a time, so one that takes much away
    waits behind one that takes nothing; `chain.py` sees both.
    """

    may_starve: ClassVar[bool] = True

    def begin(self, _tasks: Sequence[Task]) -> bool:
        """Return False: a measured rate changes by the operator's own runs only."""
        return False

    def priority(self, task: Task) -> Priority:
        """Return what it takes away in a unit of time, the most first."""
        profile = task.profile
        if not profile.is_measured:
            return (0, 0.0, task.batch, task.order)
        return (1, -profile.rate, task.batch, task.order)
