"""Selection."""

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from streamsql.algebra.expressions import Expression
from streamsql.algebra.scalar import compile_filter
from streamsql.data.delta import Delta


class FilterOperator(Operator):
    """The rows for which a predicate is TRUE.

    Linear: filter(a + b) = filter(a) + filter(b). State: none. Work: one evaluation a changed row.

        input   {3: 1, 7: 1}    {7: -1}      predicate: > 5
        output  {7: 1}          {7: -1}
    """

    def __init__(self, predicate: Expression) -> None:
        self._kept = compile_filter(predicate)

    @override
    def apply(self, _port: int, delta: Delta) -> Delta:
        return self._kept(delta)
