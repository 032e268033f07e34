"""Selection."""

from streamsql.algebra.expressions import Expression
from streamsql.algebra.scalar import compile_filter
from streamsql.data.delta import Delta


class FilterOperator:
    """The rows for which a predicate is TRUE.

    Linear: filter(a + b) = filter(a) + filter(b). State: none. Work: one evaluation a changed row.

        input   {3: 1, 7: 1}    {7: -1}      predicate: > 5
        output  {7: 1}          {7: -1}
    """

    def __init__(self, predicate: Expression) -> None:
        self._kept = compile_filter(predicate)

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, _port: int, delta: Delta) -> Delta:
        """Return the part of the change that passes."""
        return self._kept(delta)

    def state_rows(self) -> int:
        """Return 0."""
        return 0
