"""Deltas: changes of a relation as Z-sets, maps from row to a non-zero integer weight.

A relation (bag of rows) is a Z-set whose weights are positive; a delta may have any. Z-sets with
addition form an abelian group, which is why changes can be batched and reordered freely.
"""

from collections.abc import Iterable, Iterator

from streamsql.data.types import Row

Delta = dict[Row, int]


def accumulate(into: Delta, delta: Delta) -> None:
    """Add a delta to another one in place; rows whose weight becomes zero vanish.

    Examples:
        >>> total = {("a",): 1}
        >>> accumulate(total, {("a",): -1, ("b",): 2})
        >>> total
        {('b',): 2}
    """
    if into.keys().isdisjoint(delta):  # as most are; a copy takes half of the time
        into.update(delta)
        return
    get = into.get
    for row, weight in delta.items():
        new = get(row, 0) + weight
        if new:
            into[row] = new
        else:
            into.pop(row, None)


def add(into: Delta, row: Row, weight: int) -> None:
    """Add one weighted row in place."""
    new = into.get(row, 0) + weight
    if new:
        into[row] = new
    else:
        into.pop(row, None)


def negated(delta: Delta) -> Delta:
    """Return the inverse of a delta."""
    return {row: -weight for row, weight in delta.items()}


def difference(new: Delta, old: Delta) -> Delta:
    """Return the delta that turns `old` into `new`."""
    result = dict(new)
    accumulate(result, negated(old))
    return result


def from_rows(rows: Iterable[Row]) -> Delta:
    """Return a bag of rows as a Z-set."""
    result: Delta = {}
    for row in rows:
        result[row] = result.get(row, 0) + 1
    return result


def switched(weights: Delta, delta: Delta) -> Delta:
    """Add a delta to weights in place; return 1 per row that appears, -1 per row that disappears.

    A row is there while its weight is positive. No weight of the delta is zero.

    Examples:
        >>> weights = {("a",): 1}
        >>> switched(weights, {("a",): 1, ("b",): 2}), switched(weights, {("a",): -2})
        ({('b',): 1}, {('a',): -1})
    """
    get = weights.get
    result: Delta = {}
    for row, weight in delta.items():
        old = get(row, 0)
        new = old + weight
        if new:
            weights[row] = new
        else:
            del weights[row]
        if old <= 0 < new:
            result[row] = 1
        elif new <= 0 < old:
            result[row] = -1
    return result


def expand(relation: Delta) -> Iterator[Row]:
    """Yield every row as often as its weight says.

    Raises:
        ValueError: A weight is negative, so this is no relation.
    """
    for row, weight in relation.items():
        if weight < 0:
            raise ValueError(f"row {row} has weight {weight}: not a relation")
        for _ in range(weight):
            yield row


def sort_key(row: Row) -> tuple[tuple[int, object], ...]:
    """Return a total order over rows of mixed values: NULL first, then by kind and value."""
    return tuple(_value_key(value) for value in row)


def _value_key(value: object) -> tuple[int, object]:
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, int | float):
        return (2, value)
    return (3, value)
