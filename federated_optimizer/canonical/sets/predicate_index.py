"""Predicate sets by key, and which of them a further one implies or is implied by.

Three layers: conditions (a term has a value within a region), clauses (one of some conditions
holds), sets (all of some clauses hold). Sets of the same clauses are one group, with all keys.

`weaker_or_equal`: the sets that a set P implies. A clause is implied by what P's theory says of the
term of one of its conditions; or, for a disjunction of P, in each of its cases: an intersection.
All that are found are united, and a set is implied if all of its clauses are. Each set waits at one
of its clauses, the one that the fewest other sets imply: only sets whose clause is found are looked
at. Whenever there are twice as many sets, they choose their places anew.

`stronger_or_equal`: the sets that imply P. For a clause p of P these are the sets a fact of which
implies one of p's conditions, and those with a disjunction each case of which does; P needs all of
its clauses: an intersection, from the clause with the fewest on. Registration asks for weaker sets
alone, and to find all facts of a set takes longer than all else of adding it: they are gathered
when stronger sets are asked for the first time.

Terms are found by hash, regions of a term in sorted lists (`region_lists`). Look-ups find what
`PredicateSet.implies` finds, but for a few sets that imply P in each case of a disjunction, in one
of them by what is no fact of it (`set_facts`).
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from federated_optimizer.canonical.conditions.normal_forms import Clause
from federated_optimizer.canonical.conditions.terms import Condition, Term
from federated_optimizer.canonical.conditions.theory import Theory
from federated_optimizer.canonical.regions.region_lists import RegionList
from federated_optimizer.canonical.sets.condition_shares import ConditionShares
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from federated_optimizer.canonical.sets.set_facts import SetFacts
from streamsql.algebra.expressions import Expression

Key = TypeVar("Key", bound=Hashable)

_FIRST_CHOICE = 16
"""Number of different sets at which they choose their places anew for the first time."""

_FEW = 8
"""Number of sets that are looked at one by one in the time in which one is found in a list."""


@dataclass(slots=True, eq=False)
class _Clause:
    """A clause, once for all sets that have it."""

    conditions: Clause
    sets: int = 0
    waiting: dict["_Group[Any]", None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Group(Generic[Key]):
    """Sets of the same clauses: the first of them, and the keys of all.

    Attributes:
        clauses: All of them, those first that the fewest other sets imply.
    """

    predicates: PredicateSet
    keys: dict[Key, None] = field(default_factory=dict)
    clauses: tuple[_Clause, ...] = ()


class _Facts(Generic[Key]):
    """Facts of groups. Groups of other clauses that say the same are one set in it."""

    def __init__(self) -> None:
        self._facts = SetFacts()
        self._groups: dict[PredicateSet, dict[_Group[Key], None]] = {}

    def add(self, group: _Group[Key]) -> None:
        """Add a group, which is not contradictory."""
        if group.predicates not in self._groups:
            self._facts.add(group.predicates)
        self._groups.setdefault(group.predicates, {})[group] = None

    def remove(self, group: _Group[Key]) -> None:
        """Remove a group that is there."""
        alike = self._groups[group.predicates]
        del alike[group]
        if not alike:
            del self._groups[group.predicates]
            self._facts.remove(group.predicates)

    def implying(self, wanted: Sequence[Clause]) -> Iterator[_Group[Key]]:
        """Yield the groups that imply all of some clauses, of which there are some."""
        clauses = sorted(wanted, key=self._facts.likely_implying)
        found = self._facts.implying(clauses[0])
        for clause in clauses[1:]:
            if len(found) * _FEW < self._facts.likely_implying(clause):
                found = {each for each in found if each.implies_clause(clause)}
            else:
                found &= self._facts.implying(clause)
        for each in found:
            yield from self._groups[each]


class PredicateIndex(Generic[Key]):
    """Predicate sets over one space of columns, by key.

    Args:
        given: Predicates that are TRUE of all rows there are; those of the sets.
    """

    def __init__(self, given: Sequence[Expression] = ()) -> None:
        self.given = tuple(given)
        self._sets: dict[Key, PredicateSet] = {}
        self._groups: dict[frozenset[Clause], _Group[Key]] = {}
        self._clauses: dict[Clause, _Clause] = {}
        self._lists: dict[Term, RegionList[dict[_Clause, None]]] = {}
        self._terms: dict[frozenset[int], dict[Term, None]] = {}
        self._shares = ConditionShares()
        self._facts: _Facts[Key] | None = None
        self._always: dict[_Group[Key], None] = {}
        self._never: dict[_Group[Key], None] = {}
        self._next_choice = _FIRST_CHOICE

    def __len__(self) -> int:
        return len(self._sets)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._sets)

    def __getitem__(self, key: Key) -> PredicateSet:
        return self._sets[key]

    def add(self, key: Key, predicates: PredicateSet) -> None:
        """Add a set, or replace that of its key."""
        self.remove(key)
        self._sets[key] = predicates
        group = self._groups.get(predicates.name)
        if group is None:
            group = self._groups[predicates.name] = _Group(predicates)
            self._add_group(group)
        group.keys[key] = None

    def remove(self, key: Key) -> None:
        """Remove the set of a key, if there is one."""
        predicates = self._sets.pop(key, None)
        if predicates is None:
            return
        group = self._groups[predicates.name]
        del group.keys[key]
        if not group.keys:
            del self._groups[predicates.name]
            self._remove_group(group)

    def weaker_or_equal(self, predicates: PredicateSet, most: int | None = None) -> set[Key]:
        """Return the keys of the sets that let through every row that a set lets through.

        With `most`, of bounds of one term only so many are looked at, the nearest: time does not
        grow with the number of sets that differ in one bound.
        """
        if predicates.is_never:
            return set(self._sets)
        columns = predicates.columns
        found = self._implied(predicates.theory, columns, most)
        for cases in predicates.cases:
            of_cases = [self._implied(case, columns, most) for case in cases]
            found |= set.intersection(*of_cases) if of_cases else set()
        implied = dict.fromkeys(found, True)

        def implies(clause: _Clause) -> bool:
            known = implied.get(clause)
            if known is None:
                known = implied[clause] = predicates.implies_clause(clause.conditions)
            return known

        weaker = [
            group
            for clause in found
            for group in clause.waiting
            if all(map(implies, group.clauses))
        ]
        return _keys_of((*weaker, *self._always))

    def stronger_or_equal(self, predicates: PredicateSet) -> set[Key]:
        """Return the keys of the sets every row of which a set lets through."""
        if predicates.is_never:
            return _keys_of(self._never)
        if not predicates.clauses:
            return set(self._sets)
        if self._facts is None:
            self._facts = _Facts()
            for group in self._groups.values():
                if not group.predicates.is_never:
                    self._facts.add(group)
        return _keys_of((*self._facts.implying(predicates.clauses), *self._never))

    def _implied(self, theory: Theory, columns: frozenset[int], most: int | None) -> set[_Clause]:
        """Return the clauses at which sets wait and a condition of which a theory implies."""
        found: set[_Clause] = set()
        for read, terms in self._terms.items():
            if not read <= columns:
                continue
            for term in terms:
                known = theory.region(term)
                if not known.is_everything:
                    found.update(*self._lists[term].including(known, most))
        return found

    def _add_group(self, group: _Group[Key]) -> None:
        predicates = group.predicates
        if predicates.is_never:
            self._never[group] = None
            return
        if self._facts is not None:
            self._facts.add(group)
        if not predicates.clauses:
            self._always[group] = None
            return
        self._shares.add(_conditions(group))
        found = []
        for conditions in predicates.clauses:
            clause = self._clauses.setdefault(conditions, _Clause(conditions))
            clause.sets += 1
            found.append(clause)
        group.clauses = tuple(found)
        self._wait(group)
        if len(self._groups) >= self._next_choice:
            self._next_choice *= 2
            for each in self._groups.values():
                if each.clauses:
                    self._leave(each)
                    self._wait(each)

    def _remove_group(self, group: _Group[Key]) -> None:
        predicates = group.predicates
        if predicates.is_never:
            del self._never[group]
            return
        if self._facts is not None:
            self._facts.remove(group)
        if not group.clauses:
            del self._always[group]
            return
        self._shares.remove(_conditions(group))
        self._leave(group)
        for clause in group.clauses:
            clause.sets -= 1
            if not clause.sets:
                del self._clauses[clause.conditions]

    def _wait(self, group: _Group[Key]) -> None:
        """Let a set wait at the clause that the smallest share of all sets seems to imply."""
        shares = {clause: self._shares.of(clause.conditions) for clause in group.clauses}
        group.clauses = tuple(sorted(group.clauses, key=lambda c: (shares[c], c.sets)))
        place = group.clauses[0]
        if not place.waiting:
            for each in place.conditions:
                self._add_condition(each, place)
        place.waiting[group] = None

    def _leave(self, group: _Group[Key]) -> None:
        place = group.clauses[0]
        del place.waiting[group]
        if not place.waiting:
            for each in place.conditions:
                self._remove_condition(each, place)

    def _add_condition(self, condition: Condition, clause: _Clause) -> None:
        term = condition.term
        if term not in self._lists:
            self._lists[term] = RegionList()
            self._terms.setdefault(term.columns, {})[term] = None
        owners = self._lists[term].owner(condition.region)
        if owners is None:
            self._lists[term].add(condition.region, {clause: None})
        else:
            owners[clause] = None

    def _remove_condition(self, condition: Condition, clause: _Clause) -> None:
        term = condition.term
        regions = self._lists[term]
        owners = regions.owner(condition.region)
        if owners is not None:
            owners.pop(clause, None)
        if not owners:
            regions.remove(condition.region)
        if not len(regions):
            del self._lists[term]
            del self._terms[term.columns][term]
            if not self._terms[term.columns]:
                del self._terms[term.columns]


def _conditions(group: _Group[Key]) -> Iterator[Condition]:
    return (each for clause in group.predicates.clauses for each in clause)


def _keys_of(groups: Iterable[_Group[Key]]) -> set[Key]:
    return {key for group in groups for key in group.keys}
