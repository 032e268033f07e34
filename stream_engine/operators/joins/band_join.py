"""Inner joins on a range between a value of each side."""

from typing_extensions import override

from stream_engine.operators.joins.band_bounds import BandedCondition
from stream_engine.operators.joins.join_state import BandSide, Keys
from stream_engine.operators.rows.operator import Operator
from stream_engine.state.indexed_relation import rows_in
from streamsql.data.delta import Delta


class BandJoinOperator(Operator):
    """Pairs of rows whose condition contains a range between a left and a right value.

    `a.ts BETWEEN b.ts - 10 AND b.ts + 10`, `a.x < b.x`, `ABS(a.x - b.x) < 3` and
    `DISTANCE(a.x, a.y, b.x, b.y) < 3` are such conditions (`band_bounds`); equal keys and other
    predicates may come with them. Bilinear as `JoinOperator`: d(l * r) = dl * r + (l + dl) * dr;
    but a side is kept in the order of its value, and a changed row meets only the rows inside its
    range. NULL keys and NULL values never match.

    State: both inputs, ordered by value within each key. Work: O(log rows of the key) a changed row
    plus one step per pair inside the range.

        left    {(5,): 1}                l.x < r.x
        right                {(7,): 1, (3,): 1}    {(7,): -1}
        output               {(5, 7): 1}           {(5, 7): -1}
    """

    def __init__(self, keys: Keys, condition: BandedCondition) -> None:
        self._sides = (BandSide(keys, condition, 0), BandSide(keys, condition, 1))

    @override
    def apply(self, port: int, delta: Delta) -> Delta:
        add, inside = self._sides[port].add, self._sides[1 - port].inside
        result: Delta = {}
        for row, weight in self._sides[port].in_order(delta):
            entries, holds = inside(row)
            for entry in entries:
                if holds is None and entry.__class__ is tuple:
                    result[entry + row if port else row + entry] = weight
                    continue
                for partner, count in rows_in(entry):
                    pair = partner + row if port else row + partner
                    if holds is None or holds(pair):
                        result[pair] = weight * count
            add(row, weight)
        return result

    @override
    def state_rows(self) -> int:
        return len(self._sides[0]) + len(self._sides[1])
