"""Chain scheduling: greedy on chains of operators, which the progress chart gives.

The progress chart of a path says how much of a row is still in queues after how much time: a step
down (or up) per operator. Its lower envelope are the steepest ways down: of all blocks of
consecutive operators that begin at the first one, the block that takes most away per unit of time
is a chain, the operator behind it begins the next one, and so on (STREAM thesis, section 2.3;
Babcock et al., SIGMOD 2003).

Plans are graphs of operators, so a path follows an operator while its output goes to exactly one
queue:

- where an output goes to several queues, or to none, the path ends (that it fills several queues is
  in its selectivity);
- an operator with several inputs is on the path of each of them, with the time and selectivity
  measured over all. If blocks of several paths hold it, the steepest one counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stream_engine.scheduling.policies import Priority, Scheduler
from stream_engine.scheduling.tasks import Task

LONGEST_BLOCK = 100
"""Max operators of a block; plans are rarely as deep."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A block of consecutive operators.

    Attributes:
        tasks: From the one at the beginning of the block on.
        rate: Rows by which the queues get shorter per nanosecond, from its beginning to its end.
    """

    tasks: tuple[Task, ...]
    rate: float


def chains_of(tasks: Sequence[Task]) -> list[Chain]:
    """Return the chains of operators that come inputs first; each operator is in at least one."""
    begins = set(map(id, tasks))
    for task in tasks:
        if len(task.consumers) == 1:
            begins.discard(id(task.consumers[0]))
    chains = []
    done: set[int] = set()
    for first in tasks:
        start: Task | None = first if id(first) in begins else None
        while start is not None and id(start) not in done:
            done.add(id(start))
            chain = steepest(start)
            chains.append(chain)
            start = _next(chain.tasks[-1])
    return chains


def steepest(start: Task) -> Chain:
    """Return the block from an operator on that shortens the queues fastest, the longer of two."""
    block: list[Task] = []
    best: Chain | None = None
    left, time = 1.0, 0.0
    task: Task | None = start
    while task is not None and len(block) < LONGEST_BLOCK:
        block.append(task)
        time += left * task.profile.time_per_row
        left *= task.profile.selectivity
        rate = (1 - left) / time if time else 0.0
        if best is None or rate >= best.rate:
            best = Chain(tuple(block), rate)
        task = _next(task)
    assert best is not None  # noqa: S101  (the loop has run at least once)
    return best


def rates_of(tasks: Sequence[Task]) -> dict[int, float]:
    """Return the rate of the steepest chain of each operator, by its order."""
    rates: dict[int, float] = {}
    for chain in chains_of(tasks):
        for task in chain.tasks:
            rates[task.order] = max(chain.rate, rates.get(task.order, chain.rate))
    return rates


def _next(task: Task) -> Task | None:
    return task.consumers[0] if len(task.consumers) == 1 else None


REMEASURED = 8
"""Operator runs after which the chains are computed again, or as many as there are operators if
these are more, so that a run pays for one operator."""


class ChainScheduler(Scheduler):
    """Runs the steepest chain first, inside a chain the oldest batch (STREAM thesis, section 2.3).

    Its queues are close to the shortest that any scheduler could have, one that knew the future
    included, for the chains it knows; an operator that has never run does so at once.
    """

    may_starve = True

    def __init__(self) -> None:
        self._rates: dict[int, float] = {}
        self._tasks = 0
        self._asked = 0

    def begin(self, tasks: Sequence[Task]) -> bool:
        """Compute the chains again if the operators have changed or enough has been measured."""
        if len(tasks) == self._tasks and self._asked < max(REMEASURED, len(tasks)):
            return False
        self._asked = 0
        self._tasks = len(tasks)
        self._rates = rates_of(tasks)
        return True

    def priority(self, task: Task) -> Priority:
        """Return the negated rate of the operator's chain; unmeasured operators come first."""
        self._asked += 1
        if not task.profile.is_measured:
            self._tasks = 0  # it is measured with this run
            return (0, 0.0, task.batch, task.order)
        return (1, -self._rates.get(task.order, 0.0), task.batch, task.order)
