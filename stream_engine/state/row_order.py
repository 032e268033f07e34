"""Rows as items that Python can compare: NULLs somewhere, some columns backwards.

Columns have one type each, so rows without NULL compare as they are, at the speed of C. Only what
Python cannot compare is replaced: a NULL by an object that is less or greater than all, a text in
descending order by its reverse, a number in descending order by its negation.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from streamsql.algebra.operators import SortKey
from streamsql.data.types import DataType, Row

Entry = tuple[Any, ...]
"""The parts of the order, then the comparable row."""


class _Bound:
    """Less than everything else, or greater."""

    __slots__ = ("_name", "_sign")

    def __init__(self, name: str, sign: int) -> None:
        self._name = name
        self._sign = sign

    def __lt__(self, other: object) -> bool:
        """Whether this is the lower one."""
        return self._sign < 0 and self is not other

    def __gt__(self, other: object) -> bool:
        """Whether this is the upper one."""
        return self._sign > 0 and self is not other

    def __reduce__(self) -> str:
        """Return the name of the only object of this kind."""
        return self._name

    def __repr__(self) -> str:
        """Return its name."""
        return self._name


LEAST = _Bound("LEAST", -1)
"""A NULL that comes first."""
GREATEST = _Bound("GREATEST", 1)
"""A NULL that comes last."""


class Reversed:
    """A value in descending order."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Any) -> bool:
        """Whether the other value is less; LEAST and GREATEST answer for themselves."""
        if not isinstance(other, Reversed):
            return NotImplemented
        less: bool = other.value < self.value
        return less

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same value."""
        return isinstance(other, Reversed) and bool(self.value == other.value)

    def __hash__(self) -> int:
        """Return the hash of the value."""
        return hash(self.value)


def comparable(row: Row) -> Entry:
    """Return a row that compares with others of its columns as `sort_key` orders them.

    Examples:
        >>> comparable((1, "a")), comparable((1, None)) < comparable((1, "a"))
        ((1, 'a'), True)
    """
    if None in row:
        return tuple([LEAST if value is None else value for value in row])
    return row


def restored(entry: Entry) -> Row:
    """Return the row of a comparable row.

    Examples:
        >>> restored(comparable((1, None)))
        (1, None)
    """
    if LEAST in entry:
        return tuple([None if value is LEAST else value for value in entry])
    return entry


def entry_function(
    order: tuple[SortKey, ...], dtypes: tuple[DataType, ...]
) -> Callable[[Row], Entry]:
    """Return a function from row to the entry that stands for it in an order.

    Args:
        order: Keys; rows they do not tell apart are ordered as whole rows, ascending.
        dtypes: Types of the row's columns.

    Examples:
        >>> entry = entry_function((SortKey(0, descending=True),), (DataType.INTEGER,))
        >>> sorted([(1,), (3,), (None,)], key=entry)
        [(3,), (1,), (None,)]
    """
    parts = [_part(key, dtypes[key.position]) for key in order]
    if not parts:
        return lambda row: (comparable(row),)
    if len(parts) == 1:
        (only,) = parts
        return lambda row: (only(row), comparable(row))
    return lambda row: (*[part(row) for part in parts], comparable(row))


def row_of(entry: Entry) -> Row:
    """Return the row that an entry stands for."""
    return restored(entry[-1])


def _part(key: SortKey, dtype: DataType) -> Callable[[Row], Any]:
    value_of = itemgetter(key.position)
    null = LEAST if key.nulls_first else GREATEST
    turned = None
    if key.descending:
        turned = Reversed if dtype == DataType.TEXT else _negated

    def part(row: Row) -> Any:
        value = value_of(row)
        if value is None:
            return null
        return value if turned is None else turned(value)

    return part


def _negated(value: Any) -> Any:
    return -value
