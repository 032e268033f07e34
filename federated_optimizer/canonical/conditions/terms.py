"""Terms: what conditions bound, and conditions: that a term has a value within a region.

A term is an expression, a sum of multiples of integers and times (with coprime factors, the first
of them positive), or the order of two values: -1, 0 or 1 as the first is less, equal or greater.
So `b <= a + 10`, `a - b >= -10` and `2 * b - 2 * a <= 21` bound one term, `a - b`.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import gcd

from federated_optimizer.canonical.exact_sums import Factors, range_of
from federated_optimizer.canonical.expression_order import order_key
from federated_optimizer.canonical.linear_comparisons import WHOLE
from federated_optimizer.canonical.regions.regions import (
    BOTTOM,
    TOP,
    Domain,
    Region,
    Span,
    before,
    behind,
    compared,
    everything,
)
from streamsql.algebra.expressions import (
    Column,
    Expression,
    columns_of,
    expression_text,
    map_columns,
)
from streamsql.data.types import DataType

Parts = tuple[tuple[Expression, int], ...]

_DOMAINS = {
    DataType.DOUBLE: Domain.DENSE,
    DataType.TEXT: Domain.TEXT,
    DataType.BOOLEAN: Domain.TRUTH,
    DataType.NULL: Domain.TRUTH,
    **dict.fromkeys(WHOLE, Domain.WHOLE),
}
_LIMITS: dict[Domain, Span] = {
    Domain.DENSE: (BOTTOM, TOP),
    Domain.TEXT: (before(""), TOP),
    Domain.ORDER: (before(-1), behind(1)),
    Domain.TRUTH: (before(0), behind(1)),
}


class Term:
    """Expression, sum or order that a condition bounds.

    Attributes:
        parts: Expressions in canonical form with their factors; of an order the second has -1.
        domain: Of its values.
    """

    __slots__ = ("__dict__", "_hash", "domain", "parts")

    def __init__(self, parts: Parts, domain: Domain) -> None:
        self.parts = parts
        self.domain = domain
        self._hash = hash((parts, domain))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Term)
            and self._hash == other._hash
            and self.domain == other.domain
            and self.parts == other.parts
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Term({self.text})"

    @cached_property
    def limits(self) -> Span:
        """The cuts between which all of its values are."""
        if self.domain == Domain.WHOLE:
            least, most = range_of(dict(self.parts))
            return before(least), behind(most)
        return _LIMITS[self.domain]

    @cached_property
    def columns(self) -> frozenset[int]:
        """The columns that it reads."""
        return frozenset().union(*(columns_of(part) for part, _ in self.parts))

    @cached_property
    def order(self) -> tuple[object, ...]:
        """A key to sort terms by."""
        return (len(self.parts), self.domain, tuple((order_key(p), f) for p, f in self.parts))

    @property
    def only(self) -> Expression | None:
        """The expression that it is; None for sums and orders."""
        return self.parts[0][0] if len(self.parts) == 1 and self.parts[0][1] == 1 else None

    @property
    def text(self) -> str:
        """The term in words, columns by number."""
        if self.domain == Domain.ORDER:
            (left, _), (right, _) = self.parts
            return f"ORDER({_named(left)}, {_named(right)})"
        return " + ".join(f"{f} * {_named(p)}" if f != 1 else _named(p) for p, f in self.parts)

    def within(self, region: Region) -> Region:
        """Return a region of its values in its one form."""
        return region.within(self.limits)


def _named(expression: Expression) -> str:
    return expression_text(
        map_columns(expression, lambda c: Column(c.position, f"#{c.position}", c.dtype))
    )


@dataclass(frozen=True, slots=True)
class Condition:
    """A term has a value within a region."""

    term: Term
    region: Region


@lru_cache(maxsize=4_096)
def term_of(expression: Expression) -> Term:
    """Return the term of an expression in canonical form."""
    return Term(((expression, 1),), _DOMAINS[expression.dtype])


@lru_cache(maxsize=4_096)
def order_of(left: Expression, right: Expression) -> Term:
    """Return the order of two expressions, in canonical form and in their fixed order."""
    return Term(((left, 1), (right, -1)), Domain.ORDER)


def condition(term: Term, region: Region) -> Condition:
    """Return a condition in its one form."""
    return Condition(term, term.within(region))


def is_null(expression: Expression) -> Condition:
    """Return that an expression in canonical form is NULL."""
    term = term_of(expression)
    return Condition(term, Region(term.domain, (), null=True))


def is_present(expression: Expression) -> Condition:
    """Return that an expression in canonical form is not NULL."""
    term = term_of(expression)
    return Condition(term, everything(term.domain).without_null())


def bounded(factors: Factors, operator: str, limit: int | Fraction) -> Condition:
    """Return that a sum compares TRUE with a constant.

    Args:
        factors: At least one.
        operator: One of `=`, `<>`, `<`, `<=`, `>` and `>=`.
        limit: On the right.
    """
    term, factor = term_of_sum(factors)
    if factor < 0:
        operator = _TURNED[operator]
    return condition(term, compared(Domain.WHOLE, operator, _number(Fraction(limit) / factor)))


_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def term_of_sum(factors: Factors) -> tuple[Term, int]:
    """Return the term of a sum, and the factor that makes the sum of it."""
    parts = sorted(factors.items(), key=lambda part: order_key(part[0]))
    common = gcd(*factors.values())
    if parts[0][1] < 0:
        common = -common
    return Term(tuple((atom, factor // common) for atom, factor in parts), Domain.WHOLE), common


@lru_cache(maxsize=4_096)
def difference_of(first: Expression, second: Expression) -> Term:
    """Return the term of a difference of two atoms, or of the reverse, whichever is the term."""
    return term_of_sum({first: 1, second: -1})[0]


def between(factors: Factors, least: int, most: int) -> Condition:
    """Return that a sum lies between two constants, both included."""
    low, high = bounded(factors, ">=", least), bounded(factors, "<=", most)
    return condition(low.term, low.region.intersection(high.region))


def _number(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value
