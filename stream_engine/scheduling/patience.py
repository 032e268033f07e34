"""Operators that are overdue: they run next, whatever the scheduler says."""

from collections import OrderedDict

from stream_engine.scheduling.tasks import Task

LONGEST_WAIT = 64
"""Slices after which an operator that waits is overdue."""


class Patience:
    """Keeps Greedy and Chain from starving operators of low rates under lasting overload.

    An operator with rows that has not run for `LONGEST_WAIT` slices is overdue; of those the one
    that has waited longest runs next, one element.

    Every slice runs at least one operator. So with k operators at a site none of them waits for
    more than `LONGEST_WAIT + k` slices: when it is overdue, at most k - 1 have waited longer, each
    run from then on is one of theirs or its own, and whoever has run stands behind it. At most one
    run per operator and `LONGEST_WAIT` slices is not the scheduler's choice.

    State: the pending operators. Work: O(1) a run.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[Task, None] = OrderedDict()  # who waits longest comes first

    def begins(self, task: Task, now: int) -> None:
        """Note that an operator is pending from a slice on."""
        task.since = now
        self._waiting[task] = None

    def ran(self, task: Task, now: int) -> None:
        """Note that an operator has run in a slice; it stays pending if rows are left."""
        del self._waiting[task]
        task.turn += 1
        if task.elements:
            self.begins(task, now)

    def drop(self, task: Task) -> None:
        """Discard an operator, if it is pending."""
        self._waiting.pop(task, None)

    def overdue(self, now: int) -> Task | None:
        """Return the operator that has waited longest if that is too long, or None."""
        first = next(iter(self._waiting), None)
        return None if first is None or now - first.since < LONGEST_WAIT else first

    def __len__(self) -> int:
        """Return the number of pending operators."""
        return len(self._waiting)
