"""Predicates that remain to be checked of rows that satisfy weaker ones."""

from collections.abc import Callable, Sequence

from federated_optimizer.canonical.canonical_expressions import canonical_form
from federated_optimizer.canonical.exact_cache import encode, exactly_cached
from federated_optimizer.canonical.implications import Implications
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Column, Expression, columns_of, map_columns

IsShown = Callable[[Expression], bool]
"""Returns whether a predicate can be checked of the rows that are there."""


def all_are_shown(_predicate: Expression) -> bool:
    """Return that a predicate can be checked, whatever it reads."""
    return True


def predicate_set(
    predicates: tuple[Expression, ...], given: tuple[Expression, ...] = ()
) -> PredicateSet:
    """Return the set of some predicates, among rows of which others are known to hold."""
    return _set_of((_in_order(predicates), given))


@exactly_cached(16_384)
def _in_order(predicates: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return predicates in one order, without names: a set is read once however it is written."""
    named = {encode(each): each for each in map(_nameless, predicates)}
    return tuple(named[name] for name in sorted(named))


def _nameless(predicate: Expression) -> Expression:
    return map_columns(predicate, lambda c: Column(c.position, "", c.dtype))


@exactly_cached(16_384)
def _set_of(known: tuple[tuple[Expression, ...], tuple[Expression, ...]]) -> PredicateSet:
    return PredicateSet.of(*known)


def residual(
    wanted: tuple[Expression, ...],
    offered: tuple[Expression, ...],
    given: tuple[Expression, ...] = (),
    *,
    canonical: bool = True,
    is_shown: IsShown = all_are_shown,
) -> tuple[Expression, ...] | None:
    """Return what is still to be checked of rows for which the offered predicates are TRUE.

    None if the wanted predicates do not imply all offered ones, as far as can be proven, or if one
    that remains cannot be checked.

    Args:
        wanted: What must be TRUE of a row.
        offered: What is TRUE of all rows that are there.
        given: What is TRUE of all rows there are; see `known_times`.
        canonical: Whether predicates that are written otherwise may follow from each other.
        is_shown: Whether a predicate can be checked; `Implications` decide which remain.
    """
    if not canonical:
        ours, theirs = {encode(p): p for p in wanted}, {encode(p) for p in offered}
        rest = tuple(p for name, p in ours.items() if name not in theirs)
        return rest if theirs <= ours.keys() else None
    if not predicate_set(wanted, given).implies(predicate_set(offered, given)):
        return None
    return remaining(wanted, offered, is_shown)


def remaining(
    wanted: Sequence[Expression], offered: Sequence[Expression], is_shown: IsShown = all_are_shown
) -> tuple[Expression, ...] | None:
    """Return those of some predicates that do not follow from weaker ones, which they imply.

    None if one of them cannot be checked.
    """
    forms = {canonical_form(p) for p in offered}
    rest = [p for p in {encode(p): p for p in wanted}.values() if canonical_form(p) not in forms]

    def follows(predicate: Expression) -> bool:
        # Mostly these are comparisons that were derived from others of the same columns. A whole
        # set of predicates takes milliseconds to be read; what is missed is checked once too often.
        read = columns_of(predicate)
        near = [p for p in offered if not read.isdisjoint(columns_of(p))]
        return predicate in Implications([*near, *(p for p in rest if p is not predicate)])

    # Most offers are results, which do not show what is to be checked: that is found out first.
    if not all(is_shown(predicate) or follows(predicate) for predicate in rest):
        return None
    for predicate in rest[::-1]:
        if follows(predicate):
            rest = [p for p in rest if p is not predicate]
    return tuple(rest)
