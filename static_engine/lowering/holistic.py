"""Aggregates that need all values of a group, as plain functions that Spark's workers run.

Nothing of ours is imported here: the functions are sent to workers by value. Values of a group are
of one type and none is NULL.
"""

import json
import math
from fractions import Fraction
from typing import Any


def variance(values: list[Any] | None, sample: bool) -> float | None:
    """Return the correctly rounded variance of numbers, or None: too few, or out of range.

    Args:
        values: Integers or finite doubles.
        sample: Whether to divide by n - 1.
    """
    count = len(values or ())
    freedom = count - sample
    if not values or freedom <= 0:
        return None
    # As whole multiples of one power of two sums are of integers, and exact.
    ratios = [value.as_integer_ratio() for value in values]
    unit = max(denominator for _, denominator in ratios)
    whole = [numerator * (unit // denominator) for numerator, denominator in ratios]
    total, squares = sum(whole), sum(number * number for number in whole)
    try:
        return float(Fraction(count * squares - total * total, count * freedom * unit * unit))
    except OverflowError:
        return None


def deviation(values: list[Any] | None, sample: bool) -> float | None:
    """Return the square root of the rounded variance."""
    found = variance(values, sample)
    return None if found is None else math.sqrt(found)


def percentile(values: list[Any] | None, fraction: float) -> float | None:
    """Return the value at a fraction of the ordered values, between neighbours in doubles."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * fraction
    below = math.floor(place)
    low = float(ordered[below])
    if place == below:
        return low
    found = low + (float(ordered[below + 1]) - low) * (place - below)
    return found if math.isfinite(found) else None


def array_text(values: list[Any] | None) -> str | None:
    """Return the values in row order as a JSON array; a negative zero is 0.0."""
    if not values:
        return None
    plain = [value + 0.0 if isinstance(value, float) else value for value in values]
    return json.dumps(sorted(plain), separators=(",", ":"), ensure_ascii=False)
