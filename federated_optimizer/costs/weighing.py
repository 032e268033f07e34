"""A metric applied to prices.

A weighted sum has two parts. All terms but the time add up over the parts of a plan. Times add up
along a path, and the slowest path counts: of two parts of a plan, `Weighing.value` of both is at
least the sums' value of each and at most the sum of their values.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from federated_optimizer.costs.cost import Cost
from streamsql.algebra.metrics import BY_BYTES, Metric, Term

FIELDS: Mapping[Term, str] = {
    Term.BYTES: "bytes",
    Term.MESSAGES: "messages",
    Term.LATENCY: "milliseconds",
    Term.ENERGY: "energy",
    Term.CPU: "cpu",
    Term.STATE: "state",
    Term.ENGINE: "engine",
}
"""The fields of a price, by the term of a metric."""

_DIGITS = 6
"""Smaller differences are those of sums in another order."""


class Weighing:
    """Values of prices by a metric.

    Attributes:
        metric: By which plans are compared.
        slowness: The weight of a millisecond.
    """

    def __init__(self, metric: Metric = BY_BYTES) -> None:
        self.metric = metric
        self.slowness = dict(metric.weights).get(Term.LATENCY, 0.0)
        self._summed: list[tuple[Any, float]] = [
            (attrgetter(FIELDS[term]), weight)
            for term, weight in metric.weights
            if term != Term.LATENCY
        ]

    def summed(self, cost: Cost) -> float:
        """Return the value of all terms but the time."""
        return sum((weight * field(cost) for field, weight in self._summed), 0.0)

    def value(self, cost: Cost) -> float:
        """Return the value of a price: the smaller, the better."""
        return self.summed(cost) + self.slowness * cost.milliseconds

    def order(self, cost: Cost) -> tuple[float, ...]:
        """Return that by which prices are compared: the value, and what decides between equals."""
        return (round(self.value(cost), _DIGITS), *cost.ties, round(cost.milliseconds, _DIGITS))

    def order_of_sums(self, cost: Cost) -> tuple[float, ...]:
        """Return that by which prices of the same time are compared; it adds up over parts."""
        return (round(self.summed(cost), _DIGITS), *cost.ties)
