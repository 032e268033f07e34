"""Window functions (OVER): their names, frames and calls."""

import enum

import msgspec

from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.expressions import Expression
from streamsql.data.types import DataType

FRAMED_AGGREGATES = (
    AggregateFunction.COUNT_ALL,
    AggregateFunction.COUNT,
    AggregateFunction.SUM,
    AggregateFunction.AVG,
    AggregateFunction.MIN,
    AggregateFunction.MAX,
)
"""Aggregates that may stand before OVER."""


class WindowFunction(enum.StrEnum):
    """Functions of a row's place in its partition, and aggregates over its frame."""

    ROW_NUMBER = "ROW_NUMBER"
    RANK = "RANK"
    DENSE_RANK = "DENSE_RANK"
    PERCENT_RANK = "PERCENT_RANK"
    CUME_DIST = "CUME_DIST"
    NTILE = "NTILE"
    LAG = "LAG"
    LEAD = "LEAD"
    FIRST_VALUE = "FIRST_VALUE"
    LAST_VALUE = "LAST_VALUE"
    NTH_VALUE = "NTH_VALUE"
    AGGREGATE = "AGGREGATE"


PEER_RANKS = (
    WindowFunction.RANK,
    WindowFunction.DENSE_RANK,
    WindowFunction.PERCENT_RANK,
    WindowFunction.CUME_DIST,
)
"""The same for all rows with equal ORDER BY keys."""
NUMBERING = (*PEER_RANKS, WindowFunction.ROW_NUMBER, WindowFunction.NTILE)
"""Functions of where a row stands; they take no values and no frame."""
FRACTIONS = (WindowFunction.PERCENT_RANK, WindowFunction.CUME_DIST)
SHIFTING = (WindowFunction.LAG, WindowFunction.LEAD)


class Frame(msgspec.Struct, frozen=True):
    """The rows of a partition that a call looks at, seen from the current row.

    Attributes:
        start: First row, counted from the current one (negative: before it); None: the
            partition's first.
        end: Last row; None: the partition's last.
        peers: RANGE: a bound of 0 means the first or last row with equal ORDER BY keys.

    Examples:
        >>> str(Frame()), str(Frame(-2, 1, peers=False))
        ('RANGE UNBOUNDED PRECEDING TO CURRENT ROW', 'ROWS 2 PRECEDING TO 1 FOLLOWING')
    """

    start: int | None = None
    end: int | None = 0
    peers: bool = True

    @property
    def is_sound(self) -> bool:
        """Whether the bounds are in order, and those of RANGE are not offsets."""
        if self.peers:
            return self.start in (None, 0) and self.end in (None, 0)
        return self.start is None or self.end is None or self.start <= self.end

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole partition for every row."""
        return self.start is None and self.end is None

    def __str__(self) -> str:
        """Return it as it is written, but for BETWEEN."""
        kind = "RANGE" if self.peers else "ROWS"
        return f"{kind} {_bound(self.start, 'PRECEDING')} TO {_bound(self.end, 'FOLLOWING')}"


def _bound(rows: int | None, unbounded: str) -> str:
    if rows is None:
        return f"UNBOUNDED {unbounded}"
    if rows == 0:
        return "CURRENT ROW"
    return f"{-rows} PRECEDING" if rows < 0 else f"{rows} FOLLOWING"


class WindowCall(msgspec.Struct, frozen=True, tag="window_call"):
    """One window function with its OVER, but for partition and order.

    * PERCENT_RANK is (rank - 1) / (rows - 1), and 0 in a partition of one row; CUME_DIST is the
      share of rows up to the last peer.
    * NTILE(n) numbers n runs of rows whose lengths differ by one at most, the longer ones first.

    Attributes:
        function: Which.
        name: Of the output column.
        arguments: Over the input row. Of LAG and LEAD the value and, if given, what stands for a
            row that is not there, of the same type and taken from the current row.
        distance: Of LAG and LEAD: how many rows back or ahead.
        frame: Of FIRST_VALUE, LAST_VALUE, NTH_VALUE and aggregates.
        aggregate: Which one, of AGGREGATE.
        number: Of NTILE how many runs; of NTH_VALUE which row of the frame, from 1.
    """

    function: WindowFunction
    name: str
    arguments: tuple[Expression, ...] = ()
    distance: int = 1
    frame: Frame = Frame()
    aggregate: AggregateFunction | None = None
    number: int = 1

    @property
    def dtype(self) -> DataType:
        """The result type."""
        if self.function in FRACTIONS:
            return DataType.DOUBLE
        if self.function in NUMBERING:
            return DataType.INTEGER
        over = self.aggregate_call
        return self.arguments[0].dtype if over is None else over.dtype

    @property
    def aggregate_call(self) -> AggregateCall | None:
        """The aggregate taken over each frame, if it is one."""
        if self.aggregate is None:
            return None
        return AggregateCall(self.aggregate, self.arguments, self.name)

    @property
    def shift(self) -> int:
        """Of LAG and LEAD: where the value stands, seen from the current row."""
        return -self.distance if self.function == WindowFunction.LAG else self.distance

    @property
    def is_sound(self) -> bool:
        """Whether arguments, frame and function fit each other."""
        count = len(self.arguments)
        match self.function:
            case _ if self.function in NUMBERING:
                takes: tuple[int, ...] = (0,)
            case WindowFunction.LAG | WindowFunction.LEAD:
                takes = (1, 2)
            case WindowFunction.FIRST_VALUE | WindowFunction.LAST_VALUE | WindowFunction.NTH_VALUE:
                takes = (1,)
            case _:
                takes = (0,) if self.aggregate == AggregateFunction.COUNT_ALL else (1,)
        is_aggregate = self.function == WindowFunction.AGGREGATE
        return (
            count in takes
            and self.distance >= 0
            and self.number >= 1
            and self.frame.is_sound
            and (self.aggregate in FRAMED_AGGREGATES if is_aggregate else self.aggregate is None)
        )

    @property
    def sees_ties(self) -> bool:
        """Whether rows with equal ORDER BY keys may get different values.

        If not, the result does not hang on how whole rows are ordered.
        """
        if self.function in PEER_RANKS:
            return False
        if self.function == WindowFunction.AGGREGATE:
            return not self.frame.peers and not self.frame.is_whole
        return True


def run_starts(runs: int, total: int) -> list[int]:
    """Return the places from 0 at which the runs of NTILE begin behind the first; none are empty.

    Examples:
        >>> run_starts(4, 10), run_starts(4, 2)
        ([3, 6, 8], [1])
    """
    length, longer = divmod(total, runs)
    count = min(runs, total)
    return [number * length + min(number, longer) for number in range(1, count)]


def run_of(place: int, runs: int, total: int) -> int:
    """Return the number from 1 of the run of NTILE that the row at a place from 0 belongs to.

    Examples:
        >>> [run_of(place, 3, 7) for place in range(7)]
        [1, 1, 1, 2, 2, 3, 3]
    """
    length, longer = divmod(total, runs)
    in_longer = longer * (length + 1)
    if place < in_longer:
        return place // (length + 1) + 1
    return longer + (place - in_longer) // length + 1
