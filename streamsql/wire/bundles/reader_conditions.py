"""Conditions by which a site finds the readers that need a row, without asking each of them.

They are looked up in `stream_engine/exchange/filter_bank.py`; `needed_rows` derives them.
"""

import sys
from dataclasses import dataclass, field

from streamsql.algebra.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    map_columns,
)
from streamsql.data.types import DataType

Bound = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Term:
    """An expression over a row, by whose value readers are found.

    Attributes:
        text: Equal for equal expressions only.
        expression: Without names of columns.
    """

    text: str
    expression: Expression = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OneOf:
    """The term has one of some values; none is NaN."""

    term: Term
    values: frozenset[Bound]


@dataclass(frozen=True, slots=True)
class Within:
    """The term is above and below bounds, or there is only one; none is NaN.

    Attributes:
        low: The value and 0 if it is in, 1 if not; None: there is no such bound.
        high: The value and 1 if it is in, 0 if not; None: there is no such bound.
    """

    term: Term
    low: tuple[Bound, int] | None = None
    high: tuple[Bound, int] | None = None


@dataclass(frozen=True, slots=True)
class Containing:
    """The term is a text with some characters in it, at least one."""

    term: Term
    piece: str


@dataclass(frozen=True, slots=True)
class Turning:
    """A comparison is TRUE with a constant inside: `a > b + 3`.

    As the constant grows the comparison turns once, from FALSE to TRUE or from TRUE to FALSE, where
    it is not NULL; that it is with an interval of constants. See `turning_constants`.

    Attributes:
        term: The comparison, with the column `place` where it has the constant.
        place: Behind all columns of the comparison.
        constant: Finite.
    """

    term: Term
    place: int
    constant: int | float


Simple = OneOf | Within | Containing | Turning


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of several conditions holds."""

    branches: tuple[Simple, ...]


RowCondition = Simple | AnyOf

Way = tuple[type[Simple], Term]
"""Rows are found by a kind of condition on a term."""


def branches(condition: RowCondition) -> tuple[Simple, ...]:
    """Return the conditions of which one has to hold."""
    return condition.branches if isinstance(condition, AnyOf) else (condition,)


def ways(condition: RowCondition) -> frozenset[Way]:
    """Return how rows are found for which a condition may hold."""
    return frozenset((type(branch), branch.term) for branch in branches(condition))


def term_of(expression: Expression) -> Term:
    """Return the term of an expression: the same for the same positions and constants."""
    unnamed = map_columns(expression, lambda c: Column(c.position, "", c.dtype))
    return Term(sys.intern(repr(unnamed)), unnamed)


def predicate_of(condition: RowCondition) -> Expression:
    """Return a predicate that is TRUE where a condition holds."""
    parts = tuple(map(_simple_predicate, branches(condition)))
    return parts[0] if len(parts) == 1 else Call("OR", parts, DataType.BOOLEAN)


def _simple_predicate(condition: Simple) -> Expression:
    term = condition.term.expression
    match condition:
        case OneOf(values=values):
            listed = [Literal(value, term.dtype) for value in values]
            return Call("IN", (term, *listed), DataType.BOOLEAN)
        case Containing(piece=piece):
            place = Call("POSITION", (Literal(piece, term.dtype), term), DataType.INTEGER)
            return Call(">", (place, Literal(0, DataType.INTEGER)), DataType.BOOLEAN)
        case Within(low=low, high=high):
            tests = [] if low is None else [(">" if low[1] else ">=", low[0])]
            tests += [] if high is None else [("<=" if high[1] else "<", high[0])]
            literals = ((name, Literal(value, term.dtype)) for name, value in tests)
            return conjunction([Call(n, (term, v), DataType.BOOLEAN) for n, v in literals]) or TRUE
        case Turning(place=place, constant=constant):
            return map_columns(
                term, lambda c: Literal(constant, c.dtype) if c.position == place else c
            )
