"""Picking columns at the speed of C: the inner loops of joins and aggregates live on it."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from streamsql.data.types import Row


def picker(positions: tuple[int, ...]) -> Callable[[Row], Row]:
    """Return a function from a row to the tuple of some of its columns.

    Neighbouring columns become a slice, the rest an `itemgetter`; both run without a Python frame
    and both give a tuple whatever the number of columns.

    Examples:
        >>> picker(())((7, 8)), picker((1,))((7, 8)), picker((1, 0))((7, 8))
        ((), (8,), (8, 7))
    """
    if not positions:
        return itemgetter(slice(0, 0))
    first = positions[0]
    if positions == tuple(range(first, first + len(positions))):
        return itemgetter(slice(first, first + len(positions)))
    return itemgetter(*positions)


def key_picker(positions: tuple[int, ...]) -> Callable[[Row], Any]:
    """Return a function from a row to its key: the bare value of one column, else a tuple.

    A bare value saves making and hashing a tuple for every row of most joins.

    Examples:
        >>> key_picker((1,))((7, 8)), key_picker((1, 0))((7, 8)), key_picker(())((7, 8))
        (8, (8, 7), ())
    """
    return itemgetter(positions[0]) if len(positions) == 1 else picker(positions)
