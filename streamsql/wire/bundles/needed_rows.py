"""The rows of a fragment that a plan does not drop at once, and one column to find them by.

Sites look readers up by it (`stream_engine/exchange/filter_bank.py`), and the optimizer prices what
a reader is asked for (`federated_optimizer/costs/handed_rows.py`).

Comparisons are those of generated code (`scalar_functions.scalar`): of Python's values, never TRUE
for NULL. A plan evaluates its predicates itself, too: nothing rests on what is left out here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
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

MAX_LISTED = 1_000
"""Values of an IN list by which rows are looked up; for a longer one each row is looked at."""

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


@dataclass(frozen=True, slots=True)
class Reading:
    """A place where a plan reads a relation.

    Attributes:
        leaf: What is read there.
        above: The filters and projections right above it, lowest first.
        predicates: Over the columns of the leaf; a row is dropped where one of them is not TRUE.
    """

    leaf: Plan
    above: tuple[Plan, ...]
    predicates: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Predicates of a reading, as a site evaluates them.

    Attributes:
        condition: By which rows are looked up; None: each row is looked at.
        by: The predicates that say no more than the condition.
        rest: Those that are evaluated besides. Functions of users are in neither.
    """

    condition: RowCondition | None
    by: list[Expression]
    rest: list[Expression]


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
    found = [read for plan in plans for read in readings(plan, partial(_is_fragment, fragment))]
    if len(found) != 1:
        return NeededRows()
    split = looked_up(found[0].predicates, schema)
    return NeededRows(split.condition, conjunction(split.rest))


def _is_fragment(name: str, plan: Plan) -> bool:
    return isinstance(plan, RemoteSource) and plan.fragment == name


def looked_up(predicates: Iterable[Expression], schema: Schema) -> LookedUp:
    """Return how a site finds the rows for which all of some predicates are TRUE.

    Args:
        predicates: Each drops a row if it is not TRUE.
        schema: The columns of the rows.
    """
    plain = [p for p in predicates if all(_is_plain(schema, part) for part in walk(p))]
    conditions = [_condition(predicate) for predicate in plain]
    chosen = _chosen([condition for condition in conditions if condition])
    by, rest = list[Expression](), list[Expression]()
    for predicate, condition in zip(plain, conditions, strict=True):
        (by if _covers(chosen, condition) else rest).append(predicate)
    return LookedUp(chosen, by, rest)


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


def readings(
    plan: Plan,
    is_read: Callable[[Plan], bool],
    above: tuple[Plan, ...] = (),
    predicates: tuple[Expression, ...] = (),
) -> Iterator[Reading]:
    """Yield where a plan reads something, with the predicates that drop rows of it at once.

    Args:
        plan: The reader, or a part of it.
        is_read: Returns whether a part of the plan is what is read.
        above: The filters and projections right above the part, lowest first.
        predicates: Over the columns of the part; its rows are dropped where one is not TRUE.
    """
    if is_read(plan):
        yield Reading(plan, above, predicates)
        return
    match plan:
        case Filter(input=child, predicate=predicate):
            both = (*predicates, *conjuncts(predicate))
            yield from readings(child, is_read, (plan, *above), both)
        case Project(input=child, expressions=expressions):
            moved = [substituted(predicate, expressions) for predicate in predicates]
            below = tuple(predicate for predicate in moved if predicate is not None)
            yield from readings(child, is_read, (plan, *above), below)
        case _:
            for child in plan.inputs:
                yield from readings(child, is_read)


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
    # A value takes 340 bytes in a bank; to evaluate a list takes no longer than to look it up.
    found = frozenset(values)
    return OneOf(column.position, found) if len(found) <= MAX_LISTED else None


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
