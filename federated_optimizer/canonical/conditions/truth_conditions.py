"""Predicates read as normal forms of conditions: where they are TRUE, FALSE or NULL.

SQL's logic has three values, so NOT of a predicate is TRUE where that is FALSE, not where it is not
TRUE. Each form is exact: it has TRUE just where the predicate has what is asked for. A comparison
of sums of integers is TRUE where the exact sums compare so and none that is computed on the way
leaves 64 bits, which is a condition, too: `a + 1 > 3` is `a >= 3 AND a <= 2^63 - 2`.

What is not taken apart is a term of its own: `s LIKE '%b%'` is a truth value that is 1. Numbers of
both types are compared by engines exactly or as DOUBLE; from 2^53 on that differs, so constants
beyond are not taken apart.
"""

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction

from federated_optimizer.canonical.conditions.normal_forms import (
    ALWAYS,
    NEVER,
    NormalForm,
    both,
    either,
    one,
)
from federated_optimizer.canonical.conditions.terms import (
    Condition,
    Term,
    between,
    bounded,
    condition,
    is_null,
    is_present,
    order_of,
    term_of,
)
from federated_optimizer.canonical.exact_sums import (
    LEAST,
    MOST,
    ExactSum,
    difference,
    exact_sum,
)
from federated_optimizer.canonical.expression_order import order_key
from federated_optimizer.canonical.linear_comparisons import WHOLE, Number, exact
from federated_optimizer.canonical.regions.regions import (
    Domain,
    Region,
    beginning_with,
    compared,
    everything,
    region,
)
from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.scalar_functions.like_patterns import LikePattern, like_pattern
from streamsql.data.types import DataType

