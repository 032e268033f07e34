"""Bounds of the search, and which plans are left out because of them, in words."""

from collections.abc import Mapping, Sequence

from federated_optimizer.alternatives.heuristics import ALL, LIFTED, Heuristic, Heuristics
from streamsql.algebra.operators import Plan

MAX_OPERATORS = 400
"""Of a plan that is searched; a larger one is pushed as far as it goes."""

MAX_DEPTH = 100
"""Of operators above each other in a plan that is searched: the search takes several calls each."""

MAX_PLANS = 10**15
"""Complete plans that have numbers: a number fits into a message."""

MAX_WAYS = 8_000
"""In which gateways exchange rows; a block of seven streams without heuristics has 5,200."""

NO_ORDERS = "another order of joins, and joins of rows of other gateways at gateways"
NO_FILTERS = f"{NO_ORDERS}, and filters at the base of what gateways have"
ENDS_ONLY = "plans between the one that pushes everything and the one that ships everything"

PUSHED_ONLY = (
    f"another plan than the one that pushes everything: the query has more than {MAX_OPERATORS} "
    f"operators, or more than {MAX_DEPTH} above each other"
)


class Budget:
    """Heuristics of a search, all of which hold again once it has followed too many ways.

    It is counted in ways, not in time, so that plans are the same on every machine.

    Args:
        kept: Rules that hold from the beginning.
    """

    def __init__(self, kept: Heuristics) -> None:
        self._kept, self._ways = kept, 0

    def spend(self, ways: int = 1) -> None:
        """Count ways in which gateways exchange rows."""
        self._ways += ways

    @property
    def is_spent(self) -> bool:
        """Whether rules hold that did not hold in the beginning."""
        return self._kept != ALL and self._ways >= MAX_WAYS

    @property
    def kept(self) -> Heuristics:
        """The rules that hold now."""
        return ALL if self.is_spent else self._kept

    def words(self, left_out: Mapping[Heuristic, Sequence[str]]) -> tuple[str, ...]:
        """Return what rules leave out, each with its rule and with what considers it.

        Args:
            left_out: By rule, the joins with their methods.
        """
        why = "heuristics hold again" if self.is_spent else LIFTED
        rules = [f"{' or '.join(ways)}: {rule} ({why})" for rule, ways in left_out.items()]
        if not self.is_spent:
            return tuple(rules)
        again = (
            "more plans without heuristics: these hold again for the rest of the query, after "
            f"{MAX_WAYS:,} ways in which gateways exchange rows"
        )
        return (again, *rules)


def is_deep(plan: Plan) -> bool:
    """Whether a plan has more operators above each other than are searched."""
    level: tuple[Plan, ...] = (plan,)
    for _ in range(MAX_DEPTH):
        level = tuple(child for node in level for child in node.inputs)
    return bool(level)
