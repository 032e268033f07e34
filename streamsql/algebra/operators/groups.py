"""Groups with their aggregates, and groups that are given when their window closes."""

from streamsql.algebra.aggregates import AggregateCall
from streamsql.algebra.leaves import PROGRESS_COLUMNS, require
from streamsql.algebra.operators.nodes import Binary, Unary, check_columns
from streamsql.data.schema import Field, Schema


class Aggregate(Unary, frozen=True, tag="aggregate"):
    """Groups and their aggregates; without group columns always exactly one row.

    The output is the group columns, then one column per aggregate.
    """

    group: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        """Refuse columns beyond the input."""
        width = len(self.input.schema)
        require(all(0 <= g < width for g in self.group), "group column out of range")
        for call in self.aggregates:
            check_columns(call.arguments, width, "aggregate")

    @property
    def schema(self) -> Schema:
        """Group columns, then aggregates."""
        calls = tuple(Field(call.name, call.dtype) for call in self.aggregates)
        return Schema(self.input.schema.select(self.group).fields + calls)


class OnClose(Binary, frozen=True, tag="on_close"):
    """The groups whose window has closed: EMIT ON WINDOW CLOSE.

    A window has closed when the watermark, the least of the right side's, has reached its end;
    where all sites are idle, the greatest. From then on nothing that arrives can change it, so its
    row is given once and never taken back, and nothing has to be remembered of it. While the right
    side is empty nothing closes.

    Attributes:
        left: Groups, one of whose columns is the end of a window.
        right: (site, watermark) of every site with readings: scans of `ScanPart.PROGRESS`.
        end: Position of the window's end in the left side.
    """

    end: int

    def __post_init__(self) -> None:
        """Refuse anything but groups by a window's end."""
        require(isinstance(self.left, Aggregate), "windows close over an aggregate")
        grouped = len(self.left.group) if isinstance(self.left, Aggregate) else 0
        require(0 <= self.end < grouped, "a window's end must be a group column")
        require(self.right.schema.dtypes == PROGRESS_COLUMNS.dtypes, "progress columns")

    @property
    def schema(self) -> Schema:
        """The left side's columns."""
        return self.left.schema
