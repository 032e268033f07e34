"""The choice between what runs and other plans for it, by their prices.

A plan is taken that is much cheaper by the metric, by more than a few bytes a second. Where two
cause the same by it, one over results is taken if sites work less and keep less by it. Not the way
back: others may want the node that would end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from federated_optimizer.alternatives.recursion.recursions import MUCH
from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.effort import ALIKE, BYTES_SENT, effort_of, takes_less_effort
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.statistics.speeds import Speeds


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan that might be taken.

    Attributes:
        cost: Of what it causes.
        reads_results: Whether it reads results of other runs.
        sends_nothing: Whether gateways send nothing anew for it.
    """

    cost: Cost
    reads_results: bool
    sends_nothing: bool


@dataclass(frozen=True, slots=True)
class Chosen:
    """A plan that is taken.

    Attributes:
        number: Its place among the candidates.
        is_much: Whether it is much cheaper by the metric; else it takes less effort.
    """

    number: int
    is_much: bool


def chosen(
    now: Cost, candidates: Sequence[Candidate], weighing: Weighing, speeds: Speeds
) -> Chosen | None:
    """Return the plan that is taken; None: what runs stays, which costs `now`."""
    found, least = None, now
    a_few = weighing.value(Cost(bytes=BYTES_SENT))
    for number, each in enumerate(candidates):
        best, value = weighing.value(least), weighing.value(each.cost)
        # A few bytes a second never pay for a move; the effort that goes with them may.
        is_much = MUCH * value < min(best, weighing.value(now)) - a_few
        is_less = (
            each.reads_results
            and each.sends_nothing
            and value <= ALIKE * best
            and takes_less_effort(weighing, speeds, each.cost, now)
            and effort_of(each.cost, speeds).value < effort_of(least, speeds).value
        )
        if is_much or is_less:
            # Of two that are much cheaper than what runs, effort may decide; the reason stays.
            found = Chosen(number, MUCH * value < weighing.value(now) - a_few)
            least = each.cost
    return found
