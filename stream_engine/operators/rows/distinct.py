"""Duplicate elimination."""

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from streamsql.data.delta import Delta


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
        weights = self._weights
        get = weights.get
        result: Delta = {}
        for row, weight in delta.items():
            old = get(row, 0)
            new = old + weight
            if new:
                weights[row] = new
            else:
                del weights[row]
            if old <= 0 < new:
                result[row] = 1
            elif new <= 0 < old:
                result[row] = -1
        return result

    @override
    def state_rows(self) -> int:
        return len(self._weights)
