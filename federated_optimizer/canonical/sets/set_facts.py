"""Facts of the rows of predicate sets, by term: which sets imply a further clause.

Facts of a set are the regions of its conditions' terms, of all its columns, and of the differences
and orders between them, closed: they answer for columns and for terms that the set has. For another
term, such as `a - b` where a set bounds a and b, or `s LIKE '%b%'` where it says `s = 'abc'`, the
sets that bound all columns of the term are asked one by one.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from federated_optimizer.canonical.conditions.normal_forms import Clause
from federated_optimizer.canonical.conditions.pattern_knowledge import liked
from federated_optimizer.canonical.conditions.terms import Condition, Term
from federated_optimizer.canonical.regions.region_lists import RegionList
from federated_optimizer.canonical.regions.regions import BOTTOM, TOP, Region
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Column

Owner = TypeVar("Owner", bound=Hashable)


_Case = tuple[PredicateSet, int, int]
"""A set, one of its disjunctions, and a condition of that."""


class FactLists(Generic[Owner]):
    """Regions of terms, and who has them as facts."""

    def __init__(self) -> None:
        self._lists: dict[Term, RegionList[dict[Owner, None]]] = {}
        self._counts: Counter[Term] = Counter()

    def add(self, facts: Iterable[tuple[Term, Region]], owner: Owner) -> None:
        """Add facts of an owner that has none yet."""
        for term, region in facts:
            self._counts[term] += 1
            regions = self._lists.setdefault(term, RegionList())
            owners = regions.owner(region)
            if owners is None:
                regions.add(region, {owner: None})
            else:
                owners[owner] = None

    def remove(self, facts: Iterable[tuple[Term, Region]], owner: Owner) -> None:
        """Remove facts of an owner that has them."""
        for term, region in facts:
            self._counts[term] -= 1
            regions = self._lists[term]
            owners = regions.owner(region)
            if owners is not None:
                owners.pop(owner, None)
            if not owners:
                regions.remove(region)
                if not len(regions):
                    del self._lists[term], self._counts[term]

    def implying(self, condition: Condition) -> Iterator[Owner]:
        """Yield those with a fact that implies a condition over its term; some perhaps twice."""
        regions = self._lists.get(condition.term)
        if regions is not None:
            for owners in regions.included(condition.region):
                yield from owners

    def likely_implying(self, condition: Condition) -> float:
        """Return an estimate of the number of facts that imply a condition; quick."""
        regions, count = self._lists.get(condition.term), self._counts[condition.term]
        if regions is None:
            return count
        return count * regions.most_included(condition.region) / len(regions)


class SetFacts:
    """Facts of predicate sets, none of which is contradictory."""

    def __init__(self) -> None:
        self._units: FactLists[PredicateSet] = FactLists()
        self._cases: FactLists[_Case] = FactLists()
        self._bounding: dict[int, set[PredicateSet]] = {}
        self._renaming: set[PredicateSet] = set()

    def add(self, predicates: PredicateSet) -> None:
        """Add a set that is not there."""
        self._units.add(predicates.theory.facts.items(), predicates)
        for column in _bounded_columns(predicates):
            self._bounding.setdefault(column, set()).add(predicates)
        if predicates.theory.equalities:
            self._renaming.add(predicates)
        for case, facts in _facts_of_cases(predicates):
            self._cases.add(facts, case)

    def remove(self, predicates: PredicateSet) -> None:
        """Remove a set that is there."""
        self._units.remove(predicates.theory.facts.items(), predicates)
        for column in _bounded_columns(predicates):
            self._bounding[column].discard(predicates)
            if not self._bounding[column]:
                del self._bounding[column]
        self._renaming.discard(predicates)
        for case, facts in _facts_of_cases(predicates):
            self._cases.remove(facts, case)

    def implying(self, clause: Clause) -> set[PredicateSet]:
        """Return the sets that imply a clause."""
        found = {owner for each in clause for owner in self._units.implying(each)}
        found.update(self._by_cases(clause))
        for each in clause:
            if not isinstance(each.term.only, Column):
                perhaps = self._perhaps(each.term) - found
                found.update(one for one in perhaps if one.implies_clause(clause))
        return found

    def likely_implying(self, clause: Clause) -> float:
        """Return an estimate of how many sets are to be looked at for a clause; quick."""
        found = sum(self._units.likely_implying(each) for each in clause)
        found += sum(self._cases.likely_implying(each) for each in clause)
        return found

    def _by_cases(self, clause: Clause) -> Iterator[PredicateSet]:
        """Yield the sets with a disjunction in each case of which a condition holds."""
        reached = {case for each in clause for case in self._cases.implying(each)}
        counts = Counter((predicates, number) for predicates, number, _ in reached)
        for (predicates, number), count in counts.items():
            if count == len(predicates.cases[number]):
                yield predicates

    def _perhaps(self, term: Term) -> set[PredicateSet]:
        """Return the sets that may say something of a term that is not among their facts."""
        bounding = [self._bounding.get(column, set()) for column in term.columns]
        near = set.intersection(*bounding) if bounding else set()
        return near | self._renaming


def _facts_of_cases(
    predicates: PredicateSet,
) -> Iterator[tuple[_Case, list[tuple[Term, Region]]]]:
    """Yield what holds in each case of each disjunction and not in all rows of a set."""
    always = predicates.theory.facts
    for number, cases in enumerate(predicates.cases):
        for place, case in enumerate(cases):
            facts = [fact for fact in case.facts.items() if always.get(fact[0]) != fact[1]]
            yield (predicates, number, place), facts


def _bounded_columns(predicates: PredicateSet) -> set[int]:
    """Return the columns that a set bounds to a side at least, or by a pattern."""
    found: set[int] = set()
    for term, region in predicates.theory.facts.items():
        is_bound = region.hull not in ((BOTTOM, TOP), None) or len(region.spans) > 1
        only = term.only
        if only is not None and (
            liked(only) is not None or (is_bound and isinstance(only, Column))
        ):
            found |= term.columns
    return found
