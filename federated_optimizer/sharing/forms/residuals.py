"""Predicates that remain to be checked of rows that satisfy weaker ones."""

from collections.abc import Sequence

from federated_optimizer.canonical.canonical_expressions import canonical as canonical_form
from federated_optimizer.canonical.implications import Implications
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from federated_optimizer.sharing.forms.exact_cache import encode, exactly_cached
from streamsql.algebra.expressions import Expression, columns_of


def predicate_set(
    predicates: tuple[Expression, ...], given: tuple[Expression, ...] = ()
) -> PredicateSet:
    """Return the set of some predicates, among rows of which others are known to hold."""
    return _set_of((predicates, given))


@exactly_cached(16_384)
def _set_of(known: tuple[tuple[Expression, ...], tuple[Expression, ...]]) -> PredicateSet:
    return PredicateSet.of(*known)


_form = exactly_cached(16_384)(canonical_form)


def residual(
    wanted: tuple[Expression, ...],
    offered: tuple[Expression, ...],
    given: tuple[Expression, ...] = (),
    *,
    canonical: bool = True,
) -> tuple[Expression, ...] | None:
    """Return what is still to be checked of rows for which the offered predicates are TRUE.

    None if the wanted predicates do not imply all offered ones, as far as can be proven.

    Args:
        wanted: What must be TRUE of a row.
        offered: What is TRUE of all rows that are there.
        given: What is TRUE of all rows there are; see `known_times`.
        canonical: Whether predicates that are written otherwise may follow from each other.
    """
    if not canonical:
        ours, theirs = {encode(p): p for p in wanted}, {encode(p) for p in offered}
        rest = tuple(p for name, p in ours.items() if name not in theirs)
        return rest if theirs <= ours.keys() else None
    if not predicate_set(wanted, given).implies(predicate_set(offered, given)):
        return None
    return remaining(wanted, offered)


def remaining(
    wanted: Sequence[Expression], offered: Sequence[Expression]
) -> tuple[Expression, ...]:
    """Return those of some predicates that do not follow from weaker ones, which they imply."""
    forms = {_form(p) for p in offered}
    rest = [p for p in {encode(p): p for p in wanted}.values() if _form(p) not in forms]
    # Mostly these are comparisons that were derived from others of the same columns. A whole set
    # of predicates takes milliseconds to be read; what is missed here is checked once too often.
    for predicate in rest[::-1]:
        read = columns_of(predicate)
        near = [p for p in offered if not read.isdisjoint(columns_of(p))]
        others = [p for p in rest if p is not predicate]
        if predicate in Implications([*near, *others]):
            rest = others
    return tuple(rest)
