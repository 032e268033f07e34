"""Sums of integers and times read exactly, and which of their parts may not fit 64 bits."""

from dataclasses import dataclass

from federated_optimizer.canonical.linear_comparisons import WHOLE
from streamsql.algebra.expressions import Call, Expression, Literal

LEAST, MOST = -(2**63), 2**63 - 1

Factors = dict[Expression, int]
"""Multiples by what is multiplied: columns, and calls that are no sums, in canonical form."""


@dataclass(frozen=True, slots=True)
class ExactSum:
    """Multiples of what is not taken apart, and a constant: the value where nothing overflows.

    Attributes:
        factors: Those that are not zero.
        constant: What is added.
        atoms: All that is read; each must not be NULL.
        passing: Sums on the way, this one included, that are NULL where they do not fit 64 bits.
    """

    factors: Factors
    constant: int
    atoms: frozenset[Expression]
    passing: tuple["ExactSum", ...] = ()


def exact_sum(expression: Expression) -> ExactSum | None:
    """Return an expression of integers or times, in canonical form, as a sum.

    None if it is never a number.
    """
    match expression:
        case Literal(value=int(value)):
            return ExactSum({}, int(value), frozenset())
        case Literal():
            return None
        case Call(function="NEGATE", arguments=(inner,)) if inner.dtype in WHOLE:
            return _passed(_scaled(exact_sum(inner), -1))
        case Call(function="+" | "-" as name, arguments=(first, second)) if (
            first.dtype in WHOLE and second.dtype in WHOLE
        ):
            right = _scaled(exact_sum(second), 1 if name == "+" else -1)
            return _passed(_added(exact_sum(first), right))
        case (
            Call(function="*", arguments=(Literal(value=int(factor)), inner))
            | Call(function="*", arguments=(inner, Literal(value=int(factor))))
        ) if inner.dtype in WHOLE:
            return _passed(_scaled(exact_sum(inner), int(factor)))
        case _:
            return ExactSum({expression: 1}, 0, frozenset({expression}))


def difference(left: ExactSum, right: ExactSum) -> ExactSum:
    """Return one sum less another one, which no engine computes."""
    found = _added(left, _scaled(right, -1))
    if found is None:
        raise AssertionError  # of two sums there is a difference
    return found


def limits_of(atom: Expression) -> tuple[int, int]:
    """Return the least and greatest value of what is not taken apart."""
    # -2^63 / -1 is not checked by engines.
    is_quotient = isinstance(atom, Call) and atom.function == "/"
    return LEAST, MOST + 1 if is_quotient else MOST


def range_of(factors: Factors) -> tuple[int, int]:
    """Return the least and greatest value of a sum of multiples."""
    least = most = 0
    for atom, factor in factors.items():
        ends = [factor * end for end in limits_of(atom)]
        least, most = least + min(ends), most + max(ends)
    return least, most


def _scaled(inner: ExactSum | None, factor: int) -> ExactSum | None:
    if inner is None:
        return None
    factors = {atom: factor * old for atom, old in inner.factors.items() if factor}
    return ExactSum(factors, factor * inner.constant, inner.atoms, inner.passing)


def _added(first: ExactSum | None, second: ExactSum | None) -> ExactSum | None:
    if first is None or second is None:
        return None
    factors = dict(first.factors)
    for atom, factor in second.factors.items():
        factors[atom] = factors.get(atom, 0) + factor
    return ExactSum(
        {atom: factor for atom, factor in factors.items() if factor},
        first.constant + second.constant,
        first.atoms | second.atoms,
        (*first.passing, *second.passing),
    )


def _passed(found: ExactSum | None) -> ExactSum | None:
    """Return a sum that is computed: NULL where it does not fit 64 bits."""
    if found is None:
        return None
    least, most = range_of(found.factors)
    if least + found.constant >= LEAST and most + found.constant <= MOST:
        return found
    passing = (*found.passing, ExactSum(found.factors, found.constant, found.atoms))
    return ExactSum(found.factors, found.constant, found.atoms, passing)
