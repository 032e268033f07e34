"""Left outer joins."""

from stream_engine.operators.join_state import Keys
from stream_engine.operators.outer_join import outer_join
from stream_engine.state.indexed_relation import Index, KeyedRows
from streamsql.algebra.expressions import Expression
from streamsql.data.delta import Delta


class LeftJoinOperator:
    """An inner join that also keeps every left row without partner, padded with NULLs.

    l leftjoin r = (l * r) + pad(rows of l without partner in r): beside the bilinear part the
    padded row of a left row comes and goes as its partners vanish and appear. Without residual that
    is known from its key; with one, each left row counts its partners. A left row with a NULL key
    is padded for good and not remembered.

    State: both sides by key (in the order of a band, if there is one), with a residual a count for
    each left row that has partners. Work: O(1) a changed row (O(log n) with a band) plus one step
    per pair that agrees on the keys (lies in the band).

        left    {(1, a): 1}               {}                  {}
        right   {}                        {(1, x): 1}         {(1, x): -1}
        output  {(1, a, -, -): 1}         {(1, a, -, -): -1,  {(1, a, 1, x): -1,
                                           (1, a, 1, x): 1}    (1, a, -, -): 1}
    """

    def __init__(
        self, keys: Keys, residual: Expression | None, left_width: int, right_width: int
    ) -> None:
        self._join = outer_join(keys, residual, left_width, ((None,) * right_width, None))

    def initial(self) -> Delta:
        """Return nothing."""
        return {}

    def apply(self, port: int, delta: Delta) -> Delta:
        """Join the change of one side with the other side, then remember it."""
        return self._join.apply(port, delta)

    def indexes(self) -> list[Index]:
        """Return the sides that are kept by key."""
        return self._join.indexes()

    def put_index(self, number: int, rows: KeyedRows) -> None:
        """Use a side that holds the same rows."""
        self._join.put_index(number, rows)

    def state_rows(self) -> int:
        """Return the rows of both sides that could match."""
        return self._join.state_rows()
