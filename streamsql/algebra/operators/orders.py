"""Operators that put rows in an order: the first of them, and functions over their neighbours."""

from collections.abc import Iterable
from functools import cmp_to_key

import msgspec

from streamsql.algebra.leaves import require
from streamsql.algebra.operators.relational import Unary, check_columns
from streamsql.algebra.over_windows import WindowCall
from streamsql.data.delta import sort_key
from streamsql.data.schema import Field, Schema
from streamsql.data.types import Row


class SortKey(msgspec.Struct, frozen=True):
    """One key of an ORDER BY.

    NULL is greater than every value, as in PostgreSQL, unless `nulls_first` says where it goes.

    Attributes:
        position: Of the column.
        descending: Greatest first.
        nulls_first: Where NULLs go, whatever the direction.
    """

    position: int
    descending: bool = False
    nulls_first: bool = False


class TopN(Unary, frozen=True, tag="top_n"):
    """The first rows by an order: in all, or of every partition.

    Rows with equal keys are ordered as whole rows (`streamsql.data.delta.sort_key`,
    ascending), so the answer never depends on arrival. A row that is there twice counts twice.

    Attributes:
        order: At least one key, or none: then whole rows decide.
        limit: Most rows; None for all that follow the offset.
        offset: Rows to skip.
        partition: Positions of the columns that identify a partition.
    """

    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    partition: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        width = len(self.input.schema)
        positions = (*(key.position for key in self.order), *self.partition)
        require(all(0 <= p < width for p in positions), "order column out of range")
        require((self.limit is None or self.limit >= 0) and self.offset >= 0, "limit")


class OverWindow(Unary, frozen=True, tag="over_window"):
    """Each row with the values of window functions as more columns.

    Rows of a partition stand in the order of the keys; those with equal keys (peers)
    stand in the order of whole rows (`streamsql.data.delta.sort_key`, ascending), so no value
    depends on arrival. A row that is there twice stands there twice and may get two values. RANK,
    DENSE_RANK and RANGE frames look at the keys only.

    Attributes:
        partition: Positions of the columns that identify a partition; NULLs are equal.
        order: Keys; without any all rows of a partition are peers.
        calls: At least one; each gives a column.
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]

    def __post_init__(self) -> None:
        width = len(self.input.schema)
        positions = (*(key.position for key in self.order), *self.partition)
        require(all(0 <= p < width for p in positions), "over window column out of range")
        require(bool(self.calls), "over window without calls")
        for call in self.calls:
            require(call.is_sound, f"window call {call.name}")
            check_columns(call.arguments, width, "window call")

    @property
    def schema(self) -> Schema:
        """The input's columns, then one per call."""
        return self.input.schema + Schema(tuple(Field(c.name, c.dtype) for c in self.calls))


def in_order(rows: Iterable[Row], order: tuple[SortKey, ...]) -> tuple[Row, ...]:
    """Return rows sorted by keys; rows with equal keys are sorted as whole rows.

    Examples:
        >>> in_order([(1,), (None,), (2,)], (SortKey(0, descending=True),))
        ((2,), (1,), (None,))
    """

    def compare(a: Row, b: Row) -> int:
        for key in order:
            left, right = a[key.position], b[key.position]
            if (left is None) != (right is None):
                return -1 if (left is None) == key.nulls_first else 1
            if left != right:
                first = sort_key((left,)) < sort_key((right,))
                return -1 if first != key.descending else 1
        left_row, right_row = sort_key(a), sort_key(b)
        return -1 if left_row < right_row else int(left_row > right_row)

    return tuple(sorted(rows, key=cmp_to_key(compare)))
