"""First k rows: those of every gateway, then those of them."""

import msgspec

from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.parted import Parted
from streamsql.algebra.operators import Plan, TopN


def parted_top(plan: TopN, below: Plan) -> Parted | Refused:
    """Return the first rows in parts, or why they are not taken so."""
    if plan.limit is None:
        return Refused("without a LIMIT no row can be left out")

    def whole(parts: Plan) -> Plan:
        return msgspec.structs.replace(plan, input=parts)

    def merged(parts: Plan) -> Plan:
        return shortened(plan, parts)

    first = plan.limit + plan.offset
    words = f"first {first} of every gateway before the first of all"
    by = plan.partition
    return Parted(shortened(plan, below), merged, whole, by, by, words)


def shortened(plan: TopN, below: Plan) -> Plan:
    """Return the rows of a part that the first rows of the whole may be among.

    What is not among the first `offset + limit` rows of its part is not among those of the whole.
    """
    if plan.limit is None:
        return below
    return TopN(below, plan.order, plan.limit + plan.offset, 0, plan.partition)
