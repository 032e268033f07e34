"""Workers that do tasks on files of the lake: those of Spark, or the calling thread."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from static_engine.lake.lake_errors import LakeError

Work = Callable[[bytes], bytes]
"""A function of a module that workers can import; it runs elsewhere, so it gets and gives bytes."""


class Workers(Protocol):
    """Does tasks, some at a time."""

    @property
    def description(self) -> str:
        """Their name for people."""
        ...

    @property
    def usable(self) -> bool:
        """Whether they can work now."""
        ...

    def run(self, work: Work, tasks: Sequence[bytes], name: str) -> Iterator[bytes]:
        """Yield the outcomes of tasks, in their order, as they come.

        Raises:
            LakeError: The workers are gone, or a task failed.
        """
        ...


class LocalWorkers:
    """The calling thread: where there is no Spark."""

    description = "the static engine's process, without Spark"
    usable = True

    def run(self, work: Work, tasks: Sequence[bytes], name: str) -> Iterator[bytes]:
        """Do one task after the other."""
        del name
        for task in tasks:
            yield work(task)


class CurrentWorkers:
    """Workers of the moment: an engine may start late, and again.

    Args:
        workers: The first ones; None: they have not started yet.
    """

    def __init__(self, workers: Workers | None) -> None:
        self._workers = workers

    def use(self, workers: Workers) -> None:
        """Take others from now on; of any thread."""
        self._workers = workers

    def __call__(self) -> Workers:
        """Return them.

        Raises:
            LakeError: There are none now.
        """
        workers = self._workers
        if workers is None or not workers.usable:
            raise LakeError(
                "Spark has not started yet, or starts again",
                hint="try again in a minute; pando status says how far it is",
                code="lake_busy",
            )
        return workers
