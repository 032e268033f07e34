"""The cheapest complete plan, top-down with bounds: a part is given up when it costs too much.

A bound is a value by the metric. A plan's value is never below that of a part of it, and never
below the sum of the parts' values without the time of all but one: so what the other parts cost
without their time is left to none of them.
"""

from federated_optimizer.costs.cost import NOTHING
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.search.fronts import Found, front

NO_BOUND = float("inf")


def best(memo: Memo, weighing: Weighing) -> int:
    """Return the number of the cheapest complete plan; of equals the lowest."""
    found = _Search(memo, weighing).fronts(memo.whole, NO_BOUND)
    first = min(found, key=lambda each: (weighing.order(each.cost), each.rank))
    return memo.number(first.rank)


class _Search:
    def __init__(self, memo: Memo, weighing: Weighing) -> None:
        self._memo = memo
        self._weighing = weighing
        self._found: dict[Wanted, list[Found]] = {}
        self._bounds: dict[Wanted, float] = {}

    def fronts(self, wanted: Wanted, bound: float) -> list[Found]:
        """Return the front of a part, of plans whose value is within the bound; perhaps none."""
        if self._bounds.get(wanted, -1.0) < bound:
            self._found[wanted] = self._searched(wanted, bound)
            self._bounds[wanted] = bound
        return [each for each in self._found.get(wanted, ()) if self._value(each) <= bound]

    def _searched(self, wanted: Wanted, bound: float) -> list[Found]:
        kept: list[Found] = []
        first = 0
        for alternative in self._memo.open(wanted):
            kept = front([*kept, *self._with(alternative, first, bound)], self._weighing)
            first += self._memo.size(alternative)
            if kept and (wanted == self._memo.whole or not self._weighing.slowness):
                # What is slower and cheaper is of use below something else only.
                bound = min(bound, *map(self._value, kept))
        return kept

    def _with(self, alternative: Alternative, first: int, bound: float) -> list[Found]:
        """Return the plans of an alternative within the bound, the inputs' fronts combined."""
        found = [Found(NOTHING, 0)]
        spent = self._weighing.value(alternative.cost)
        for child in alternative.children:
            if not found:
                break
            least = min(self._weighing.summed(each.cost) for each in found)
            parts = self.fronts(child, bound - spent - least)
            count = self._memo.count(child)
            found = front(
                (
                    Found(each.cost + part.cost, each.rank * count + part.rank)
                    for each in found
                    for part in parts
                ),
                self._weighing,
            )
        whole = (Found(alternative.cost.after(each.cost), first + each.rank) for each in found)
        return [each for each in whole if self._value(each) <= bound]

    def _value(self, found: Found) -> float:
        return self._weighing.value(found.cost)
