"""Operators put together to chains by the lower envelope of the progress chart.

The progress chart of a path says how much of a row is still in queues after how much time: a step
down (or up) per operator. Its lower envelope are the steepest ways down: of all blocks of
consecutive operators that begin at the first one, the block that takes most away per unit of time
is a chain, the operator behind it begins the next one, and so on (STREAM thesis, section 2.3;
Babcock et al., SIGMOD 2003).

Plans here are graphs of operators, so a path is what follows an operator while its output goes to
exactly one queue:

- where an output goes to several queues, or to none, the path ends: what each of them makes of it
  is not the operator's doing (that it fills several queues is in its selectivity);
- an operator with several inputs is on the path of each of them, with the time and selectivity
  measured over all. If blocks of several paths hold it, the steepest one counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stream_engine.scheduling.tasks import Task

LONGEST_BLOCK = 100
"""Operators that are looked at from one; plans are rarely as deep."""


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
    """Return the chains of a site; each operator is in at least one.

    Args:
        tasks: All operators, inputs before their consumers.
    """
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
    """Return the block from an operator on that shortens the queues fastest.

    Of two alike the longer one, so that an operator without effect is not left in between.
    """
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
