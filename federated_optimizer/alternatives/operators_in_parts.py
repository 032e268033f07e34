"""Operators over one input in parts: which have them, and why others do not."""

from federated_optimizer.alternatives.first_k import parted_top
from federated_optimizer.alternatives.local_distinct import parted_distinct
from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.parted import Parted
from federated_optimizer.alternatives.partial_aggregate import parted_aggregate
from streamsql.algebra.operators import Aggregate, Distinct, Plan, TopN


def parted(plan: Plan, below: Plan) -> Parted | Refused:
    """Return an operator in parts, or why it has none.

    Args:
        plan: The operator.
        below: What it reads, as gateways compute it.
    """
    match plan:
        case Aggregate():
            return parted_aggregate(plan, below)
        case Distinct():
            return parted_distinct(plan, below)
        case TopN():
            return parted_top(plan, below)
        case _:
            return Refused("it needs all rows at one place")
