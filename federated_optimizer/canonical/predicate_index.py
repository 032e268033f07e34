"""Predicate sets by key, and which of them a further one implies or is implied by.

Three layers: conditions (a term has a value within a region), clauses (one of some conditions
holds), sets (all of some clauses hold). Equal conditions, clauses and sets are there once.

`weaker_or_equal`: the sets that a set P implies. A clause is implied by what P's theory says of the
term of one of its conditions; or, for each disjunction of P, in each of its cases: an intersection.
All that are found are united, and a set is implied if all of its clauses are among them. Each set
waits at its rarest clause, so sets whose rarest clause is not found cost nothing.

`stronger_or_equal`: the sets that imply P. For a clause p of P these are the sets a fact of which
implies one of p's conditions, and those with a disjunction each case of which does; P needs all of
its clauses: an intersection, from the clause with the fewest on.

Terms are found by hash, regions of a term in sorted lists (`region_lists`). Look-ups find what
`PredicateSet.implies` finds, but for a few sets that imply P in each case of a disjunction, in one
of them by what is no fact of it (`set_facts`).
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from federated_optimizer.canonical.normal_forms import Clause
from federated_optimizer.canonical.predicate_sets import PredicateSet
from federated_optimizer.canonical.region_lists import RegionList
from federated_optimizer.canonical.set_facts import SetFacts
from federated_optimizer.canonical.terms import Condition, Term
from federated_optimizer.canonical.theory import Theory
from streamsql.algebra.expressions import Expression

Key = TypeVar("Key", bound=Hashable)

_FEW = 8
"""How many sets are looked at one by one in the time in which one is found in a list."""


@dataclass(frozen=True, slots=True)
class _Group(Generic[Key]):
    """Keys of equal sets; the first of them is the one that is looked for."""

    predicates: PredicateSet
    keys: dict[Key, None] = field(default_factory=dict)


class PredicateIndex(Generic[Key]):
    """Predicate sets over one space of columns, by key.

    Args:
        given: Predicates that are TRUE of all rows there are; those of the sets.
    """

    def __init__(self, given: Sequence[Expression] = ()) -> None:
        self.given = tuple(given)
        self._sets: dict[Key, PredicateSet] = {}
        self._groups: dict[PredicateSet, _Group[Key]] = {}
        self._clauses: dict[Clause, dict[PredicateSet, None]] = {}
        self._waiting: dict[Clause, dict[PredicateSet, None]] = {}
        self._rarest: dict[PredicateSet, Clause] = {}
        self._regions: dict[Term, RegionList] = {}
        self._of_condition: dict[Condition, dict[Clause, None]] = {}
        self._terms: dict[frozenset[int], dict[Term, None]] = {}
        self._facts = SetFacts()
        self._always: dict[PredicateSet, None] = {}
        self._never: dict[PredicateSet, None] = {}

    def __len__(self) -> int:
        return len(self._sets)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._sets)

    def __getitem__(self, key: Key) -> PredicateSet:
        return self._sets[key]

    @property
    def clauses(self) -> Iterable[Clause]:
        """All clauses of all sets."""
        return self._clauses

    def add(self, key: Key, predicates: PredicateSet) -> None:
        """Add a set, or replace that of its key."""
        self.remove(key)
        self._sets[key] = predicates
        group = self._groups.get(predicates)
        if group is None:
            group = self._groups[predicates] = _Group(predicates)
            self._add_set(predicates)
        group.keys[key] = None

    def remove(self, key: Key) -> None:
        """Remove the set of a key, if there is one."""
        predicates = self._sets.pop(key, None)
        if predicates is None:
            return
        group = self._groups[predicates]
        del group.keys[key]
        if not group.keys:
            del self._groups[predicates]
            self._remove_set(group.predicates)

    def equal(self, predicates: PredicateSet) -> set[Key]:
        """Return the keys of the sets that are equal to a set."""
        group = self._groups.get(predicates)
        return set() if group is None else set(group.keys)

    def weaker_or_equal(self, predicates: PredicateSet) -> set[Key]:
        """Return the keys of the sets that let through every row that a set lets through."""
        if predicates.is_never:
            return set(self._sets)
        implied = self._implied(predicates.theory, predicates.columns)
        for cases in predicates.cases:
            of_cases = [self._implied(case, predicates.columns) for case in cases]
            implied |= set.intersection(*of_cases) if of_cases else set()
        found = [
            waiting
            for clause in implied
            for waiting in self._waiting.get(clause, ())
            if all(each in implied for each in waiting.clauses)
        ]
        return self._keys_of((*found, *self._always))

    def stronger_or_equal(self, predicates: PredicateSet) -> set[Key]:
        """Return the keys of the sets every row of which a set lets through."""
        if predicates.is_never:
            return self._keys_of(self._never)
        clauses = sorted(predicates.clauses, key=self._facts.most_implying)
        if not clauses:
            return set(self._sets)
        found = self._facts.implying(clauses[0])
        for clause in clauses[1:]:
            if len(found) * _FEW < self._facts.most_implying(clause):
                found = {each for each in found if each.implies_clause(clause)}
            else:
                found &= self._facts.implying(clause)
        return self._keys_of((*found, *self._never))

    def _keys_of(self, sets: Iterable[PredicateSet]) -> set[Key]:
        return {key for each in sets for key in self._groups[each].keys}

    def _implied(self, theory: Theory, columns: frozenset[int]) -> set[Clause]:
        """Return the clauses a condition of which a theory implies."""
        found: set[Clause] = set()
        for read, terms in self._terms.items():
            if not read <= columns:
                continue
            for term in terms:
                known = theory.region(term)
                if not known.is_everything:
                    for region in self._regions[term].including(known):
                        found.update(self._of_condition[Condition(term, region)])
        return found

    def _add_set(self, predicates: PredicateSet) -> None:
        if predicates.is_never:
            self._never[predicates] = None
            return
        for clause in predicates.clauses:
            if clause not in self._clauses:
                self._clauses[clause] = {}
                for condition in clause:
                    self._add_condition(condition, clause)
            self._clauses[clause][predicates] = None
        self._facts.add(predicates)
        if not predicates.clauses:
            self._always[predicates] = None
            return
        rarest = min(predicates.clauses, key=lambda clause: len(self._clauses[clause]))
        self._rarest[predicates] = rarest
        self._waiting.setdefault(rarest, {})[predicates] = None

    def _add_condition(self, condition: Condition, clause: Clause) -> None:
        clauses = self._of_condition.setdefault(condition, {})
        clauses[clause] = None
        if len(clauses) == 1:
            term = condition.term
            if term not in self._regions:
                self._regions[term] = RegionList()
                self._terms.setdefault(term.columns, {})[term] = None
            self._regions[term].add(condition.region)

    def _remove_set(self, predicates: PredicateSet) -> None:
        if predicates.is_never:
            del self._never[predicates]
            return
        self._facts.remove(predicates)
        if not predicates.clauses:
            del self._always[predicates]
            return
        rarest = self._rarest.pop(predicates)
        del self._waiting[rarest][predicates]
        if not self._waiting[rarest]:
            del self._waiting[rarest]
        for clause in predicates.clauses:
            sets = self._clauses[clause]
            del sets[predicates]
            if not sets:
                del self._clauses[clause]
                for condition in clause:
                    self._remove_condition(condition, clause)

    def _remove_condition(self, condition: Condition, clause: Clause) -> None:
        clauses = self._of_condition[condition]
        del clauses[clause]
        if clauses:
            return
        del self._of_condition[condition]
        term = condition.term
        regions = self._regions[term]
        regions.remove(condition.region)
        if not regions:
            del self._regions[term]
            del self._terms[term.columns][term]
            if not self._terms[term.columns]:
                del self._terms[term.columns]
