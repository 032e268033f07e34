"""Shares of the conditions on a term that imply a further one: how often a clause is hit."""

from collections.abc import Iterable

from federated_optimizer.canonical.conditions.normal_forms import Clause
from federated_optimizer.canonical.conditions.terms import Condition, Term
from federated_optimizer.canonical.regions.region_lists import RegionList


class ConditionShares:
    """The conditions of sets, by term."""

    def __init__(self) -> None:
        self._lists: dict[Term, RegionList[list[int]]] = {}  # regions, and how many have each

    def __bool__(self) -> bool:
        """Return whether there are conditions."""
        return bool(self._lists)

    def add(self, conditions: Iterable[Condition]) -> None:
        """Add conditions of a set."""
        for each in conditions:
            regions = self._lists.setdefault(each.term, RegionList())
            count = regions.owner(each.region)
            if count is None:
                regions.add(each.region, [1])
            else:
                count[0] += 1

    def remove(self, conditions: Iterable[Condition]) -> None:
        """Remove conditions of a set that were added."""
        for each in conditions:
            regions = self._lists[each.term]
            count = regions.owner(each.region)
            if count is not None and count[0] > 1:
                count[0] -= 1
                continue
            regions.remove(each.region)
            if not len(regions):
                del self._lists[each.term]

    def of(self, clause: Clause) -> float:
        """Return an estimate of the share of conditions on its terms that imply a clause; quick."""
        return sum(map(self._of_one, clause))

    def _of_one(self, condition: Condition) -> float:
        regions = self._lists.get(condition.term)
        return 1.0 if regions is None else regions.most_included(condition.region) / len(regions)
