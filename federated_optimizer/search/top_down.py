"""The cheapest complete plan, top-down with bounds: a part is given up when it costs too much."""

from dataclasses import dataclass

from federated_optimizer.costs.cost import Cost
from federated_optimizer.memo.groups import Alternative, Wanted
from federated_optimizer.memo.memo import Memo

NO_BOUND = float("inf")


@dataclass(frozen=True, slots=True)
class Found:
    """A plan of a part: its price, and its place in the order of the part's plans, from 0."""

    cost: Cost
    rank: int


def best(memo: Memo) -> int:
    """Return the number of the cheapest complete plan; of equals the lowest."""
    found = _Search(memo).best(memo.whole, NO_BOUND)
    assert found is not None  # noqa: S101  (nothing exceeds no bound)
    return memo.number(found.rank)


class _Search:
    def __init__(self, memo: Memo) -> None:
        self._memo = memo
        self._found: dict[Wanted, Found] = {}
        self._failed: dict[Wanted, float] = {}

    def best(self, wanted: Wanted, bound: float) -> Found | None:
        """Return the cheapest plan of a part; None if every one costs more bytes than the bound."""
        known = self._found.get(wanted)
        if known is None and self._failed.get(wanted, -1.0) < bound:
            known = self._searched(wanted, bound)
            if known is None:
                self._failed[wanted] = bound
            else:
                self._found[wanted] = known
        return known if known is not None and known.cost.bytes <= bound else None

    def _searched(self, wanted: Wanted, bound: float) -> Found | None:
        chosen: Found | None = None
        first = 0
        for alternative in self._memo.alternatives[wanted]:
            found = self._with(alternative, first, bound)
            first += self._memo.size(alternative)
            if found is not None and (chosen is None or found.cost.order < chosen.cost.order):
                chosen, bound = found, min(bound, found.cost.bytes)
        return chosen

    def _with(self, alternative: Alternative, first: int, bound: float) -> Found | None:
        cost, rank = alternative.cost, 0
        for child in alternative.children:
            if cost.bytes > bound:
                return None
            found = self.best(child, bound - cost.bytes)
            if found is None:
                return None
            cost, rank = cost + found.cost, rank * self._memo.count(child) + found.rank
        return Found(cost, first + rank) if cost.bytes <= bound else None
