"""The rows of a fragment that a plan does not drop at once, and one column to find them by.

Comparisons are those of generated code (`scalar_functions.scalar`): of Python's values, never TRUE
for NULL. A plan evaluates its predicates itself, too: nothing rests on what is left out here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
    substituted,
    walk,
)
from streamsql.algebra.operators import Filter, Plan, Project, RemoteSource
from streamsql.algebra.user_functions import is_user_function
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

Bound = bool | int | float | str

_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBERS = (DataType.INTEGER, DataType.DOUBLE, DataType.TIMESTAMP, DataType.INTERVAL)


@dataclass(frozen=True, slots=True)
class OneOf:
    """The column has one of some values; none is NaN."""

    column: int
    values: frozenset[Bound]


@dataclass(frozen=True, slots=True)
class Within:
    """The column is above and below bounds, or there is only one; none is NaN.

    Attributes:
        low: The value and 0 if it is in, 1 if not; None: there is no such bound.
        high: The value and 1 if it is in, 0 if not; None: there is no such bound.
    """

    column: int
    low: tuple[Bound, int] | None = None
    high: tuple[Bound, int] | None = None


RowCondition = OneOf | Within


@dataclass(frozen=True, slots=True)
class NeededRows:
    """The rows of a relation that a reader may need.

    Attributes:
        condition: By which they can be looked up, or None.
        predicate: What is TRUE for them besides, or None.
    """

    condition: RowCondition | None = None
    predicate: Expression | None = None


def needed_rows(plans: Iterable[Plan], fragment: str, schema: Schema) -> NeededRows:
    """Return which rows of a fragment plans may need.

    They may need all where the fragment is read twice, or where it is not below a filter;
    projections may be in between. Functions of users are left to the plans: they take the time
    of the query that calls them, and may fail.

    Args:
        plans: All that may read the fragment.
        fragment: Its id.
        schema: Its columns.
    """
    found = [read for plan in plans for read in _readings(plan, fragment, ())]
    if len(found) != 1:
        return NeededRows()
    predicates = [p for p in found[0] if all(_is_plain(schema, part) for part in walk(p))]
    conditions = {place: c for place, p in enumerate(predicates) if (c := _condition(p))}
    condition = _chosen(list(conditions.values()))
    rest = [
        p for place, p in enumerate(predicates) if not _covers(condition, conditions.get(place))
    ]
    return NeededRows(condition, conjunction(rest))


def _chosen(conditions: Sequence[RowCondition]) -> RowCondition | None:
    """Return the condition that few rows fulfil: a list of values, else bounds on both sides."""
    lists = [condition for condition in conditions if isinstance(condition, OneOf)]
    if lists:
        return min(lists, key=lambda condition: len(condition.values))
    bounds = [condition for condition in conditions if isinstance(condition, Within)]
    joined = [_both(bounds, column) for column in dict.fromkeys(b.column for b in bounds)]
    both = (c for c in joined if c.low is not None and c.high is not None)
    return next(both, joined[0] if joined else None)


def _covers(chosen: RowCondition | None, other: RowCondition | None) -> bool:
    """Whether the chosen condition holds only where another one of the same plan does."""
    if isinstance(chosen, Within):
        return isinstance(other, Within) and chosen.column == other.column
    return chosen is not None and chosen == other


def _readings(
    plan: Plan, fragment: str, predicates: tuple[Expression, ...]
) -> Iterator[tuple[Expression, ...]]:
    """Yield, for each reading of a fragment, predicates of which each drops a row if not TRUE.

    Args:
        plan: Its rows are dropped where one of the `predicates` is not TRUE.
        fragment: An id.
        predicates: Over the columns of the plan.
    """
    match plan:
        case RemoteSource():
            if plan.fragment == fragment:
                yield predicates
        case Filter(input=child, predicate=predicate):
            yield from _readings(child, fragment, (*predicates, *conjuncts(predicate)))
        case Project(input=child, expressions=expressions):
            moved = [substituted(predicate, expressions) for predicate in predicates]
            below = tuple(predicate for predicate in moved if predicate is not None)
            yield from _readings(child, fragment, below)
        case _:
            for child in plan.inputs:
                yield from _readings(child, fragment, ())


def _condition(predicate: Expression) -> RowCondition | None:
    match predicate:
        case Call(function="=" | "<" | "<=" | ">" | ">=" as name, arguments=(left, right)):
            match left, right:
                case Column(), Literal():
                    return _comparison(left, name, right)
                case Literal(), Column():
                    return _comparison(right, _TURNED[name], left)
                case _:
                    return None
        case Call(function="IN", arguments=(Column() as column, *candidates)):
            return _one_of(column, candidates)
        case Call(function="OR", arguments=parts):
            return _any_of([_condition(part) for part in parts])
        case _:
            return None


def _comparison(column: Column, name: str, literal: Literal) -> RowCondition | None:
    value = literal.value
    if value is None or not _is_comparable(column, value):
        return None
    match name:
        case "=":
            return OneOf(column.position, frozenset((value,)))
        case ">" | ">=":
            return Within(column.position, low=(value, int(name == ">")))
        case _:
            return Within(column.position, high=(value, int(name == "<=")))


def _one_of(column: Column, candidates: Sequence[Expression]) -> OneOf | None:
    values = [c.value for c in candidates if isinstance(c, Literal) and c.value is not None]
    literals = sum(isinstance(c, Literal) for c in candidates)
    if literals < len(candidates) or not all(_is_comparable(column, v) for v in values):
        return None
    return OneOf(column.position, frozenset(values))


def _any_of(parts: Sequence[RowCondition | None]) -> OneOf | None:
    """Return a condition that holds where one of several does, if all list values of a column."""
    values: set[Bound] = set()
    columns = set()
    for part in parts:
        if not isinstance(part, OneOf):
            return None
        columns.add(part.column)
        values |= part.values
    return OneOf(columns.pop(), frozenset(values)) if len(columns) == 1 else None


def _is_plain(schema: Schema, part: Expression) -> bool:
    """Whether a part of a predicate may be evaluated for a row of a fragment."""
    match part:
        case Column():  # values of another type could not be compared
            is_there = part.position < len(schema)
            return is_there and schema.dtypes[part.position] == part.dtype
        case Call():
            return not is_user_function(part.function)
        case _:
            return True


def _is_comparable(column: Column, value: Bound) -> bool:
    """Whether a constant is of the kind that the column's values have, and equals itself."""
    if column.dtype == DataType.TEXT:
        return isinstance(value, str)
    if column.dtype == DataType.BOOLEAN:
        return isinstance(value, bool)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return column.dtype in _NUMBERS and is_number and not is_nan(value)


def is_nan(value: Bound) -> bool:
    """Return whether a value differs from itself: no comparison with it is TRUE, but `<>`."""
    return isinstance(value, float) and isnan(value)


def _both(bounds: Iterable[Within], column: int) -> Within:
    """Return the narrowest bounds of a column."""
    of_column = [bound for bound in bounds if bound.column == column]
    lows = [bound.low for bound in of_column if bound.low is not None]
    highs = [bound.high for bound in of_column if bound.high is not None]
    return Within(column, max(lows, default=None), min(highs, default=None))
