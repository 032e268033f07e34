"""Sets of columns that no two rows of a plan share.

They come from declared keys, groups and sets. A key holds for rows without NULLs in it at least:
NULLs match nothing in a join, which is what keys are asked for. No key has a floating-point number:
0.0 and -0.0 may be two rows of a table or two groups, and are equal to a join.
"""

from collections.abc import Iterable

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Materialize,
    OverWindow,
    Plan,
    Project,
    Scan,
    ScanPart,
    SetOperation,
    TopN,
)
from streamsql.data.types import DataType

MAX_KEYS = 8
"""Most keys of one plan that are looked at."""

Key = frozenset[int]


def unique_keys(plan: Plan) -> tuple[Key, ...]:
    """Return keys of a plan; the empty key says that there is one row at most."""
    dtypes = plan.schema.dtypes
    return tuple(
        key for key in _keys(plan) if all(dtypes[column] != DataType.DOUBLE for column in key)
    )


def _keys(plan: Plan) -> tuple[Key, ...]:
    match plan:
        case Scan(key=key, part=ScanPart.ROWS, history=None) if key:
            return (frozenset(key),)
        case Aggregate(group=group):
            return (frozenset(range(len(group))),)
        case Distinct() | SetOperation(all=False):
            own = (frozenset(range(len(plan.schema))),)
            return _few((*(unique_keys(plan.input) if isinstance(plan, Distinct) else ()), *own))
        case Filter(input=child) | TopN(input=child) | OverWindow(input=child):
            return unique_keys(child)
        case Materialize(input=child):
            return unique_keys(child)
        case Project(input=child, expressions=expressions):
            place = {e.position: n for n, e in enumerate(expressions) if isinstance(e, Column)}
            below = unique_keys(child)
            return tuple(frozenset(place[c] for c in k) for k in below if k <= place.keys())
        case Join(kind=kind, left=left) if kind.is_filter:
            return unique_keys(left)
        case Join(kind=JoinKind.INNER | JoinKind.LEFT):
            return _of_pairs(plan)
        case _:
            return ()


def _of_pairs(join: Join) -> tuple[Key, ...]:
    width = len(join.left.schema)
    left, right = unique_keys(join.left), unique_keys(join.right)
    moved = [frozenset(width + c for c in key) for key in right]
    found = [a | b for a in left for b in moved]
    if is_matched_once(join):
        found = [*left, *found]
    if join.kind == JoinKind.INNER and _is_covered(left, {a for a, _ in join.keys}):
        found = [*moved, *found]
    return _few(found)


def is_matched_once(join: Join) -> bool:
    """Whether each left row matches one right row at most."""
    return is_unique(join.right, {b for _, b in join.keys})


def is_unique(plan: Plan, columns: Iterable[int]) -> bool:
    """Whether no two rows of a plan agree in some columns that are not NULL, whatever it reads."""
    return _is_covered(unique_keys(plan), set(columns))


def _is_covered(keys: Iterable[Key], columns: set[int]) -> bool:
    return any(key <= columns for key in keys)


def _few(keys: Iterable[Key]) -> tuple[Key, ...]:
    return tuple(dict.fromkeys(keys))[:MAX_KEYS]
