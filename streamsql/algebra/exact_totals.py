"""Exact sums of numbers as texts, which groups of groups add up and round once.

Every double is a whole number of 2**-1074. An exact sum is `total/unit`: the total in 2**-unit, in
hexadecimal digits, with the least unit that does. Equal sums have equal texts.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache

Exact = tuple[int, int]
"""(total, unit): the number total * 2**-unit."""


def exact_text(total: int, unit: int) -> str:
    """Return the text of an exact sum.

    Examples:
        >>> exact_text(3, 1), exact_text(-16, 2), exact_text(0, 7)
        ('3/1', '-4/0', '0/0')
    """
    idle = min((total & -total).bit_length() - 1, unit) if total else unit
    return f"{total >> idle:x}/{unit - idle}"


def exact_of(value: float | str) -> Exact:
    """Return a number, or an exact sum, as total and unit.

    Raises:
        ValueError: A text is no exact sum.

    Examples:
        >>> exact_of(0.75), exact_of(-3), exact_of("3/1")
        ((3, 2), (-3, 0), (3, 1))
    """
    if isinstance(value, str):
        return _read(value)
    whole, denominator = value.as_integer_ratio()
    return whole, denominator.bit_length() - 1


@lru_cache(maxsize=16_384)
def _read(text: str) -> Exact:
    # All readers of a node read the same texts: 2.3 us each (benchmarks/shared_aggregates.py).
    total, _, unit = text.partition("/")
    return int(total, 16), int(unit)


def exact_sum(values: Iterable[float | str], *, squared: bool = False) -> str:
    """Return the exact sum of numbers and exact sums, or of their squares."""
    total = Fraction(0)
    for value in values:
        whole, unit = exact_of(value)
        number = Fraction(whole, 1 << unit)
        total += number * number if squared else number
    return exact_text(total.numerator, total.denominator.bit_length() - 1)


def _rounded_sum(text: str) -> float:
    return _rounded_mean(text, 1)


def _rounded_mean(text: str, count: int) -> float:
    total, unit = exact_of(text)
    return total / (count << unit)  # true division of integers rounds once


def _rounded_variance(total: str, squares: str, count: int, sample: bool) -> float | None:
    """Return the variance of numbers by their sum and that of their squares."""
    freedom = count - sample
    if freedom <= 0:
        return None
    (whole, unit), (square, finer) = exact_of(total), exact_of(squares)
    finest = max(2 * unit, finer)
    spread = count * (square << finest - finer) - (whole * whole << finest - 2 * unit)
    return spread / (count * freedom << finest)


def _rounded_deviation(total: str, squares: str, count: int, sample: bool) -> float | None:
    variance = _rounded_variance(total, squares, count, sample)
    return None if variance is None else math.sqrt(variance)


EXACT_FUNCTIONS: dict[str, Callable[..., float | None]] = {
    "SUM_OF_EXACT": _rounded_sum,
    "MEAN_OF_EXACT": _rounded_mean,
    "VARIANCE_OF_EXACT": _rounded_variance,
    "DEVIATION_OF_EXACT": _rounded_deviation,
}
"""Strict functions of exact sums, for plans: no query can name them."""
