"""Plans of a part that may belong to one of the cheapest complete plans.

Where time has a weight, the slowest path of a plan counts. A part that is slower than others but
cheaper otherwise may be the best one below something that is slow anyway: so a part has a front, of
which each plan is faster or cheaper than every other one.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.weighing import Weighing


@dataclass(frozen=True, slots=True)
class Found:
    """A plan of a part: its price, and its place in the order of the part's plans, from 0."""

    cost: Cost
    rank: int


def front(found: Iterable[Found], weighing: Weighing, most: int = 1) -> list[Found]:
    """Return the plans than which fewer than `most` others are as cheap and as fast.

    The cheapest come first, whatever their time; of equals the first one counts as cheaper.
    """
    plans = list(found)
    if len(plans) < 2:  # most parts have one
        return plans
    ordered = sorted(plans, key=lambda each: (*weighing.order_of_sums(each.cost), each.rank))
    if not weighing.slowness:
        return ordered[:most]
    kept: list[Found] = []
    for each in ordered:
        time = each.cost.milliseconds
        if sum(other.cost.milliseconds <= time for other in kept) < most:
            kept.append(each)
    return kept
