"""The first few complete plans by price."""

from federated_optimizer.costs.cost import NOTHING
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.search.fronts import Found, front


def cheapest(memo: Memo, weighing: Weighing, most: int) -> list[int]:
    """Return the numbers of the cheapest complete plans, at most so many, the cheapest first.

    A group that is read twice counts twice here.
    """
    known: dict[Wanted, list[Found]] = {}

    def of(wanted: Wanted) -> list[Found]:
        if wanted not in known:
            found: list[Found] = []
            first = 0
            for alternative in memo.open(wanted):
                found.extend(Found(f.cost, first + f.rank) for f in over(alternative))
                first += memo.size(alternative)
            known[wanted] = front(found, weighing, most)
        return known[wanted]

    def over(alternative: Alternative) -> list[Found]:
        found = [Found(NOTHING, 0)]
        for child in alternative.children:
            count = memo.count(child)
            found = front(
                (
                    Found(one.cost + other.cost, one.rank * count + other.rank)
                    for one in found
                    for other in of(child)
                ),
                weighing,
                most,
            )
        return [Found(alternative.cost.after(each.cost), each.rank) for each in found]

    found = sorted(of(memo.whole), key=lambda each: (weighing.order(each.cost), each.rank))
    return [memo.number(each.rank) for each in found[:most]]
