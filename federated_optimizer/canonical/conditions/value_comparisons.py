"""Comparisons of values in no arithmetic, by their orders, limits and parts."""

from itertools import product

from federated_optimizer.canonical.conditions.scaled_values import ScaledValues
from federated_optimizer.canonical.conditions.terms import Term, term_of
from federated_optimizer.canonical.linear_comparisons import Number, exact
from federated_optimizer.canonical.regions import value_orders
from federated_optimizer.canonical.regions.regions import Domain, Region, before, behind, region
from streamsql.algebra.expressions import Call, Expression, Literal

_EXACT_DOUBLES = 2**53


def order_of_values(
    term: Term,
    orders: value_orders.Orders,
    stated: value_orders.Orders,
    parts: ScaledValues,
    regions: dict[Term, Region],
) -> Region:
    """Return how the two values of an order may stand.

    Args:
        term: The order.
        orders: Of values of one type, closed.
        stated: Those that were stated, of mixed types as well.
        parts: The values of which orders are known.
        regions: What is known of values.
    """
    (left, _), (right, _) = term.parts
    known = value_orders.order_region(orders, left, right)
    if isinstance(left, Call) or isinstance(right, Call):
        known = known.intersection(_order_of_parts({**stated, **orders}, parts, left, right))
    first, second = [constant_region(each) or regions.get(term_of(each)) for each in (left, right)]
    if first is None or second is None or first.hull is None or second.hull is None:
        return known
    if first.nan or second.nan or first.null or second.null:
        return known
    if left.dtype != right.dtype and not (_is_exact(first) and _is_exact(second)):
        return known
    spans = []
    if first.hull[0][:2] < second.hull[1][:2]:
        spans.append((before(-1), behind(-1)))
    if first.intersection(_as(second, first.domain)).spans:
        spans.append((before(0), behind(0)))
    if second.hull[0][:2] < first.hull[1][:2]:
        spans.append((before(1), behind(1)))
    return known.intersection(term.within(region(Domain.ORDER, spans)))


def _order_of_parts(
    orders: value_orders.Orders, parts: ScaledValues, left: Expression, right: Expression
) -> Region:
    """Return how two values may stand of which others are parts of the same."""
    found: value_orders.Orders = {}
    for low, high in ((left, right), (right, left)):
        above = (low, *parts.kept_beyond(low, above=True))
        below = (high, *parts.kept_beyond(high, above=False))
        for pair in product(above, below):
            strict = orders.get(pair)
            if strict is not None:
                found[low, high] = strict or found.get((low, high), False)
    return value_orders.order_region(found, left, right)


def constant_region(value: Expression) -> Region | None:
    """Return the region of a constant; None for NULL, truth values, and all but constants."""
    if not isinstance(value, Literal):
        return None
    number = exact(value.value)
    if number is None:
        return None
    return region(term_of(value).domain, [(before(number), behind(number))])


def is_small(limit: Number) -> bool:
    """Return whether a number compares with numbers of both types exactly."""
    return not isinstance(limit, str) and -_EXACT_DOUBLES < limit < _EXACT_DOUBLES


def _is_exact(known: Region) -> bool:
    """Return whether numbers of both types compare exactly with all ends of a region."""
    return all(rank or is_small(limit) for span in known.spans for rank, limit, _ in span)


def _as(known: Region, domain: Domain) -> Region:
    return Region(domain, known.spans)
