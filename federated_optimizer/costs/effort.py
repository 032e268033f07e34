"""Processor time and memory of sites in one unit: what decides where a metric has no reason."""

from dataclasses import dataclass

from federated_optimizer.costs.cost import Cost
from federated_optimizer.statistics.default_facts import RENEWALS, ROW_LIFE
from federated_optimizer.statistics.speeds import Speeds


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
