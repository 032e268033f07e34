"""Predicates that follow from others."""

from collections.abc import Sequence
from functools import cached_property, lru_cache

from federated_optimizer.canonical.column_ranges import Comparisons, Ranges
from federated_optimizer.canonical.linear_comparisons import Bound, readings_of
from streamsql.algebra.expressions import Call, Column, Expression, map_columns
from streamsql.data.types import DataType


class Implications:
    """What follows from predicates that are all TRUE; not everything is found."""

    def __init__(self, predicates: Sequence[Expression]) -> None:
        self._predicates = predicates

    def __contains__(self, predicate: Expression) -> bool:
        if is_plain(predicate) and self._is_compared(predicate):
            return True
        # Names of equal columns take comparisons of all; most predicates have none of their shape.
        if _shape(predicate) not in self._shapes:
            return False
        return named(predicate, self._equal) in self._named

    def _is_compared(self, predicate: Expression) -> bool:
        # a > 3 does not imply a * 2 > 5, which is NULL where it does not fit 64 bits.
        bounds = bounds_of(predicate)
        if bounds and is_within(self._known.ranges(shifted=True), bounds, or_equal=True):
            return True
        match predicate:
            case Call(function="=" | "<" | "<=" as name, arguments=(Column() as a, Column() as b)):
                order = self._known.order(a.position, b.position)
                return order is not None and order in _IMPLYING[name]
            case _:
                return False

    @cached_property
    def _known(self) -> Comparisons:
        return Comparisons(self._predicates)

    @cached_property
    def _shapes(self) -> set[Expression]:
        return set(map(_shape, self._predicates))

    @cached_property
    def _equal(self) -> dict[int, list[int]]:
        return equal_columns(self._predicates, self._known)

    @cached_property
    def _named(self) -> set[Expression]:
        return {named(each, self._equal) for each in self._predicates}


@lru_cache(maxsize=16_384)
def _shape(predicate: Expression) -> Expression:
    """Return a predicate without what tells its columns apart, but for their types."""
    return map_columns(predicate, lambda c: Column(0, "", c.dtype))


_IMPLYING = {"=": ("=",), "<": ("<",), "<=": ("<=", "<", "=")}


def is_plain(predicate: Expression) -> bool:
    """Return whether a predicate is a function of columns and constants as they are."""
    return isinstance(predicate, Call) and not any(
        isinstance(argument, Call) for argument in predicate.arguments
    )


# Chains of joins ask 200 times for the limits of 30 predicates.
@lru_cache(maxsize=4_096)
def bounds_of(predicate: Expression) -> Ranges:
    """Return the limits that a predicate consists of; none if it says anything else."""
    readings = readings_of(predicate)
    if not readings or not all(isinstance(reading, Bound) for reading in readings):
        return {}
    return Comparisons([predicate]).bounds


def is_within(inner: Ranges, outer: Ranges, *, or_equal: bool) -> bool:
    """Whether what keeps to some limits keeps to others, too."""
    if inner == outer:
        return or_equal
    return all(
        place in inner
        and (inner[place] == limit or inner[place].is_stronger(limit, upper=place[1]))
        for place, limit in outer.items()
    )


def equal_columns(facts: Sequence[Expression], known: Comparisons) -> dict[int, list[int]]:
    """Return for each column all that are the same as it, in order, if there are others."""
    pairs = [(known.columns[low], known.columns[high]) for low, high in known.equal_pairs]
    for fact in facts:  # BOOLEAN has no order
        match fact:
            case Call(function="=", arguments=(Column() as a, Column() as b)):
                pairs.append((a, b))
            case _:
                pass
    equal: dict[int, list[int]] = {}
    for a, b in pairs:
        if a.dtype == b.dtype != DataType.DOUBLE:
            first, second = (equal.get(c.position, [c.position]) for c in (a, b))
            united = sorted({*first, *second})
            equal.update(dict.fromkeys(united, united))
    return equal


def named(fact: Expression, equal: dict[int, list[int]]) -> Expression:
    """Return a fact with one column for all that are the same."""

    def first(column: Column) -> Expression:
        return Column(equal.get(column.position, [column.position])[0], "", column.dtype)

    return map_columns(fact, first)
