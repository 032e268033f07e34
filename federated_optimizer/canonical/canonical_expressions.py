"""Canonical forms of expressions: the same value for every row, NULL, NaN and rounding included.

| written                           | canonical                                            |
|-----------------------------------|------------------------------------------------------|
| `1 + 2`                           | `3`: constant parts are evaluated                    |
| `b + a`, `b * a`, `b = a`         | operands in a fixed order                            |
| `a > b`, `a >= b`                 | `b < a`, `b <= a`                                    |
| `a - 3`, `(a + 1) + 2`            | `a + -3`, `a + 3`                                    |
| `a * 1`, `a + 0`, `a * -1`        | `a`, `a`, `-a` (the first two of integers and times) |
| `NOT (a = b)`, `NOT (a OR b)`     | `a <> b`, `(NOT a) AND (NOT b)`                      |
| `NOT (a < b)`                     | `b <= a`, unless one is DOUBLE: NaN is neither       |
| `(a AND b) AND c`, `a OR a`       | flat, sorted, each part once                         |
| `x IN (2, 1, 1)`, `x IN (1)`      | `x IN (1, 2)`, `x = 1`                               |
| `x LIKE 'abc'`                    | `x = 'abc'`                                          |
| `DISTANCE(p, q)`                  | ends in a fixed order: the sum of squares is the same|

Sums of integers are not regrouped but where constants have one sign: `(a + 3) - 2` is NULL near
2^63 where `a + 1` is not. Sums of DOUBLE are not regrouped at all. Constants of DOUBLE that equal
zero are `0.0` in comparisons; elsewhere `-0.0` is written `-(0.0)`, and shown with its sign.

Functions of users are left as they are; only their arguments are brought into form. So is an
expression of more than 1,000 parts: only what is written alike is the same then.
"""

import math
from collections.abc import Callable, Iterable

from federated_optimizer.canonical.constant_folding import evaluated
from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.canonical.expression_order import order_key
from federated_optimizer.canonical.linear_comparisons import WHOLE
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.scalar_functions.like_patterns import like_pattern
from streamsql.algebra.user_functions import is_user_function
from streamsql.data.types import DataType

_BOOLEAN = DataType.BOOLEAN
_TRUE, _FALSE = Literal(True, _BOOLEAN), Literal(False, _BOOLEAN)
_TURNED = {">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", "IS NULL": "IS NOT NULL"}
_OPPOSITE["IS NOT NULL"] = "IS NULL"
_ORDERED = frozenset({"<", "<="})
_COMPARED = frozenset({"=", "<>", "<", "<=", "IN"})
_LEAST, _MOST = -(2**63), 2**63 - 1

MAX_PARTS = 1_000
"""Most parts of an expression that is read: a list of 30,000 constants took a second."""


def canonical(expression: Expression) -> Expression:
    """Return the canonical form of an expression; columns have no names.

    Examples:
        >>> from streamsql.algebra.expressions import expression_text
        >>> a, two = Column(0, "a", DataType.INTEGER), Literal(2, DataType.INTEGER)
        >>> expression_text(canonical(Call(">", (a, two), DataType.BOOLEAN)))
        '2 < '
    """
    return _canonical(expression, simplify=not is_large(expression))


canonical_form = exactly_cached(16_384)(canonical)
"""Returns the canonical form of an expression, as `canonical`: most are asked for several times."""


def is_large(expression: Expression) -> bool:
    """Return whether an expression has too many parts to be read."""
    count, waiting = 0, [expression]
    while waiting and count <= MAX_PARTS:
        part = waiting.pop()
        if isinstance(part, Call):
            waiting += part.arguments
            count += len(part.arguments)
    return count > MAX_PARTS


def _canonical(expression: Expression, *, simplify: bool) -> Expression:
    match expression:
        case Column(position=position, dtype=dtype):
            return Column(position, "", dtype)
        case Literal(value=float(value), dtype=dtype) if value == 0 and _is_negative(value):
            return Call("NEGATE", (Literal(0.0, dtype),), dtype)
        case Literal():
            return expression
        case Call(function=function, arguments=arguments, dtype=dtype):
            parts = tuple([_canonical(each, simplify=simplify) for each in arguments])
            made = Call(function, parts, dtype)
            return made if not simplify or is_user_function(function) else _simplified(made)


def _is_negative(value: float) -> bool:
    return math.copysign(1.0, value) < 0


def _simplified(call: Call) -> Expression:
    """Return a call whose arguments are canonical in its canonical form."""
    if call.function in _COMPARED:
        call = Call(call.function, tuple(map(_unsigned, call.arguments)), call.dtype)
    constants = tuple(map(_constant, call.arguments))
    if call.arguments and None not in constants:
        folded = evaluated(Call(call.function, tuple(filter(None, constants)), call.dtype))
        if isinstance(folded, Literal):
            return canonical(folded)
        return call
    simplify = _FORMS.get(call.function)
    return call if simplify is None else simplify(call)


def _constant(expression: Expression) -> Literal | None:
    """Return a canonical constant as it was: minus zero is a call."""
    match expression:
        case Literal():
            return expression
        case Call(function="NEGATE", arguments=(Literal(value=0.0),), dtype=DataType.DOUBLE):
            return Literal(-0.0, DataType.DOUBLE)
        case _:
            return None


def _unsigned(expression: Expression) -> Expression:
    constant = _constant(expression)
    if constant is not None and constant.dtype == DataType.DOUBLE and constant.value == 0:
        return Literal(0.0, DataType.DOUBLE)
    return expression


def _in_order(arguments: Iterable[Expression]) -> tuple[Expression, ...]:
    return tuple(sorted(arguments, key=order_key))


def _commutative(call: Call) -> Expression:
    return Call(call.function, _in_order(call.arguments), call.dtype)


