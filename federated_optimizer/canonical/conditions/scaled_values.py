"""Parts of one value: a tenth is at most a fifth where the value is not negative.

A *scaled value* is a column, or anything that is not taken apart, times or by a constant above 0:

| type    | written                 | computed as                                        |
|---------|-------------------------|----------------------------------------------------|
| INTEGER | `x / 5`                 | the quotient without its rest, towards 0           |
| DOUBLE  | `x / 5.0`, `0.2 * x`    | the exact quotient or product, rounded; an INTEGER |
|         |                         | x is rounded to DOUBLE before                      |

Cutting off and rounding are monotone. So of two scaled values of one x that are both not NULL, that
with the smaller scale is at most the other one where x >= 0, and at least where x <= 0; and limits
of x, scaled and rounded as engines do, are limits of the scaled value.

Where is it NULL? A quotient of integers where x is. One of DOUBLE where x is NULL, NaN or infinite,
or where the result is too large: so it is not NULL if another one is not that is computed from x,
which tells that x is finite, and the scale is at most 1 or at most the scale of that one.
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from federated_optimizer.canonical.conditions.monotone_limits import computed_limits
from federated_optimizer.canonical.conditions.terms import Term, term_of
from federated_optimizer.canonical.linear_comparisons import exact
from federated_optimizer.canonical.regions.regions import Region, before, behind
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.data.types import DataType

_NUMBERS = (DataType.INTEGER, DataType.DOUBLE)


class Scaled(NamedTuple):
    """The part of a value.

    Attributes:
        value: In canonical form.
        scale: Above 0.
    """

    value: Expression
    scale: Fraction


@lru_cache(maxsize=4_096)
def scaled(expression: Expression) -> Scaled | None:
    """Return an expression in canonical form as a part of a value; None if it is no number.

    Examples:
        >>> a, ten = Column(0, "", DataType.INTEGER), Literal(10, DataType.INTEGER)
        >>> scaled(Call("/", (a, ten), DataType.INTEGER)).scale
        Fraction(1, 10)
    """
    match expression:
        case Call(function="/", arguments=(value, Literal() as constant), dtype=dtype):
            divisor = _constant(constant)
            # An INTEGER by an INTEGER is an INTEGER, anything else a DOUBLE.
            if divisor is not None and dtype in _NUMBERS and value.dtype in _NUMBERS:
                return Scaled(value, 1 / divisor)
        case (
            Call(function="*", arguments=(Literal() as constant, value), dtype=DataType.DOUBLE)
            | Call(function="*", arguments=(value, Literal() as constant), dtype=DataType.DOUBLE)
        ) if value.dtype in _NUMBERS:
            factor = _constant(constant)
            if factor is not None:
                return Scaled(value, factor)
        case Column(dtype=dtype) if dtype in _NUMBERS:
            return Scaled(expression, Fraction(1))
        case _:
            pass
    return None


def _constant(literal: Literal) -> Fraction | None:
    """Return a constant above 0 as engines compute with it."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A whole number beyond 2^53 is rounded where it meets a DOUBLE.
    if isinstance(value, int) and value > 2**53:
        return None
    number = exact(value) if value > 0 and value != float("inf") else None
    return Fraction(number) if number is not None and not isinstance(number, str) else None


class ScaledValues:
    """Scaled values among some expressions, and which are at most others.

    Args:
        expressions: In canonical form.
        regions: What is known of their values.
    """

    def __init__(self, expressions: Iterable[Expression], regions: Mapping[Term, Region]) -> None:
        self._regions = regions
        self._expressions = tuple(expressions)

    @cached_property
    def _known(self) -> dict[tuple[Expression, DataType], dict[Expression, Fraction]]:
        """Their scales, by the value that they are parts of and the type that they have."""
        found: dict[tuple[Expression, DataType], dict[Expression, Fraction]] = {}
        for each in self._expressions:
            part = scaled(each)
            if part is not None:
                found.setdefault((part.value, each.dtype), {})[each] = part.scale
        return found

    def ordered(self) -> Iterator[tuple[Expression, Expression]]:
        """Yield pairs of those that are known, of which the first is at most the second."""
        if not any(isinstance(each, Call) for each in self._expressions):
            return  # mostly all are columns
        for (value, _), scales in self._known.items():
            rises = self._rises(value) if len(scales) > 1 else None
            if rises is not None:
                ascending = sorted(scales, key=scales.__getitem__, reverse=not rises)
                yield from pairwise(ascending)

    def beyond(self, expression: Expression, *, above: bool) -> Iterator[Expression]:
        """Yield those known that are at least an expression, or at most; itself is left out."""
        part = scaled(expression)
        scales: dict[Expression, Fraction] = (
            {} if part is None else self._known.get((part.value, expression.dtype), {})
        )
        rises = self._rises(part.value) if part is not None and scales else None
        if part is None or rises is None:
            return
        for each, scale in scales.items():
            greater = scale >= part.scale if rises is above else scale <= part.scale
            if greater and each != expression:
                yield each

    def kept_beyond(self, expression: Expression, *, above: bool) -> Iterator[Expression]:
        """Yield those beyond an expression that are NULL wherever it is NULL."""
        part = scaled(expression)
        for each in self.beyond(expression, above=above):
            other = scaled(each)
            if part is None or other is None:
                continue
            is_column = expression == part.value  # NULL where the value is, and nowhere else
            # What is computed from a DOUBLE tells that it is finite; the column itself does not.
            tells = isinstance(each, Call) and part.scale <= max(_WHOLE, other.scale)
            if is_column or tells or expression.dtype == DataType.INTEGER:
                yield each

    def limits(self, expression: Expression) -> Region | None:
        """Return where a column or a scaled one lies; None: anywhere."""
        part = scaled(expression)
        if part is None or not isinstance(part.value, Column):
            return None
        if expression == part.value:
            return self._regions.get(term_of(expression))
        return computed_limits(expression, self._regions)

    def _rises(self, value: Expression) -> bool | None:
        """Return whether parts of a value rise with their scale; None where its sign is unknown."""
        known = self._regions.get(term_of(value))
        if known is None or known.hull is None:
            return None
        low, high = known.hull
        if low >= _ZERO[0]:
            return True
        return False if high <= _ZERO[1] else None


_ZERO = (before(0), behind(0))
_WHOLE = Fraction(1)
