"""Full outer joins."""

from stream_engine.operators.joins.join_state import Keys
from stream_engine.operators.joins.outer_join import OuterJoinOperator
from streamsql.algebra.expressions import Expression


class FullJoinOperator(OuterJoinOperator):
    """An inner join that also keeps the rows without partner of both sides, padded with NULLs.

    l fulljoin r = (l * r) + pad(rows of l without partner in r) + pad(rows of r without partner in
    l): a left join (`LeftJoinOperator`) whose right rows are treated as its left ones are.

    State: both sides by key (in the order of a band, if there is one), with a residual a count for
    each row that has partners. Work: O(1) a changed row (O(log n) with a band) plus one step per
    pair that agrees on the keys (lies in the band).

        left    {}                        {(1, a): 1}         {(1, a): -1}
        right   {(1, x): 1}               {}                  {}
        output  {(-, -, 1, x): 1}         {(-, -, 1, x): -1,  {(1, a, 1, x): -1,
                                           (1, a, 1, x): 1}    (-, -, 1, x): 1}
    """

    def __init__(
        self, keys: Keys, residual: Expression | None, left_width: int, right_width: int
    ) -> None:
        super().__init__(keys, residual, left_width, ((None,) * right_width, (None,) * left_width))
