"""Rows in the order of an ORDER BY."""

from collections.abc import Iterable
from functools import cmp_to_key

from streamsql.algebra.operators import SortKey
from streamsql.data.delta import sort_key
from streamsql.data.types import Row


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
