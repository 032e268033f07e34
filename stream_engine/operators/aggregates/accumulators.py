"""Per-group accumulators of the aggregate functions, all correct under deletion.

An accumulator is shared by all groups of an operator; each group holds only its slot. `update`
takes all changes of one group at once, so that its loop touches locals only. The rows it sees are
rows of the aggregates' arguments, each at a fixed position.

To add an aggregate is to write a class with the four methods of `accumulator.Accumulator` and name
it in `accumulator_for`. Operators all of whose aggregates are known to `few_rows` keep groups of
few rows without accumulators; an aggregate that it does not name is not affected.
"""

from typing import Any

from stream_engine.operators.aggregates.accumulator import Accumulator, Changes
from stream_engine.operators.aggregates.array_aggregate import ArrayAggregate
from stream_engine.operators.aggregates.boolean_aggregate import BooleanAggregate
from stream_engine.operators.aggregates.mode_aggregate import Mode
from stream_engine.operators.aggregates.percentile_aggregate import DiscretePercentile, Percentile
from stream_engine.operators.aggregates.string_aggregate import StringAggregate
from stream_engine.operators.aggregates.user_aggregate import UserAccumulator
from stream_engine.operators.aggregates.variance_aggregate import Variance
from stream_engine.state.ranked_order import RankedOrder
from streamsql.algebra.operators import AggregateCall
from streamsql.algebra.operators import AggregateFunction as F
from streamsql.algebra.scalar import in_range
from streamsql.data.delta import sort_key
from streamsql.data.types import DataType, Value


class _Counting:
    """What the accumulators without remembered values share."""

    def rows(self, slot: Any) -> int:  # noqa: ARG002  (the protocol's signature)
        """Return 0."""
        return 0


class CountAll(_Counting):
    """COUNT(*): the total weight."""

    def empty(self) -> int:
        """Return 0."""
        return 0

    def update(self, slot: int, changes: Changes) -> int:
        """Add the weights."""
        for _row, weight in changes:
            slot += weight
        return slot

    def merge(self, slot: int, other: int) -> int:
        """Add the counts."""
        return slot + other

    def result(self, slot: int) -> Value:
        """Return the count."""
        return slot


class Count(_Counting):
    """COUNT(x): the weight of rows whose value is not NULL."""

    def __init__(self, position: int) -> None:
        self._position = position

    def empty(self) -> int:
        """Return 0."""
        return 0

    def update(self, slot: int, changes: Changes) -> int:
        """Add the weights of values."""
        position = self._position
        for row, weight in changes:
            if row[position] is not None:
                slot += weight
        return slot

    def merge(self, slot: int, other: int) -> int:
        """Add the counts."""
        return slot + other

    def result(self, slot: int) -> Value:
        """Return the count."""
        return slot


class Sum(_Counting):
    """SUM(x) and AVG(x), exact: the correctly rounded result of the real sum.

    Every double is a whole number of 2**-1074. A sum of doubles is kept as an integer in the unit
    of the finest value so far, so it forgets nothing: deleting what was added restores it, and the
    order of arrival never shows. The slot is (total, count, k) for a total in 2**-k.
    """

    def __init__(self, position: int, *, double: bool, mean: bool) -> None:
        self._position = position
        self._double = double
        self._mean = mean

    def empty(self) -> tuple[int, int, int]:
        """Return (0, 0, 0)."""
        return (0, 0, 0)

    def update(self, slot: tuple[int, int, int], changes: Changes) -> tuple[int, int, int]:
        """Add the values times their weights."""
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

    def merge(
        self, slot: tuple[int, int, int], other: tuple[int, int, int]
    ) -> tuple[int, int, int]:
        """Add the totals in the finer unit."""
        (total, count, unit), (more, times, other_unit) = slot, other
        finest = max(unit, other_unit)
        total = (total << finest - unit) + (more << finest - other_unit)
        return (total, count + times, finest)

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


class Extremum:
    """MIN(x) and MAX(x): the ends of an ordered multiset of the values."""

    def __init__(self, position: int, *, minimum: bool) -> None:
        self._position = position
        self._minimum = minimum

    def empty(self) -> RankedOrder[Any]:
        """Return an empty multiset."""
        return RankedOrder()

    def update(self, slot: RankedOrder[Any], changes: Changes) -> RankedOrder[Any]:
        """Add and remove values."""
        position, change = self._position, slot.change
        for row, weight in changes:
            value = row[position]
            if value is not None:
                change(value, weight)
        return slot

    def result(self, slot: RankedOrder[Any]) -> Value:
        """Return the least or greatest value."""
        if not slot.total:
            return None
        value: Value = slot.first() if self._minimum else slot.last()
        return value

    def rows(self, slot: RankedOrder[Any]) -> int:
        """Return the number of distinct values."""
        return len(slot)


