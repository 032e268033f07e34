"""Processor time and memory of sites in one unit: what decides where a metric has no reason.

Registration chooses by it whether a query reads a node or computes its part anew, and moves whether
a running query goes over to a node. Both leave a plan only for one of clearly less effort: so no
plan is chosen by one and left by the other for the same facts.
"""

from dataclasses import dataclass

from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.statistics.default_facts import RENEWALS, ROW_LIFE
from federated_optimizer.statistics.speeds import Speeds

LESS_EFFORT = 0.8
"""A plan is taken for so much less effort: prices of work are no better than that."""

ALIKE = 1.01
"""Prices that differ by less are the same by the metric."""

BYTES_SENT = 10.0
"""Bytes a second that are no reason by themselves: a site that is at rest sends more in reports."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of sites.

    Attributes:
        milliseconds: Of work a second.
        kept: Bytes of memory.
        value: Both, as milliseconds of work a second.
    """

    milliseconds: float
    kept: float
    value: float


def effort_of(cost: Cost, speeds: Speeds) -> Effort:
    """Return the effort of a price."""
    return Effort(cost.cpu, cost.state, cost.cpu + cost.state * kept_as_work(speeds))


def kept_as_work(speeds: Speeds) -> float:
    """Return the milliseconds of work a second for which a byte counts that a base site keeps.

    A row that is kept counts as much as the changes of a row of which nobody knows more: it is
    joined RENEWALS times in ROW_LIFE. By default that is 0.7 ms a second for a megabyte.
    """
    joined = speeds.base.join / 1_000 * RENEWALS.value / ROW_LIFE.value
    return joined / speeds.kept.join


def takes_less_effort(weighing: Weighing, speeds: Speeds, cost: Cost, than: Cost) -> bool:
    """Return whether a plan costs the same as another one by the metric, and clearly less effort.

    Examples:
        >>> by_bytes, speeds = Weighing(), Speeds()
        >>> takes_less_effort(by_bytes, speeds, Cost(cpu=0.7), Cost(cpu=1.0))
        True
        >>> takes_less_effort(by_bytes, speeds, Cost(cpu=0.9), Cost(cpu=1.0))
        False
        >>> takes_less_effort(by_bytes, speeds, Cost(cpu=0.7, bytes=11.0), Cost(cpu=1.0))
        False
        >>> takes_less_effort(by_bytes, speeds, Cost(cpu=0.7, state=2e6), Cost(cpu=1.0))
        False
    """
    alike = ALIKE * weighing.value(than) + weighing.value(Cost(bytes=BYTES_SENT))
    before, after = (effort_of(each, speeds).value for each in (than, cost))
    return weighing.value(cost) <= alike and after < LESS_EFFORT * before
