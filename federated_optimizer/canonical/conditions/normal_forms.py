"""Conjunctions of disjunctions of conditions: how they are joined, within a bound on their size.

A clause has one condition a term: those of one term are united, and a clause that lets everything
pass is left out.
"""

from collections.abc import Iterable, Sequence

from federated_optimizer.canonical.conditions.terms import Condition, Term
from federated_optimizer.canonical.regions.regions import Region

MAX_CLAUSES = 64
"""Most clauses of one predicate: a disjunction of conjunctions multiplies them."""

Clause = frozenset[Condition]
NormalForm = tuple[Clause, ...]

ALWAYS: NormalForm = ()
NEVER: NormalForm = (frozenset(),)


class TooManyClausesError(Exception):
    """A normal form has more clauses than are kept."""


def clause_of(conditions: Iterable[Condition]) -> Clause | None:
    """Return a disjunction of conditions; None if it is always TRUE."""
    regions: dict[Term, Region] = {}
    for each in conditions:
        if not each.region.is_empty:
            old = regions.get(each.term)
            regions[each.term] = each.region if old is None else old.union(each.region)
    if any(region.is_everything for region in regions.values()):
        return None
    return frozenset(Condition(term, region) for term, region in regions.items())


def one(condition: Condition) -> NormalForm:
    """Return a single condition as a normal form."""
    clause = clause_of([condition])
    return ALWAYS if clause is None else (clause,)


def both(forms: Iterable[NormalForm]) -> NormalForm:
    """Return the conjunction of normal forms.

    Raises:
        TooManyClausesError: It has too many clauses.
    """
    return _bounded(dict.fromkeys(clause for form in forms for clause in form))


def either(forms: Sequence[NormalForm]) -> NormalForm:
    """Return the disjunction of normal forms.

    Raises:
        TooManyClausesError: It has too many clauses.
    """
    found: NormalForm = NEVER
    for form in forms:
        made = (clause_of((*first, *second)) for first in found for second in form)
        found = _bounded(dict.fromkeys(clause for clause in made if clause is not None))
    return found


def _bounded(clauses: Iterable[Clause]) -> NormalForm:
    found = tuple(clauses)
    if len(found) > 1:
        found = without_weaker(found)
    if len(found) > MAX_CLAUSES:
        raise TooManyClausesError
    return found


def without_weaker(clauses: Sequence[Clause]) -> NormalForm:
    """Return the clauses that no other one implies condition by condition; of equal ones one."""
    kept: list[Clause] = []
    for clause in sorted(clauses, key=len):
        if not any(is_stronger(other, clause) for other in kept):
            kept = [other for other in kept if not is_stronger(clause, other)]
            kept.append(clause)
    return tuple(kept)


def is_stronger(clause: Clause, other: Clause) -> bool:
    """Return whether each condition of a clause implies one of another clause over its term."""
    if len(clause) > len(other):
        return False
    regions = {each.term: each.region for each in other}
    for each in clause:
        region = regions.get(each.term)
        if region is None or not region.includes(each.region):
            return False
    return True
