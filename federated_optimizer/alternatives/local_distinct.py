"""DISTINCT: equal rows of one gateway travel once."""

from federated_optimizer.alternatives.parted import Parted
from streamsql.algebra.operators import Distinct, Plan


def parted_distinct(plan: Distinct, below: Plan) -> Parted:
    """Return Distinct in parts."""
    columns = tuple(range(len(plan.schema)))
    words = "DISTINCT of every gateway before that of all"
    return Parted(Distinct(below), Distinct, Distinct, columns, columns, words)
