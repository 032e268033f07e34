"""Scheduling policies but Chain: which pending operator of a site runs next."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from stream_engine.scheduling.tasks import Task

Priority = tuple[float, ...]
"""Compared element by element: the least runs next. All of one policy have the same length."""


class Scheduler(ABC):
    """Ranks the operators of a site that have pending changes.

    It decides when an answer comes and how much is pending meanwhile, never the answer.

    Attributes:
        may_starve: Whether an operator could wait for ever while more and more comes in; the
            site then lets it run from time to time (`Patience`).
    """

    may_starve: ClassVar[bool] = False

    def begin(self, tasks: Sequence[Task]) -> bool:  # noqa: ARG002  (most policies need no look)
        """Inspect all operators of the site before a step.

        Returns:
            Whether priorities of pending operators may have changed.
        """
        return False

    @abstractmethod
    def priority(self, task: Task) -> Priority:
        """Return the priority of a pending operator.

        Called when its queue ceases to be empty, and again after each of its runs.
        """


class FifoScheduler(Scheduler):
    """Runs the oldest batch first, and with it one operator after the other.

    It answers what came first as soon as possible. The queues grow by whole batches in a burst,
    however much the first operator would take away of each.
    """

    def priority(self, task: Task) -> Priority:
        """Return the age of the oldest change, then the place in the plan."""
        return (task.batch, task.order)


class GreedyScheduler(Scheduler):
    """Runs the largest measured queue reduction per unit of time first (STREAM thesis, 2.3).

    Of two equal ones the older batch runs first. An operator that has never run does so at once, to
    be measured. Single operators are compared: one that removes many rows waits behind one that
    removes none; `ChainScheduler` sees both.
    """

    may_starve = True

    def priority(self, task: Task) -> Priority:
        """Return the negated measured reduction; unmeasured operators come first."""
        profile = task.profile
        if not profile.is_measured:
            return (0, 0.0, task.batch, task.order)
        return (1, -profile.rate, task.batch, task.order)


class RoundRobinScheduler(Scheduler):
    """Runs pending operators in turn, whatever they do and whatever is pending.

    No operator starves, and no query delays another by more than one run per operator.
    """

    def __init__(self) -> None:
        self._turn = 0

    def priority(self, task: Task) -> Priority:  # noqa: ARG002  (all are alike)
        """Return the next turn."""
        self._turn += 1
        return (self._turn,)
