"""Aggregates over all values of a group, as plain functions that Spark's Python workers run.

Nothing of ours is imported here: the functions are sent to workers by value. Values of a group are
of one type, and none is NULL.
"""

import json
import math
from collections import Counter
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any


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


def exact_text(values: list[Any] | None, squared: bool) -> str | None:
    """Return the exact sum of numbers and exact sums, or of squares of numbers, as text.

    The texts are those of `streamsql.algebra.exact_totals`.
    """
    if not values:
        return None
    total = Fraction(0)
    for value in values:
        if isinstance(value, str):
            whole, _, unit = value.partition("/")
            number = Fraction(int(whole, 16), 1 << int(unit))
        else:
            number = Fraction(value)
        total += number * number if squared else number
    return f"{total.numerator:x}/{total.denominator.bit_length() - 1}"


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


def joined(values: list[str] | None, separator: str) -> str | None:
    """Return the texts in their order with the separator between them."""
    return separator.join(sorted(values)) if values else None


def discrete_percentile(values: list[Any] | None, fraction: str, descending: bool) -> Any:
    """Return the first value in order of which at least the fraction are not after it.

    Args:
        values: Of one type.
        fraction: A decimal number from 0 to 1.
        descending: In order from the greatest.
    """
    if not values:
        return None
    exact = Decimal(fraction) * len(values)
    nth = max(int(exact.to_integral_value(ROUND_CEILING)), 1)
    return sorted(values)[len(values) - nth if descending else nth - 1]


def mode(values: list[Any] | None) -> Any:
    """Return the value that comes most often, ties by least value."""
    counts = Counter(values or ())
    return min(counts, key=lambda value: (-counts[value], value)) if counts else None
