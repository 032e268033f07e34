"""Arithmetic that must be exact, as plain functions that Spark's Python workers run.

Nothing of ours is imported here: the functions are sent to workers by value.
"""

import math
from decimal import Decimal
from fractions import Fraction


def exact_sum(values: list[float] | None) -> float | None:
    """Return the correctly rounded sum of finite numbers, or None: no numbers, or out of range."""
    if not values:
        return None
    try:
        return math.fsum(values)
    except OverflowError:  # of an intermediate sum, so the total may still fit
        return _rounded(sum(map(Fraction, values)))


def exact_mean(values: list[float] | None) -> float | None:
    """Return the correctly rounded mean of finite numbers, or None if there are none."""
    if not values:
        return None
    # The exact sum as an expansion: each part is the rounded rest, so a few parts suffice.
    rest = list(values)
    total = Fraction(0)
    try:
        while part := math.fsum(rest):
            total += Fraction(part)
            rest.append(-part)
    except OverflowError:
        total = Fraction(sum(map(Fraction, values)))
    return _rounded(total / len(values))


def exact_ratio(total: Decimal | None, count: int) -> float | None:
    """Return the correctly rounded quotient of an integral sum and a count."""
    return None if total is None or not count else int(total) / count


def _rounded(total: Fraction | int) -> float | None:
    try:
        return float(total)
    except OverflowError:
        return None
