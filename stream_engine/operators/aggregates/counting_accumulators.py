"""Aggregates whose slot is a few numbers: COUNT, SUM, AVG, BOOL_AND, BOOL_OR, variances.

Exact sums are results of the same slots.
"""

import math
from typing import Any

from typing_extensions import override

from stream_engine.operators.aggregates.accumulator import Changes, MergingAccumulator
from streamsql.algebra.exact_totals import exact_of, exact_text
from streamsql.algebra.scalar_functions.scalar import in_range
from streamsql.data.types import Value


class CountAll(MergingAccumulator):
    """COUNT(*): the total weight."""

    @override
    def empty(self) -> int:
        return 0

    @override
    def update(self, slot: int, changes: Changes) -> int:
        for _row, weight in changes:
            slot += weight
        return slot

    @override
    def merge(self, slot: int, other: int) -> int:
        return slot + other

    @override
    def result(self, slot: int) -> Value:
        return slot


class Count(CountAll):
    """COUNT(x): the weight of rows whose value is not NULL."""

    def __init__(self, position: int) -> None:
        self._position = position

    @override
    def update(self, slot: int, changes: Changes) -> int:
        position = self._position
        for row, weight in changes:
            if row[position] is not None:
                slot += weight
        return slot


class Sum(MergingAccumulator):
    """SUM(x) and AVG(x), exact: the correctly rounded result of the real sum.

    Every double is a whole number of 2**-1074. A sum of doubles is kept as an integer in the unit
    of the finest value so far, so it loses nothing: deleting what was added restores it, and the
    order of arrival never shows. The slot is (total, count, k) for a total in 2**-k.
    """

    def __init__(self, position: int, *, double: bool, mean: bool) -> None:
        self._position = position
        self._double = double
        self._mean = mean

    @override
    def empty(self) -> tuple[int, int, int]:
        return (0, 0, 0)

    @override
    def update(self, slot: tuple[int, int, int], changes: Changes) -> tuple[int, int, int]:
        total, count, unit = slot
        position, double = self._position, self._double
        for row, weight in changes:
            value: Any = row[position]
            if value is None:
                continue
            count += weight
            if double:
                # The denominator is a power of two: its bit length says which.
                value, denominator = value.as_integer_ratio()
                finer = denominator.bit_length() - 1 - unit
                if finer > 0:
                    unit += finer
                    total <<= finer
                else:
                    value <<= -finer
            total += value * weight
        return (total, count, unit)

    @override
    def merge(
        self, slot: tuple[int, int, int], other: tuple[int, int, int]
    ) -> tuple[int, int, int]:
        (total, count, unit), (more, times, other_unit) = slot, other
        finest = max(unit, other_unit)
        total = (total << finest - unit) + (more << finest - other_unit)
        return (total, count + times, finest)

    @override
    def result(self, slot: tuple[int, int, int]) -> Value:
        """Return the sum or mean; NULL without values or beyond the type's range."""
        total, count, unit = slot
        if not count:
            return None
        if not self._mean and not self._double:
            return in_range(total)
        try:
            # True division of integers rounds correctly.
            return total / ((count if self._mean else 1) << unit)
        except OverflowError:
            return None


class ExactSum(Sum):
    """EXACT_SUM(x) of numbers: the sum as a text that loses nothing."""

    def __init__(self, position: int, *, double: bool) -> None:
        super().__init__(position, double=double, mean=False)

    @override
    def result(self, slot: tuple[int, int, int]) -> Value:
        total, count, unit = slot
        return exact_text(total, unit) if count else None


class SumOfExactSums(ExactSum):
    """EXACT_SUM(x) of exact sums."""

    def __init__(self, position: int) -> None:
        super().__init__(position, double=True)

    @override
    def update(self, slot: tuple[int, int, int], changes: Changes) -> tuple[int, int, int]:
        total, count, unit = slot
        position = self._position
        for row, weight in changes:
            text: Any = row[position]
            if text is None:
                continue
            count += weight
            value, other = exact_of(text)
            finest = max(unit, other)
            total = (total << finest - unit) + (value << finest - other) * weight
            unit = finest
        return (total, count, unit)


class BooleanAggregate(MergingAccumulator):
    """BOOL_AND(x) and BOOL_OR(x): whether no value is FALSE, whether one is TRUE.

    The slot is (values that are TRUE, values that are FALSE), so a value taken back is no trouble.
    """

    def __init__(self, position: int, *, every: bool) -> None:
        self._position = position
        self._every = every

    @override
    def empty(self) -> tuple[int, int]:
        return (0, 0)

    @override
    def update(self, slot: tuple[int, int], changes: Changes) -> tuple[int, int]:
        true, false = slot
        position = self._position
        for row, weight in changes:
            value = row[position]
            if value is None:
                continue
            if value:
                true += weight
            else:
                false += weight
        return (true, false)

    @override
    def merge(self, slot: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        return (slot[0] + other[0], slot[1] + other[1])

    @override
    def result(self, slot: tuple[int, int]) -> Value:
        true, false = slot
        if true <= 0 and false <= 0:
            return None
        return false <= 0 if self._every else true > 0


_Sums = tuple[int, int, int, int]
"""(unit, sum, sum of squares, count): the sum in 2**-unit, that of the squares in 2**-(2 unit)."""


class Variance(MergingAccumulator):
    """VAR_SAMP, VAR_POP, STDDEV_SAMP and STDDEV_POP: the correctly rounded result of the real sums.

    With S the sum and Q the sum of the squares of n values the variance is (n Q - S²) / (n f) with
    f = n - 1 for a sample, else n. S and Q are integers in the unit of the finest value, as in
    `Sum`. Work: O(1) a changed row (of their length: that of a few doubles where values are of
    similar size, 4,000 bits at worst).
    """

    def __init__(self, position: int, *, sample: bool, root: bool) -> None:
        self._position = position
        self._sample = sample
        self._root = root

    @override
    def empty(self) -> _Sums:
        return (0, 0, 0, 0)

    @override
    def update(self, slot: _Sums, changes: Changes) -> _Sums:
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

    @override
    def merge(self, slot: _Sums, other: _Sums) -> _Sums:
        (unit, total, squares, count), (other_unit, more, more_squares, times) = slot, other
        finest = max(unit, other_unit)
        one, two = finest - unit, finest - other_unit
        total = (total << one) + (more << two)
        squares = (squares << 2 * one) + (more_squares << 2 * two)
        return (finest, total, squares, count + times)

    @override
    def result(self, slot: _Sums) -> Value:
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


class ExactSquares(Variance):
    """EXACT_SQUARES(x): the sum of the squares as a text that loses nothing."""

    def __init__(self, position: int) -> None:
        super().__init__(position, sample=False, root=False)

    @override
    def result(self, slot: _Sums) -> Value:
        unit, _total, squares, count = slot
        return exact_text(squares, 2 * unit) if count else None
