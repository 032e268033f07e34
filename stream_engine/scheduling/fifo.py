"""First in, first out: what came first is carried through all operators first."""

from collections.abc import Sequence
from typing import ClassVar

from stream_engine.scheduling.scheduler import Priority
from stream_engine.scheduling.tasks import Task


class FifoScheduler:
    """The oldest batch first, and with it one operator after the other.

    It answers what came first as soon as possible. The queues grow by whole batches in a burst,
    however much the first operator would take away of each.
    """

    may_starve: ClassVar[bool] = False

    def begin(self, _tasks: Sequence[Task]) -> bool:
        """Return False: a batch stays as old as it is."""
        return False

    def priority(self, task: Task) -> Priority:
        """Return the age of what waits longest, then the place in the plan."""
        return (task.batch, task.order)
