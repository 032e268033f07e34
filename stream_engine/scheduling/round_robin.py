"""Round-robin: one run for each operator that has something to do, in turn."""

from collections.abc import Sequence
from typing import ClassVar

from stream_engine.scheduling.scheduler import Priority
from stream_engine.scheduling.tasks import Task


class RoundRobinScheduler:
    """Whoever has waited longest for a turn, whatever it does and whatever waits there.

    No operator starves, and no query can hold up another one by more than one run per operator.
    """

    may_starve: ClassVar[bool] = False

    def __init__(self) -> None:
        self._turn = 0

    def begin(self, _tasks: Sequence[Task]) -> bool:
        """Return False: turns are given once."""
        return False

    def priority(self, _task: Task) -> Priority:
        """Return the next turn."""
        self._turn += 1
        return (self._turn,)
