"""Variances and standard deviations that forget nothing."""

import math
from typing import Any

from stream_engine.operators.aggregates.accumulator import Changes
from streamsql.data.types import Value

_Slot = tuple[int, int, int, int]
"""(unit, sum, sum of squares, count): the sum in 2**-unit, that of the squares in 2**-(2 unit)."""


class Variance:
    """VAR_SAMP, VAR_POP, STDDEV_SAMP and STDDEV_POP: the correctly rounded result of the real sums.

    With S the sum and Q the sum of the squares of n values the variance is (n Q - S²) / (n f) with
    f = n - 1 for a sample, else n. Every double is a whole number of 2**-1074, so S and Q are kept
    as integers, in the unit of the finest value so far: taking a value back restores what was.

    State: two integers a group. Work: O(1) a changed row (of their length: that of a few doubles
    where values are of similar size, 4,000 bits at worst).
    """

    def __init__(self, position: int, *, sample: bool, root: bool) -> None:
        self._position = position
        self._sample = sample
        self._root = root

    def empty(self) -> _Slot:
        """Return the sums of nothing."""
        return (0, 0, 0, 0)

    def update(self, slot: _Slot, changes: Changes) -> _Slot:
        """Add the values and their squares times the weights."""
        unit, total, squares, count = slot
        position = self._position
        for row, weight in changes:
            value: Any = row[position]
            if value is None:
                continue
            whole, denominator = value.as_integer_ratio()
            finer = denominator.bit_length() - 1 - unit  # the denominator is a power of two
            if finer < 0:
                whole <<= -finer
            elif finer:
                unit += finer
                total <<= finer
                squares <<= 2 * finer
            count += weight
            total += whole * weight
            squares += whole * whole * weight
        return (unit, total, squares, count)

    def merge(self, slot: _Slot, other: _Slot) -> _Slot:
        """Add the sums in the finer unit."""
        (unit, total, squares, count), (other_unit, more, more_squares, times) = slot, other
        finest = max(unit, other_unit)
        one, two = finest - unit, finest - other_unit
        total = (total << one) + (more << two)
        squares = (squares << 2 * one) + (more_squares << 2 * two)
        return (finest, total, squares, count + times)

    def result(self, slot: _Slot) -> Value:
        """Return the variance or its root; NULL for too few values or beyond the range."""
        unit, total, squares, count = slot
        freedom = count - self._sample
        if freedom <= 0:
            return None
        spread = count * squares - total * total
        if spread < 0:
            return None  # weights below zero, which are transient
        try:
            variance = spread / (count * freedom << 2 * unit)  # integers divide correctly rounded
        except OverflowError:
            return None
        return math.sqrt(variance) if self._root else variance

    def rows(self, slot: _Slot) -> int:  # noqa: ARG002  (the protocol's signature)
        """Return 0."""
        return 0
