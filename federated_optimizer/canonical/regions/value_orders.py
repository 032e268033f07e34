"""Orders of values in no arithmetic, closed: from a < b and b <= c follows a < c."""

from collections.abc import Mapping
from functools import lru_cache

from federated_optimizer.canonical.regions.regions import (
    BOTTOM,
    TOP,
    Cut,
    Domain,
    Region,
    before,
    behind,
    region,
)
from streamsql.algebra.expressions import Expression

MAX_VALUES = 12
"""Most values whose orders are combined."""

Orders = dict[tuple[Expression, Expression], bool]
"""Pairs of which the first is at most the second: True if it is less."""


def orders_of(first: Expression, second: Expression, values: Region) -> Orders:
    """Return what the order of two values says; nothing where they may be in none."""
    if values.nan or values.null or not values.spans:
        return {}
    numbers = set(values.points(3) or [])
    found: Orders = {}
    if 1 not in numbers:
        found[first, second] = 0 not in numbers
    if -1 not in numbers:
        found[second, first] = 0 not in numbers
    return found


def closed(orders: Mapping[tuple[Expression, Expression], bool]) -> Orders | None:
    """Return all orders that follow; None if they contradict."""
    found = dict(orders)
    nodes = list(dict.fromkeys(value for pair in found for value in pair))
    if len(nodes) > MAX_VALUES:
        return found
    for middle in nodes:
        for first in nodes:
            if (one := found.get((first, middle))) is None:
                continue
            for second in nodes:
                if (other := found.get((middle, second))) is None:
                    continue
                if one or other or (first, second) not in found:
                    found[first, second] = one or other
    if any(strict and first == second for (first, second), strict in found.items()):
        return None
    return {pair: strict for pair, strict in found.items() if pair[0] != pair[1]}


def order_region(orders: Orders, first: Expression, second: Expression) -> Region:
    """Return which orders two values may have."""
    return _order_region(orders.get((first, second)), orders.get((second, first)))


@lru_cache
def _order_region(below: bool | None, above: bool | None) -> Region:
    low, high = BOTTOM, TOP
    if below is not None:
        high = behind(-1) if below else behind(0)
    if above is not None:
        low = before(1) if above else before(0)
    known = below is not None or above is not None
    spans = ((low, high),) if low < high else ()
    return region(Domain.ORDER, spans, nan=not known, null=not known)


def passed_limit(cut: Cut, *, strict: bool, upper: bool) -> Cut:
    """Return the limit that a value has which is below, or above, one with a limit."""
    rank, value, _ = cut
    if rank or not strict:
        return cut
    return before(value) if upper else behind(value)