def _turned(call: Call) -> Expression:
    return _simplified(Call(_TURNED[call.function], call.arguments[::-1], call.dtype))


def _logical(call: Call) -> Expression:
    """Return AND or OR, flat: the value that decides, and nothing of the other one."""
    decides, other = (_FALSE, _TRUE) if call.function == "AND" else (_TRUE, _FALSE)
    parts: list[Expression] = []
    for argument in call.arguments:
        if isinstance(argument, Call) and argument.function == call.function:
            parts.extend(argument.arguments)
        else:
            parts.append(argument)
    if decides in parts:
        return decides
    kept = _in_order({part for part in parts if part != other})
    if len(kept) > 1:
        return Call(call.function, kept, _BOOLEAN)
    return kept[0] if kept else other


def _negated(call: Call) -> Expression:
    (inner,) = call.arguments
    match inner:
        case Call(function="NOT", arguments=(twice,)):
            return twice
        case Call(function="AND" | "OR" as name, arguments=arguments):
            parts = tuple(_simplified(Call("NOT", (part,), _BOOLEAN)) for part in arguments)
            return _simplified(Call("OR" if name == "AND" else "AND", parts, _BOOLEAN))
        case Call(function=name, arguments=arguments) if name in _OPPOSITE:
            may_be_nan = any(argument.dtype == DataType.DOUBLE for argument in arguments)
            if name in _ORDERED and may_be_nan:
                return call
            return _simplified(Call(_OPPOSITE[name], arguments, _BOOLEAN))
        case _:
            return call


def _listed(call: Call) -> Expression:
    needle, *candidates = call.arguments
    kept = _in_order(set(candidates))
    if len(kept) == 1:
        return _simplified(Call("=", (needle, *kept), _BOOLEAN))
    return Call("IN", (needle, *kept), _BOOLEAN)


def _like(call: Call) -> Expression:
    """Return LIKE as simply as its pattern is: `=` without wildcards, no idle ESCAPE."""
    text, pattern, *rest = call.arguments
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return call
    escape = ""
    if rest:
        written = rest[0]
        if not isinstance(written, Literal) or not isinstance(written.value, str):
            return call
        escape = written.value
    compiled = like_pattern(pattern.value, escape)
    if compiled is None:
        return call
    if compiled.tail is None and None not in compiled.head.characters:
        whole = "".join(c for c in compiled.head.characters if c is not None)
        return _simplified(Call("=", (text, Literal(whole, DataType.TEXT)), _BOOLEAN))
    if len(escape) == 1 and escape not in pattern.value:
        return Call("LIKE", (text, pattern), _BOOLEAN)
    return call


def _sum(call: Call) -> Expression:
    first, second = _in_order(call.arguments)
    if call.dtype in WHOLE and isinstance(second, Literal):
        return _plus_constant(first, second, call.dtype)
    return Call("+", (first, second), call.dtype)


def _plus_constant(first: Expression, constant: Literal, dtype: DataType) -> Expression:
    """Return a sum of integers or times with a constant, merged with one of the same sign."""
    value = constant.value
    if value == 0 and first.dtype == dtype:
        return first
    match first:
        case Call(function="+", arguments=(inner, Literal(value=int(old), dtype=kind))) if (
            isinstance(value, int)
            and kind == constant.dtype
            and old * value > 0
            and _LEAST <= old + value <= _MOST
        ):
            return Call("+", (inner, Literal(old + value, kind)), dtype)
        case _:
            return Call("+", (first, constant), dtype)


def _difference(call: Call) -> Expression:
    """Return a difference with a constant as a sum, which it is to every engine."""
    first, second = call.arguments
    constant = _constant(second)
    if constant is None or constant.dtype == DataType.TIMESTAMP:
        return call
    match constant.value:
        case bool() | None | str():
            return call
        case number if number == _LEAST and isinstance(number, int):
            return call
        case number:
            minus = canonical(Literal(-number, constant.dtype))
            return _simplified(Call("+", (first, minus), call.dtype))


def _product(call: Call) -> Expression:
    made = Call("*", _in_order(call.arguments), call.dtype)
    match made.arguments:
        case (inner, Literal(value=1)) if inner.dtype == call.dtype in WHOLE:
            return inner
        case (inner, Literal(value=-1)) if inner.dtype == call.dtype:
            return _simplified(Call("NEGATE", (inner,), call.dtype))
        case _:
            return made


def _quotient(call: Call) -> Expression:
    match call.arguments:
        case (inner, Literal(value=1)) if inner.dtype == call.dtype in WHOLE:
            return inner
        case _:
            return call


def _cast(call: Call) -> Expression:
    (inner,) = call.arguments
    return inner if inner.dtype == call.dtype != DataType.DOUBLE else call


def _extreme(call: Call) -> Expression:
    """Return LEAST or GREATEST: of 0.0 and -0.0 the first is taken, others may be exchanged."""
    return call if call.dtype == DataType.DOUBLE else _commutative(call)


def _distance(call: Call) -> Expression:
    half = len(call.arguments) // 2
    ends = (call.arguments[:half], call.arguments[half:])
    first, second = sorted(ends, key=lambda end: tuple(map(order_key, end)))
    return Call("DISTANCE", (*first, *second), call.dtype)


_FORMS: dict[str, Callable[[Call], Expression]] = {
    "=": _commutative,
    "<>": _commutative,
    ">": _turned,
    ">=": _turned,
    "AND": _logical,
    "OR": _logical,
    "NOT": _negated,
    "IN": _listed,
    "LIKE": _like,
    "LIKE ESCAPE": _like,
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": _quotient,
    "CAST": _cast,
    "LEAST": _extreme,
    "GREATEST": _extreme,
    "DISTANCE": _distance,
}