class ArgExtremum:
    """ARG_MIN(x, by) and ARG_MAX(x, by): x where `by` is least or greatest, ties by least x.

    Rows whose `by` is NULL do not count; an x that is NULL is the least. Entries are
    (by, order of x), so that both ends and their ties are found in one order.
    """

    def __init__(self, value: int, by: int, *, minimum: bool) -> None:
        self._value = value
        self._by = by
        self._minimum = minimum

    def empty(self) -> RankedOrder[Any]:
        """Return an empty multiset."""
        return RankedOrder()

    def update(self, slot: RankedOrder[Any], changes: Changes) -> RankedOrder[Any]:
        """Add and remove pairs."""
        by, value, change = self._by, self._value, slot.change
        for row, weight in changes:
            if row[by] is not None:
                change((row[by], sort_key((row[value],))[0]), weight)
        return slot

    def result(self, slot: RankedOrder[Any]) -> Value:
        """Return the value at the end of the order."""
        if not slot.total:
            return None
        best = slot.first() if self._minimum else slot.at_least((slot.last()[0],))
        kind, value = best[1]
        return value if kind else None

    def rows(self, slot: RankedOrder[Any]) -> int:
        """Return the number of distinct pairs."""
        return len(slot)


class DistinctValues:
    """An aggregate over DISTINCT values: passes a value on when it appears or vanishes.

    The slot is [weights by value, slot of the aggregate].
    """

    def __init__(self, inner: Accumulator, position: int) -> None:
        self._inner = inner
        self._position = position

    def empty(self) -> tuple[dict[Value, int], Any]:
        """Return no weights and the inner empty slot."""
        return ({}, self._inner.empty())

    def update(self, slot: tuple[dict[Value, int], Any], changes: Changes) -> Any:
        """Add weights; pass on what appeared or vanished."""
        position = self._position
        weights, inner = slot
        passed: Changes = []
        for row, weight in changes:
            value = row[position]
            old = weights.get(value, 0)
            new = old + weight
            if new:
                weights[value] = new
            else:
                del weights[value]
            if old <= 0 < new:
                passed.append((row, 1))
            elif new <= 0 < old:
                passed.append((row, -1))
        return (weights, self._inner.update(inner, passed) if passed else inner)

    def result(self, slot: tuple[dict[Value, int], Any]) -> Value:
        """Return the inner aggregate."""
        return self._inner.result(slot[1])

    def rows(self, slot: tuple[dict[Value, int], Any]) -> int:
        """Return the number of distinct values."""
        return len(slot[0])


def accumulator_for(call: AggregateCall, position: int) -> Accumulator:
    """Return the accumulator of an aggregate whose arguments start at a position.

    MIN, MAX, ARG_MIN and ARG_MAX are the same with and without DISTINCT.
    """
    function = call.function
    inner: Accumulator
    match function:
        case F.COUNT_ALL:
            return CountAll()
        case F.MIN | F.MAX:
            return Extremum(position, minimum=function == F.MIN)
        case F.ARG_MIN | F.ARG_MAX:
            minimum = function == F.ARG_MIN
            return ArgExtremum(position, position + 1, minimum=minimum)
        case F.COUNT:
            inner = Count(position)
        case F.VAR_SAMP | F.VAR_POP | F.STDDEV_SAMP | F.STDDEV_POP:
            sample, root = function in (F.VAR_SAMP, F.STDDEV_SAMP), function.startswith("STDDEV")
            inner = Variance(position, sample=sample, root=root)
        case F.BOOL_AND | F.BOOL_OR:
            inner = BooleanAggregate(position, every=function == F.BOOL_AND)
        case F.PERCENTILE_CONT:
            inner = Percentile(position, 0.5 if call.parameter is None else call.parameter)
        case F.ARRAY_AGG:
            inner = ArrayAggregate(position, call.arguments[0].dtype)
        case F.PERCENTILE_DISC:
            inner = DiscretePercentile(position, call)
        case F.MODE:
            inner = Mode(position)
        case F.STRING_AGG:
            inner = StringAggregate(position, call.separator)
        case F.SUM | F.AVG:
            double = call.arguments[0].dtype == DataType.DOUBLE
            inner = Sum(position, double=double, mean=function == F.AVG)
        case F.USER:
            return UserAccumulator(call, position)
    return DistinctValues(inner, position) if call.distinct else inner
