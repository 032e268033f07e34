"""Who has waited so long that it runs next, whatever the scheduler says."""

from collections import OrderedDict

from stream_engine.scheduling.tasks import Task

LONGEST_WAIT = 64
"""Slices after which an operator that waits is overdue."""


class Patience:
    """Keeps schedulers that look at rates from letting an operator starve under lasting overload.

    Greedy and Chain choose what shortens the queues fastest. Where that takes all slices, whatever
    is below it would wait until the queues are full. So an operator with rows that has not run for
    `LONGEST_WAIT` slices is overdue, and of those overdue the one that has waited longest runs
    next, one element.

    Every slice runs at least one operator. So with k operators at a site none of them waits for
    more than `LONGEST_WAIT + k` slices: when it is overdue, at most k - 1 have waited longer, each
    run from then on is one of theirs or its own, and whoever has run stands behind it. In return
    runs that the scheduler has not chosen are at most one per operator and `LONGEST_WAIT` slices,
    so in bursts shorter than that nothing changes.

    State: the operators that wait. Work: O(1) a run.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[Task, None] = OrderedDict()  # who waits longest comes first

    def begins(self, task: Task, now: int) -> None:
        """Let an operator begin to wait in a slice."""
        task.since = now
        self._waiting[task] = None

    def ran(self, task: Task, now: int) -> None:
        """Take in that an operator has run in a slice; it waits on if there are rows left."""
        del self._waiting[task]
        task.turn += 1
        if task.elements:
            self.begins(task, now)

    def drop(self, task: Task) -> None:
        """Forget an operator, if it waits."""
        self._waiting.pop(task, None)

    def overdue(self, now: int) -> Task | None:
        """Return the operator that has waited longest if that is too long, or None."""
        first = next(iter(self._waiting), None)
        return None if first is None or now - first.since < LONGEST_WAIT else first

    def __len__(self) -> int:
        """Return how many operators wait."""
        return len(self._waiting)
