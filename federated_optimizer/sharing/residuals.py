"""Predicates that remain to be checked of rows that satisfy weaker ones."""

from functools import lru_cache

from federated_optimizer.canonical.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Expression


@lru_cache(maxsize=16_384)
def predicate_set(predicates: tuple[Expression, ...]) -> PredicateSet:
    """Return the set of some predicates."""
    return PredicateSet.of(predicates)


def residual(
    wanted: tuple[Expression, ...], offered: tuple[Expression, ...], *, canonical: bool = True
) -> tuple[Expression, ...] | None:
    """Return what is still to be checked of rows for which the offered predicates are TRUE.

    None if the wanted predicates do not imply all offered ones, as far as can be proven.

    Args:
        wanted: What must be TRUE of a row.
        offered: What is TRUE of all rows that are there.
        canonical: Whether predicates that are written otherwise may follow from each other.
    """
    if not canonical:
        return tuple(p for p in wanted if p not in offered) if {*offered} <= {*wanted} else None
    ours, theirs = predicate_set(wanted), predicate_set(offered)
    return ours.residual(theirs) if ours.implies(theirs) else None
