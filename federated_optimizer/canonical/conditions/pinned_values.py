"""Values of a term whose columns can have only a few values: computed, one after the other."""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

from federated_optimizer.canonical.conditions.terms import Term, term_of
from federated_optimizer.canonical.linear_comparisons import Number, exact
from federated_optimizer.canonical.regions.regions import Domain, Region, before, behind, region
from streamsql.algebra.expressions import Column, Expression, Literal, map_columns, walk
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.algebra.user_functions import is_user_function
from streamsql.data.types import DataType

MAX_CASES = 32
"""Most rows of values for which a term is computed."""

MAX_POINTS = 8
"""Most values that a column may have."""


def literals_of(dtype: DataType, points: Sequence[Number]) -> list[Literal]:
    """Return the constants of a type that equal some numbers."""
    found: list[Literal] = []
    for point in points:
        match dtype:
            case DataType.DOUBLE:
                if isinstance(point, str) or Fraction(float(point)) != point:
                    continue  # no DOUBLE has that value
                found.append(Literal(float(point), dtype))
            case DataType.BOOLEAN:
                found.append(Literal(bool(point), dtype))
            case _:
                found.append(Literal(_whole(point), dtype))
    return found


def _whole(point: Number) -> int | str:
    return point if isinstance(point, str) else int(point)


def pinned_columns(term: Term, regions: Mapping[Term, Region]) -> dict[int, list[Literal]] | None:
    """Return all values of each column of a term; None if one may have many, or is NULL."""
    found: dict[int, list[Literal]] = {}
    for part, _ in term.parts:
        for node in walk(part):
            if isinstance(node, Column) and node.position not in found:
                known = regions.get(term_of(node))
                points = None if known is None or known.null else known.points(MAX_POINTS)
                if points is None:
                    return None
                found[node.position] = literals_of(node.dtype, points)
    return found


def matching_points(regions: Mapping[Term, Region]) -> Iterator[tuple[Term, Region]]:
    """Yield columns of few values, and which of these let the other conditions over them pass."""
    for term, allowed in regions.items():
        if isinstance(term.only, Column) or len(term.columns) != 1:
            continue
        (column,) = {n for part, _ in term.parts for n in walk(part) if isinstance(n, Column)}
        pinned = pinned_columns(term, regions)
        if pinned is None:
            continue
        values = pinned[column.position]
        results = [(value, computed(term, {column.position: [value]})) for value in values]
        kept = [
            exact(value.value)
            for value, result in results
            if result is None or not result.intersection(allowed).is_empty
        ]
        domain = term_of(column).domain
        if column.dtype != DataType.BOOLEAN:
            spans = [(before(value), behind(value)) for value in kept if value is not None]
            yield term_of(column), region(domain, spans)


def computed(term: Term, values: Mapping[int, Sequence[Literal]]) -> Region | None:
    """Return all values of a term; None if that is not known.

    Args:
        term: To be computed.
        values: All values of each column that it reads.
    """
    read = sorted(term.columns)
    if not read or math.prod(len(values[column]) for column in read) > MAX_CASES:
        return None
    if any(_is_foreign(node) for part, _ in term.parts for node in walk(part)):
        return None
    found: list[Number] = []
    null = False
    for row in product(*(values[column] for column in read)):
        given = dict(zip(read, row, strict=True))
        results = [_result(part, given) for part, _ in term.parts]
        if None in results:
            null = True
            continue
        value = _combined(term, [r for r in results if r is not None])
        if value is None:
            return None
        found.append(value)
    spans = [(before(value), behind(value)) for value in found]
    return region(term.domain, spans, null=null)


def _is_foreign(node: Expression) -> bool:
    return is_user_function(getattr(node, "function", ""))


def _result(part: Expression, given: Mapping[int, Literal]) -> float | str | None:
    def put(column: Column) -> Expression:
        return given[column.position]

    result: float | str | None = compile_expression(map_columns(part, put))(())
    return result


def _combined(term: Term, results: Sequence[float | str]) -> Number | None:
    """Return the value of a term from those of its parts; None if it is in no order."""
    if term.domain == Domain.ORDER:
        left, right = results
        try:
            return (left > right) - (left < right)  # type: ignore[operator]
        except TypeError:
            return None
    numbers = list(_numbers(results))
    if len(numbers) < len(results):
        return None
    if len(numbers) == 1 and isinstance(numbers[0], str):
        return numbers[0]
    total = Fraction(0)
    for number, (_, factor) in zip(numbers, term.parts, strict=True):
        if isinstance(number, str):
            return None
        total += factor * number
    return total.numerator if total.denominator == 1 else total


def _numbers(results: Sequence[float | str]) -> Iterator[Number]:
    for result in results:
        if isinstance(result, str):
            yield result
        elif math.isfinite(result):
            yield Fraction(result)
