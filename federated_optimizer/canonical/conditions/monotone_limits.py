"""Limits of monotone functions of one column: the function computed at limits of the column.

Rounding is monotone, so what an engine computes at a limit is a limit of what it computes; see
`linear_comparisons`.
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from federated_optimizer.canonical.conditions.terms import Term, term_of
from federated_optimizer.canonical.linear_comparisons import exact, is_rising
from federated_optimizer.canonical.regions.regions import (
    BOTTOM,
    TOP,
    Cut,
    Region,
    before,
    behind,
    region,
)
from streamsql.algebra.expressions import Column, Expression, Literal, map_columns, walk
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import DataType


def computed_limits(function: Expression, regions: Mapping[Term, Region]) -> Region | None:
    """Return where a function has its values if it has any; None if nothing is known.

    Args:
        function: Of numbers.
        regions: What is known of its column, by term.
    """
    columns = {node for node in walk(function) if isinstance(node, Column)}
    rising = is_rising(function)
    if rising is None or len(columns) != 1:
        return None
    (column,) = columns
    known = regions.get(term_of(column))
    if known is None or known.hull is None or known.nan or known.null:
        return None
    ends = [_at(function, column, cut) for cut in known.hull]
    low, high = ends if rising else ends[::-1]
    if low is None and high is None:
        return None
    span = (BOTTOM if low is None else before(low), TOP if high is None else behind(high))
    domain = term_of(function).domain
    return region(domain, [span] if span[0] < span[1] else [])


def _at(function: Expression, column: Column, cut: Cut) -> int | Fraction | None:
    """Return the function at a limit of its column; None if it has no value there."""
    rank, limit, _ = cut
    if rank or isinstance(limit, str):
        return None
    if column.dtype == DataType.DOUBLE:
        value: float = float(limit)
        if value != limit:
            return None
    else:
        value = int(limit)
    result = compile_expression(map_columns(function, lambda _: Literal(value, column.dtype)))(())
    if result is None or not math.isfinite(result):
        return None
    found = exact(result)
    return None if isinstance(found, str) else found
