"""How the rows of base pieces lie over the base sites after an operator."""

from federated_optimizer.placement.fragment import SOMEHOW, Spread
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Project


def fits(have: Spread, wanted: Spread) -> bool:
    """Whether rows that lie one way lie the other way, too."""
    return wanted == SOMEHOW or have.single == wanted.single


def projected(spread: Spread, plan: Project) -> Spread:
    """Return how the rows of a projection lie."""
    where: dict[int, int] = {}
    for new, expression in enumerate(plan.expressions):
        if isinstance(expression, Column):
            where.setdefault(expression.position, new)
    return _mapped(spread, where)


def regrouped(spread: Spread, group: tuple[int, ...]) -> Spread:
    """Return how groups lie whose rows are together."""
    return _mapped(spread, {old: new for new, old in enumerate(group)})


def _mapped(spread: Spread, where: dict[int, int]) -> Spread:
    if spread.single or not all(c in where for c in spread.columns):
        return spread if spread.single else SOMEHOW
    return Spread(single=False, columns=tuple(where[c] for c in spread.columns))
