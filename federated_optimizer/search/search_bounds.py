"""Bounds of the search, and which plans are left out because of them, in words."""

from streamsql.algebra.operators import Plan

MAX_OPERATORS = 400
"""Of a plan that is searched; a larger one is pushed as far as it goes."""

MAX_DEPTH = 100
"""Of operators above each other in a plan that is searched: the search takes several calls each."""

MAX_PLANS = 10**15
"""Complete plans that have numbers: a number fits into a message."""

NO_ORDERS = "another order of joins, and joins of rows of other gateways at gateways"
NO_FILTERS = f"{NO_ORDERS}, and filters at the base of what gateways have"
ENDS_ONLY = "plans between the one that pushes everything and the one that ships everything"

PUSHED_ONLY = (
    f"another plan than the one that pushes everything: the query has more than {MAX_OPERATORS} "
    f"operators, or more than {MAX_DEPTH} above each other"
)


def is_deep(plan: Plan) -> bool:
    """Whether a plan has more operators above each other than are searched."""
    level: tuple[Plan, ...] = (plan,)
    for _ in range(MAX_DEPTH):
        level = tuple(child for node in level for child in node.inputs)
    return bool(level)
