"""What needs an order: ORDER BY with LIMIT, and as-of joins."""

from streamsql.algebra.operators import AsOfJoin, JoinKind, TopN
from streamsql.algebra.row_order import in_order
from streamsql.algebra.scalar import key_of
from streamsql.data.delta import sort_key
from streamsql.data.types import Row


def top(plan: TopN, rows: list[Row]) -> list[Row]:
    """Return the first rows of every partition.

    Examples:
        >>> from streamsql.algebra.operators import SortKey, TopN, Values
        >>> from streamsql.data.schema import Schema
        >>> from streamsql.data.types import DataType
        >>> two = Values(((1,), (2,)), Schema.of(("n", DataType.INTEGER)))
        >>> top(TopN(two, (SortKey(0, descending=True),), 1), [(1,), (2,)])
        [(2,)]
    """
    key = key_of(plan.partition)
    partitions: dict[Row, list[Row]] = {}
    for row in rows:
        partitions.setdefault(key(row), []).append(row)
    end = None if plan.limit is None else plan.offset + plan.limit

    ordered = (in_order(members, plan.order) for members in partitions.values())
    return [row for members in ordered for row in members[plan.offset : end]]


def as_of(plan: AsOfJoin, left: list[Row], right: list[Row]) -> list[Row]:
    """Return each left row with the right row that was current at its time."""
    left_key = key_of(tuple(a for a, _ in plan.keys))
    right_key = key_of(tuple(b for _, b in plan.keys))
    padding = (None,) * len(plan.right.schema)
    result = []

    def newest(other: Row) -> tuple[object, object]:
        return (sort_key((other[plan.right_time],)), sort_key(other))

    for row in left:
        time = row[plan.left_time]
        current = [
            other
            for other in right
            if time is not None
            and other[plan.right_time] is not None
            and None not in left_key(row)
            and left_key(row) == right_key(other)
            and _not_after(other[plan.right_time], time, strict=plan.strict)
        ]
        if current:
            result.append(row + max(current, key=newest))
        elif plan.kind == JoinKind.LEFT:
            result.append(row + padding)
    return result


def _not_after(value: object, time: object, *, strict: bool) -> bool:
    a, b = sort_key((value,)), sort_key((time,))  # type: ignore[arg-type]
    return a < b if strict else a <= b