_EXACT_DOUBLES = 2**53
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TESTS: dict[str, Callable[[int | Fraction, int | Fraction], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MOST_BRANCHES = 4


def where(predicate: Expression, *, truth: bool) -> NormalForm:
    """Return where a predicate in canonical form is TRUE, or where it is FALSE.

    Raises:
        TooManyClausesError: The form is too large.
    """
    match predicate:
        case Literal(value=value):
            return ALWAYS if value is truth else NEVER
        case Call(function="AND" | "OR" as name, arguments=arguments):
            parts = [where(each, truth=truth) for each in arguments]
            return both(parts) if (name == "AND") == truth else either(parts)
        case Call(function="NOT", arguments=(inner,)):
            return where(inner, truth=not truth)
        case Call(function="IS NULL" | "IS NOT NULL" as name, arguments=(inner,)):
            return where_null(inner) if (name == "IS NULL") == truth else where_present(inner)
        case Call(function=name, arguments=(left, right)) if name in _TESTS:
            return _compared(name, left, right, truth=truth)
        case Call(function="IN", arguments=(needle, *candidates)):
            return _listed(needle, candidates, truth=truth)
        case Call(function="LIKE" | "LIKE ESCAPE", arguments=(text, *rest)):
            return _like(predicate, text, rest, truth=truth)
        case Call(function="STARTS_WITH", arguments=(text, Literal(value=str(prefix)))):
            return _within(term_of(text), beginning_with(prefix), truth=truth)
        case Call(function="COALESCE", arguments=arguments):
            return _first(arguments, truth=truth)
        case Call(function="CASE", arguments=arguments) if len(arguments) <= 2 * _MOST_BRANCHES + 1:
            return _chosen(arguments, truth=truth)
        case _:
            return opaque(predicate, truth=truth)


def opaque(predicate: Expression, *, truth: bool) -> NormalForm:
    """Return where a predicate is TRUE, or FALSE, without taking it apart."""
    value = compared(Domain.TRUTH, "=", int(truth))
    return one(condition(term_of(predicate), value))


def where_null(expression: Expression) -> NormalForm:
    """Return where an expression in canonical form is NULL."""
    match expression:
        case Literal(value=value):
            return ALWAYS if value is None else NEVER
        case Call(function="IS NULL" | "IS NOT NULL"):
            return NEVER
        case Call(function="NOT", arguments=(inner,)):
            return where_null(inner)
        case Call(function="COALESCE", arguments=arguments):
            return both([where_null(each) for each in arguments])
        case Call(function="AND" | "OR" as name, arguments=arguments):
            undecided = [_not(each, truth=name == "OR") for each in arguments]
            return both([either([where_null(each) for each in arguments]), *undecided])
        case Call(function=name, arguments=(left, right)) if name in _TESTS:
            return either([where_null(left), where_null(right)])
        case _ if expression.dtype in WHOLE:
            return _no_sum(exact_sum(expression))
        case _:
            return one(is_null(expression))


def where_present(expression: Expression) -> NormalForm:
    """Return where an expression in canonical form is not NULL."""
    match expression:
        case Literal(value=value):
            return NEVER if value is None else ALWAYS
        case Call(function="IS NULL" | "IS NOT NULL"):
            return ALWAYS
        case Call(function="NOT", arguments=(inner,)):
            return where_present(inner)
        case Call(function="COALESCE", arguments=arguments):
            return either([where_present(each) for each in arguments])
        case Call(function="AND" | "OR"):
            return either([where(expression, truth=True), where(expression, truth=False)])
        case Call(function=name, arguments=(left, right)) if name in _TESTS:
            return both([where_present(left), where_present(right)])
        case _ if expression.dtype in WHOLE:
            found = exact_sum(expression)
            return NEVER if found is None else both(_computed(found, frozenset()))
        case _:
            return one(is_present(expression))


def _not(predicate: Expression, *, truth: bool) -> NormalForm:
    """Return where a predicate is not TRUE, or not FALSE: it may be NULL."""
    return either([where(predicate, truth=not truth), where_null(predicate)])


def _no_sum(found: ExactSum | None) -> NormalForm:
    if found is None or not all(each.factors for each in found.passing):
        return ALWAYS  # a constant on the way does not fit
    missing = [one(is_null(atom)) for atom in found.atoms]
    beyond = [
        one(bounded(each.factors, operator, limit - each.constant))
        for each in found.passing
        for operator, limit in (("<", LEAST), (">", MOST))
    ]
    return either([*missing, *beyond])


def _computed(found: ExactSum, bound: frozenset[Expression]) -> list[NormalForm]:
    """Return that a sum is computed: nothing that it reads is NULL, and all sums fit.

    Args:
        found: The sum.
        bound: What is not NULL by another condition.
    """
    if not all(each.factors for each in found.passing):
        return [NEVER]
    present = [one(is_present(atom)) for atom in found.atoms - bound]
    fitting = [
        one(between(each.factors, LEAST - each.constant, MOST - each.constant))
        for each in found.passing
    ]
    return [*present, *fitting]


def _within(term: Term, values: Region, *, truth: bool) -> NormalForm:
    return one(condition(term, values if truth else values.complement().without_null()))


def _compared(name: str, left: Expression, right: Expression, *, truth: bool) -> NormalForm:
    if isinstance(right, Literal) and isinstance(right.value, bool) and name in ("=", "<>"):
        same = (name == "=") == truth
        return where(left, truth=right.value is same)
    found = _sides(name, left, right)
    if found is None:
        return NEVER
    bound, needed = found
    if isinstance(bound, bool):
        return both(needed) if bound is truth else NEVER
    return both([_within(bound.term, bound.region, truth=truth), *needed])


_Sides = tuple[Condition | bool, list[NormalForm]]
"""Where a comparison is TRUE, given what else must be for it not to be NULL."""


def _sides(name: str, left: Expression, right: Expression) -> _Sides | None:
    """Return how two sides compare; None if that is always NULL."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return _sides(_FLIPPED[name], right, left)
    if any(isinstance(each, Literal) and each.value is None for each in (left, right)):
        return None
    if left.dtype in WHOLE and right.dtype in WHOLE:
        first, second = exact_sum(left), exact_sum(right)
        if first is None or second is None:
            return None
        return _of_sum(name, difference(first, second), 0)
    limit = _limit(left.dtype, right)
    if limit is None:
        return _order(name, left, right)
    if left.dtype == DataType.INTEGER and not isinstance(limit, str):
        whole = exact_sum(left)
        return None if whole is None else _of_sum(name, whole, limit)
    term = term_of(left)
    return condition(term, compared(term.domain, name, limit)), []


def _limit(dtype: DataType, side: Expression) -> Number | None:
    """Return a constant with which engines compare values of a type exactly."""
    if not isinstance(side, Literal):
        return None
    match side.value:
        case str(text) if dtype == DataType.TEXT:
            return text
        case bool():
            return None
        case int() | float() as value if dtype.is_numeric and math.isfinite(value):
            same = side.dtype == dtype
            return exact(value) if same or abs(value) < _EXACT_DOUBLES else None
        case _:
            return None


def _of_sum(name: str, found: ExactSum, limit: int | Fraction) -> _Sides:
    needed = _computed(found, frozenset(found.factors))
    if not found.factors:
        return _TESTS[name](found.constant, limit), needed
    return bounded(found.factors, name, limit - found.constant), needed


def _order(name: str, left: Expression, right: Expression) -> _Sides:
    """Return how two values stand to each other, in no arithmetic."""
    if left == right:
        term = term_of(left)
        ordered = everything(term.domain)
        equal = Region(term.domain, ordered.spans)
        if _TESTS[name](0, 0):
            return condition(term, equal), [one(is_present(left))]
        if name == "<>":
            return condition(term, equal.complement().without_null()), [one(is_present(left))]
        return condition(term, region(term.domain, ())), [one(is_present(left))]
    if order_key(right) < order_key(left):
        left, right, name = right, left, _FLIPPED[name]
    return condition(order_of(left, right), compared(Domain.ORDER, name, 0)), []


def _listed(needle: Expression, candidates: Sequence[Expression], *, truth: bool) -> NormalForm:
    sides = [_sides("=", needle, each) for each in candidates]
    known = [side for side in sides if side is not None]
    if len(known) < len(sides) and not truth:
        return NEVER  # a candidate that is NULL may equal
    terms = {side[0].term if isinstance(side[0], Condition) else None for side in known}
    if len(terms) == 1 and None not in terms and _is_constant(candidates):
        (term,) = terms
        regions = [side[0].region for side in known if isinstance(side[0], Condition)]
        spans = [span for each in regions for span in each.spans]
        if term is not None:
            values = region(term.domain, spans)
            return both([_within(term, values, truth=truth), *known[0][1]])
    parts = [_compared("=", needle, each, truth=truth) for each in candidates]
    return either(parts) if truth else both(parts)


def _is_constant(candidates: Sequence[Expression]) -> bool:
    return all(isinstance(each, Literal) for each in candidates)


def _like(
    predicate: Expression, text: Expression, rest: Sequence[Expression], *, truth: bool
) -> NormalForm:
    pattern = pattern_of(rest)
    if pattern is None:
        return opaque(predicate, truth=truth)
    prefix = only_prefix(pattern)
    if prefix is not None:
        return _within(term_of(text), beginning_with(prefix), truth=truth)
    return opaque(predicate, truth=truth)


def pattern_of(constants: Sequence[Expression]) -> LikePattern | None:
    """Return the pattern of LIKE, from what stands behind the text; None if it is no constant."""
    values = [each.value for each in constants if isinstance(each, Literal)]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(constants) or not texts:
        return None
    pattern = like_pattern(*texts)
    return None if pattern is None or pattern.is_too_long else pattern


def only_prefix(pattern: LikePattern) -> str | None:
    """Return the beginning that is all a pattern asks for; None if it asks for something else."""
    if pattern.tail is None or pattern.middle or pattern.tail.characters:
        return None
    characters = [c for c in pattern.head.characters if c is not None]
    whole = len(characters) == len(pattern.head.characters)
    return "".join(characters) if whole else None


def _first(arguments: Sequence[Expression], *, truth: bool) -> NormalForm:
    """Return where the first argument that is not NULL is TRUE, or FALSE."""
    ways = []
    for number, each in enumerate(arguments):
        missing = [where_null(before) for before in arguments[:number]]
        ways.append(both([*missing, where(each, truth=truth)]))
    return either(ways)


def _chosen(arguments: Sequence[Expression], *, truth: bool) -> NormalForm:
    """Return where the value that CASE chooses is TRUE, or FALSE."""
    ways: list[NormalForm] = []
    passed: list[NormalForm] = []
    for when, then in zip(arguments[:-1:2], arguments[1::2], strict=True):
        ways.append(both([*passed, where(when, truth=True), where(then, truth=truth)]))
        passed.append(_not(when, truth=True))
    return either([*ways, both([*passed, where(arguments[-1], truth=truth)])])
