"""The bound on the operators of a query.

A part that is named in WITH or in a view counts as often as it is read: plans are trees, and twenty
names that each read the one before twice are a million operators.
"""

from streamsql.algebra.operators import Plan
from streamsql.errors import UnsupportedError

MAX_OPERATORS = 4_000


def check_size(plan: Plan) -> None:
    """Refuse a plan with too many operators; takes one step for each that is written.

    Raises:
        UnsupportedError: There are more than 4,000.
    """
    sizes: dict[int, int] = {}
    waiting = [plan]
    while waiting:
        node = waiting[-1]
        missing = [child for child in node.inputs if id(child) not in sizes]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in node.inputs)
    if sizes[id(plan)] > MAX_OPERATORS:
        raise UnsupportedError(
            f"this query has {sizes[id(plan)]} operators; the max is {MAX_OPERATORS}",
            hint="every use of a WITH part or view counts: use them less often, or split the "
            "query into materialized views",
            code="limit_exceeded",
        )
