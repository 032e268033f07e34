"""Conjunctions of predicates as sets: which rows they let through, and which imply others.

A row is let through where every predicate is TRUE, as a filter has it: NULL is as FALSE.

A set is read as clauses, disjunctions of conditions over terms (`truth_conditions`). Those of one
condition make a theory (`theory`), by which the others lose conditions that cannot hold, and go if
they hold anyway. A set implies another one if each clause of that follows: from the theory, or,
for a clause of its own with several conditions, from the theory with each of them. Whatever is
found holds for every row; not everything that holds is found, and what is not stays different.

`given` are facts of all rows there are, such as the years of event times: with these,
`b <= a + INTERVAL '10 s'` implies the same with 20 s. For integers without limits it does not:
near 2^63 the greater sum is NULL where the less one is not.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

from federated_optimizer.canonical.canonical_expressions import canonical_form, is_large
from federated_optimizer.canonical.conditions.equal_terms import EqualColumns
from federated_optimizer.canonical.conditions.normal_forms import (
    NEVER,
    Clause,
    NormalForm,
    TooManyClausesError,
    is_stronger,
    without_weaker,
)
from federated_optimizer.canonical.conditions.terms import Condition, Term
from federated_optimizer.canonical.conditions.theory import Theory
from federated_optimizer.canonical.conditions.truth_conditions import opaque, where
from federated_optimizer.canonical.regions.regions import Region
from streamsql.algebra.expressions import Column, Expression, conjuncts

MAX_MINIMIZED = 24
"""Most conditions among which redundant ones are looked for: the time grows with the square."""

MAX_CASES = 256
"""Most conditions of disjunctions for which a theory is made each."""


class PredicateSet:
    """Predicates that are all to be TRUE. Equal sets let the same rows through.

    Sets that let the same rows through are equal as far as that is found.

    Args:
        clauses: Of which each is to hold.
        sources: The predicates as they were given, split at AND.
        given: Predicates that are TRUE of all rows there are.

    Attributes:
        is_never: Whether it is known to let no row through.
        theory: What its single conditions say together.
        disjunctions: Its clauses of several conditions, each of which may hold.
    """

    def __init__(
        self,
        clauses: Iterable[Clause],
        sources: Sequence[Expression] = (),
        given: Sequence[Expression] = (),
    ) -> None:
        self.sources = tuple(sources)
        self.given = tuple(given)
        self._background = _clauses(given)
        self._units: dict[Term, Region] = {}
        self.disjunctions: tuple[Clause, ...] = ()
        self.theory, self.is_never = self._read(list(clauses))

    @classmethod
    def of(
        cls, predicates: Iterable[Expression], given: Sequence[Expression] = ()
    ) -> "PredicateSet":
        """Return the set of some predicates; none let every row through."""
        sources = dict.fromkeys(part for each in predicates for part in conjuncts(each))
        return cls(_clauses(sources), tuple(sources), given)

    def _read(self, waiting: list[Clause]) -> tuple[Theory, bool]:
        while True:
            for clause in waiting:
                self._take(clause)
            theory = Theory((*_single(self._background), *self._conditions()))
            if theory.is_contradictory or frozenset() in self.disjunctions:
                return theory, True
            waiting = [
                narrowed
                for clause in self.disjunctions
                if not theory.implies_any(clause)
                for narrowed in [_narrowed(clause, theory)]
            ]
            self.disjunctions = tuple(clause for clause in waiting if len(clause) != 1)
            waiting = [clause for clause in waiting if len(clause) == 1]
            if frozenset() in self.disjunctions:
                return theory, True
            if not waiting:
                self.disjunctions = without_weaker(self.disjunctions)
                return theory, False

    def _take(self, clause: Clause) -> None:
        if len(clause) != 1:
            self.disjunctions = (*self.disjunctions, clause)
            return
        (only,) = clause
        old = self._units.get(only.term)
        region = only.region if old is None else only.term.within(old.intersection(only.region))
        self._units[only.term] = region

    def _conditions(self) -> list[Condition]:
        return [Condition(term, region) for term, region in self._units.items()]

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Its single conditions, without those that follow from the others."""
        background = _single(self._background)
        return tuple(
            each
            for component in _components(self._conditions())
            for each in _without_weaker(tuple(component), _about(component, background))
        )

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """Clauses that say all of it, none of which implies another one."""
        if self.is_never:
            return NEVER
        return (*(frozenset([each]) for each in self.conditions), *self.disjunctions)

    @cached_property
    def name(self) -> frozenset[Clause]:
        """Its clauses, in no order."""
        return frozenset(self.clauses)

    @cached_property
    def columns(self) -> frozenset[int]:
        """The columns that it reads, in conditions that follow from others, too."""
        of_clauses = (each for clause in self.disjunctions for each in clause)
        return frozenset().union(*(c.term.columns for c in (*self._conditions(), *of_clauses)))

    @cached_property
    def cases(self) -> tuple[tuple[Theory, ...], ...]:
        """A theory for each condition of a disjunction, of as many as make few of them."""
        made = (
            tuple(self.theory.with_one_more(each) for each in clause)
            for clause in self._looked_at()
        )
        return tuple(tuple(case for case in cases if not case.is_contradictory) for cases in made)

    def _looked_at(self) -> Iterator[Clause]:
        """Yield the first disjunctions, as far as that makes few cases."""
        count = 0
        for clause in self.disjunctions:
            count += len(clause)
            if count <= MAX_CASES:
                yield clause

    @cached_property
    def _key(self) -> object:
        if self.is_never:
            return None
        theory = self.theory
        if len(self.conditions) < len(self._units):
            theory = Theory((*_single(self._background), *self.conditions))
        facts = theory.facts
        base = {term: region for term, region in facts.items() if isinstance(term.only, Column)}
        simple = Theory(Condition(term, region) for term, region in base.items())
        equal = EqualColumns(theory.equalities, {})
        kept = {Condition(term, region) for term, region in base.items()}
        for term, region in facts.items():
            each = Condition(term, region)
            if term in base or simple.implies(each):
                continue
            renamed = equal.renamed(term) if len(term.parts) == 1 else None
            kept.add(each if renamed is None else Condition(renamed.term, region))
        return frozenset(kept), frozenset(self.disjunctions)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PredicateSet)
            and self._hash == other._hash
            and self._key == other._key
        )

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"PredicateSet({self.clauses!r})"

    def implies(self, other: "PredicateSet") -> bool:
        """Return whether every row that this set lets through is let through by the other one.

        False: it may not be.
        """
        return self.implies_all(other.clauses)

    def implies_all(self, clauses: Iterable[Clause]) -> bool:
        """Return whether all of some clauses hold for every row that is let through."""
        return all(self.implies_clause(clause) for clause in clauses)

    def implies_clause(self, clause: Clause) -> bool:
        """Return whether for every row that is let through a condition of a clause holds."""
        if self.is_never or self.theory.implies_any(clause):
            return True
        if any(is_stronger(each, clause) for each in self.disjunctions):
            return True
        return bool(self.cases) and any(
            all(case.implies_any(clause) for case in cases) for cases in self.cases
        )

    def residual(self, other: "PredicateSet") -> tuple[Expression, ...]:
        """Return predicates that, with the other set, let through just the rows of this one.

        They are some of `sources`, none of which follows from the others and the other set.

        Args:
            other: Implied by this set.

        Raises:
            ValueError: This set does not imply the other one.
        """
        if not self.implies(other):
            raise ValueError("a residual is of a set that implies the other one")
        # What follows from the other set alone goes first: that needs no further theory, and leaves
        # few sources, each of which costs one: 15 of 20 at a chain of five joins go here.
        kept = [each for each in self.sources if not other.implies_all(_clauses([each]))]
        for source in reversed(kept) if len(kept) > 1 else ():
            rest = [each for each in kept if each is not source]
            clauses = (*other.clauses, *_clauses(rest))
            if PredicateSet(clauses, given=self.given).implies_all(_clauses([source])):
                kept = rest
        return tuple(kept)


