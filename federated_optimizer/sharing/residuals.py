"""Predicates that remain to be checked of rows that satisfy weaker ones."""

from collections.abc import Sequence
from functools import lru_cache

from federated_optimizer.canonical.canonical_expressions import canonical as canonical_form
from federated_optimizer.canonical.implications import Implications
from federated_optimizer.canonical.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Expression, columns_of


@lru_cache(maxsize=16_384)
def predicate_set(
    predicates: tuple[Expression, ...], given: tuple[Expression, ...] = ()
) -> PredicateSet:
    """Return the set of some predicates, among rows of which others are known to hold."""
    return PredicateSet.of(predicates, given)


_form = lru_cache(maxsize=16_384)(canonical_form)


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
        return tuple(p for p in wanted if p not in offered) if {*offered} <= {*wanted} else None
    if not predicate_set(wanted, given).implies(predicate_set(offered, given)):
        return None
    return remaining(wanted, offered)


def remaining(
    wanted: Sequence[Expression], offered: Sequence[Expression]
) -> tuple[Expression, ...]:
    """Return those of some predicates that do not follow from weaker ones, which they imply."""
    forms = {_form(p) for p in offered}
    rest = [p for p in dict.fromkeys(wanted) if _form(p) not in forms]
    # Mostly these are comparisons that were derived from others of the same columns. A whole set
    # of predicates takes milliseconds to be read; what is missed here is checked once too often.
    for predicate in rest[::-1]:
        read = columns_of(predicate)
        near = [p for p in offered if not read.isdisjoint(columns_of(p))]
        others = [p for p in rest if p is not predicate]
        if predicate in Implications([*near, *others]):
            rest = others
    return tuple(rest)
