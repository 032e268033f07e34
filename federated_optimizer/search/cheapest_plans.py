"""The first few complete plans by price."""

from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo
from federated_optimizer.search.top_down import Found


def cheapest(memo: Memo, most: int) -> list[int]:
    """Return the numbers of the cheapest complete plans, at most so many, the cheapest first.

    A group that is read twice counts twice here.
    """
    known: dict[Wanted, list[Found]] = {}

    def of(wanted: Wanted) -> list[Found]:
        if wanted not in known:
            found: list[Found] = []
            first = 0
            for alternative in memo.alternatives[wanted]:
                found.extend(Found(f.cost, first + f.rank) for f in over(alternative))
                first += memo.size(alternative)
            known[wanted] = _first(found, most)
        return known[wanted]

    def over(alternative: Alternative) -> list[Found]:
        found = [Found(alternative.cost, 0)]
        for child in alternative.children:
            count = memo.count(child)
            found = _first(
                [
                    Found(one.cost + other.cost, one.rank * count + other.rank)
                    for one in found
                    for other in of(child)
                ],
                most,
            )
        return found

    return [memo.number(found.rank) for found in of(memo.whole)]


def _first(found: list[Found], most: int) -> list[Found]:
    return sorted(found, key=lambda each: (each.cost.order, each.rank))[:most]
