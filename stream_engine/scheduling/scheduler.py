"""What a scheduling policy is to its site."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from stream_engine.scheduling.tasks import Task

Priority = tuple[float, ...]
"""Compared element by element: the least runs next. All of one policy have the same length."""


class Scheduler(Protocol):
    """Says which of the waiting operators of a site runs next.

    It changes when an answer comes and how much waits meanwhile, never the answer.

    Attributes:
        may_starve: Whether an operator could wait for ever while more and more comes in; then the
            site lets it run from time to time (`Patience`).
    """

    may_starve: ClassVar[bool]

    def begin(self, tasks: Sequence[Task]) -> bool:
        """Look at all operators of the site, before a step.

        Returns:
            Whether the priority of an operator that waits already may be another one now.
        """

    def priority(self, task: Task) -> Priority:
        """Return the priority of an operator that waits.

        Asked once when something begins to wait there, and again after each of its runs.
        """