def _single(clauses: Iterable[Clause]) -> list[Condition]:
    return [each for clause in clauses if len(clause) == 1 for each in clause]


def _components(conditions: Sequence[Condition]) -> list[list[Condition]]:
    """Return conditions apart that share no column, directly or through others."""
    found: list[tuple[frozenset[int], list[Condition]]] = []
    for each in conditions:
        columns, together = each.term.columns, [each]
        apart = []
        for other, members in found:
            if columns.isdisjoint(other):
                apart.append((other, members))
            else:
                columns, together = columns | other, [*members, *together]
        found = [*apart, (columns, together)]
    return [members for _, members in found]


def _about(
    conditions: Sequence[Condition], background: Sequence[Condition]
) -> tuple[Condition, ...]:
    """Return what is known of all rows of the columns that conditions read."""
    columns = frozenset[int]().union(*(each.term.columns for each in conditions))
    return tuple(each for each in background if not columns.isdisjoint(each.term.columns))


@lru_cache(maxsize=4_096)
def _without_weaker(
    conditions: tuple[Condition, ...], known: tuple[Condition, ...]
) -> Sequence[Condition]:
    """Return conditions without those that follow from the others and what is known of all rows.

    Queries of a kind differ in a few of them: those of other columns are looked at once.
    """
    columns = frozenset[int]().union(*(each.term.columns for each in conditions))
    # Each test makes a theory: those of 20 conditions of a chain of joins took 40 % of registering.
    if len(conditions) > MAX_MINIMIZED or (len(conditions) == 1 and columns and not known):
        return conditions
    kept = list(conditions)
    for each in sorted(kept, key=lambda c: c.term.order, reverse=True):
        if _is_alone(each, [*known, *kept]):
            continue
        others = [other for other in kept if other is not each]
        if Theory((*known, *others)).implies(each):
            kept = others
    return kept


def _is_alone(condition: Condition, together: Sequence[Condition]) -> bool:
    """Return whether nothing else keeps a column of a condition from being NULL, but it does.

    Then it does not follow from the others.
    """
    if condition.region.null or not _is_of_columns(condition.term):
        return False
    rest = [
        each
        for each in together
        if each is not condition and not (each.region.null and _is_of_columns(each.term))
    ]
    read = frozenset[int]().union(*(each.term.columns for each in rest))
    return not condition.term.columns <= read


def _is_of_columns(term: Term) -> bool:
    """Return whether a term is NULL wherever a column is that it reads."""
    return all(isinstance(part, Column) for part, _ in term.parts)


def _narrowed(clause: Clause, theory: Theory) -> Clause:
    """Return a clause without values, and without conditions, that cannot be."""
    found = []
    for each in clause:
        region = each.term.within(each.region.intersection(theory.region(each.term)))
        if not region.is_empty:
            found.append(Condition(each.term, region))
    return frozenset(found)


def _clauses(predicates: Iterable[Expression]) -> list[Clause]:
    return [clause for predicate in predicates for clause in _form(canonical_form(predicate))]


def _form(predicate: Expression) -> NormalForm:
    return opaque(predicate, truth=True) if is_large(predicate) else _read_form(predicate)


# Most predicates of a query are those of others. Canonical forms are equal only if they say the
# same: they tell -0.0 from 0.0.
@lru_cache(maxsize=4_096)
def _read_form(predicate: Expression) -> NormalForm:
    try:
        return where(predicate, truth=True)
    except TooManyClausesError:
        return opaque(predicate, truth=True)
