"""Operators that keep the weight of every row: DISTINCT, INTERSECT, EXCEPT."""

from collections.abc import Callable

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from streamsql.algebra.operators import SetKind, SetOperation
from streamsql.data.delta import Delta, switched


class DistinctOperator(Operator):
    """Each row once.

    Not linear, but its change depends only on the weights of the changed rows. Idempotent.
    State: the weight of every row. Work: O(1) a changed row.

        input   {a: 2}    {a: -1}   {a: -1}
        output  {a: 1}    {}        {a: -1}
    """

    def __init__(self) -> None:
        self._weights: Delta = {}

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        return switched(self._weights, delta)

    @override
    def state_rows(self) -> int:
        return len(self._weights)


class SetOperationOperator(Operator):
    """INTERSECT and EXCEPT of two bags of rows.

    How often a row is in the result depends only on how often it is on either side: min(l, r) or
    max(l - r, 0) times, without ALL at most once. So a changed row is looked up and nothing else.

    State: the weight of every row of both sides. Work: O(1) a changed row.

        EXCEPT ALL   left {a: 2}     right {a: 1}    left {a: -1}
        output       {a: 2}          {a: -1}         {a: -1}
    """

    def __init__(self, plan: SetOperation) -> None:
        self._times = _TIMES[plan.kind, plan.all]
        self._sides: tuple[Delta, Delta] = ({}, {})

    @override
    def apply(self, port: int, delta: Delta) -> Delta:
        times = self._times
        own, other = self._sides[port], self._sides[1 - port].get
        is_left = port == 0
        result: Delta = {}
        for row, weight in delta.items():
            old = own.get(row, 0)
            new = old + weight
            if new:
                own[row] = new
            else:
                del own[row]
            there = other(row, 0)
            if is_left:
                change = times(new, there) - times(old, there)
            else:
                change = times(there, new) - times(there, old)
            if change:
                result[row] = change
        return result

    @override
    def state_rows(self) -> int:
        return sum(map(len, self._sides))


_TIMES: dict[tuple[SetKind, bool], Callable[[int, int], int]] = {
    (SetKind.INTERSECT, True): lambda left, right: max(min(left, right), 0),
    (SetKind.INTERSECT, False): lambda left, right: int(left > 0 and right > 0),
    (SetKind.EXCEPT, True): lambda left, right: max(left - max(right, 0), 0),
    (SetKind.EXCEPT, False): lambda left, right: int(left > 0 and right <= 0),
}
"""How often a row is there, by its weights; weights below zero are transient and count as none."""
