"""Scalar expressions as Spark columns."""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import add, and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as fn

from static_engine.lowering import spark_text
from static_engine.lowering.python_functions import call_python, call_python_on_list
from static_engine.lowering.spark_operators import (
    COMPARISONS,
    absolute,
    arithmetic,
    cast,
    compare,
    negate,
    square_root,
    whole,
)
from static_engine.lowering.spark_types import INTEGRAL, SPARK_TYPES, as_type, constant, null
from streamsql.algebra.expressions import Call, Expression, Literal
from streamsql.algebra.expressions import Column as ColumnReference
from streamsql.algebra.scalar_functions.scalar import FUNCTIONS
from streamsql.algebra.user_functions import INSTALLED, is_called_on_null, is_user_function
from streamsql.data.types import DataType, Value
from streamsql.errors import InternalError

_LONG_LIST = 200
_MENTIONS = 5
"""REPLACE mentions its text so often; no other function mentions an argument more often."""
_BOUND_FROM = 200
_REPEATING = frozenset(
    {*"+-*/%", "||", "REPLACE", "LEAST", "GREATEST", "ABS", "FLOOR", "CEIL", "SQRT", *COMPARISONS}
)
"""Functions that mention an argument more than once, and are none of Python."""
Lowered = list[Column]


def lower_expression(expression: Expression, row: Sequence[Column]) -> Column:
    """Return an expression over the columns of its input row.

    Raises:
        InternalError: The function is unknown here, although the binder let it pass.
    """
    return _sized(expression, row)[0]


def _sized(expression: Expression, row: Sequence[Column]) -> tuple[Column, int]:
    """Return a column and a bound of how many nodes Spark's tree of it has."""
    match expression:
        case ColumnReference(position=position):
            return row[position], 1
        case Literal(value=value, dtype=dtype):
            return constant(value, dtype), 1
        case Call(function="IN", arguments=(needle, *candidates)) if _is_long(needle, candidates):
            column, size = _sized(needle, row)
            return call_python(_membership(candidates), DataType.BOOLEAN, [column]), size + 1
        case Call(function="||") if any(map(_is_concatenation, expression.arguments)):
            # One check of the whole: a part that is too long makes the whole too long.
            texts = tuple(_leaves_of_concatenation(expression))
            return _sized(Call("||", texts, expression.dtype), row)
        case Call(function=name, arguments=arguments):
            parts = [_sized(argument, row) for argument in arguments]
            lowered, size = [column for column, _ in parts], 1 + sum(size for _, size in parts)
            if not _repeats(expression):
                return _call(name, expression, lowered), size
            if size > _BOUND_FROM:
                return _bound(expression, lowered), size + 2 * len(lowered)
            return _call(name, expression, lowered), _MENTIONS * size


def _is_concatenation(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == "||"


def _leaves_of_concatenation(expression: Expression) -> Iterator[Expression]:
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case Call(function="||", arguments=arguments):
                waiting.extend(reversed(arguments))
            case leaf:
                yield leaf


def _repeats(call: Call) -> bool:
    """Whether Spark's tree of a call has one of its arguments more than once."""
    if call.function in "+-*" and all(a.dtype in INTEGRAL for a in call.arguments):
        return False
    return call.function in _REPEATING


def _bound(call: Call, lowered: Lowered) -> Column:
    """Return a call whose arguments are evaluated once and named: a tree is not doubled by it.

    Spark has no LET; a lambda over a list of one row of arguments is one.
    """
    names = [f"a{number}" for number in range(len(lowered))]
    arguments = fn.struct(*[c.alias(name) for c, name in zip(lowered, names, strict=True)])

    def body(bound: Column) -> Column:
        return _call(call.function, call, [bound[name] for name in names])

    return fn.element_at(fn.transform(fn.array(arguments), body), 1)


def _call(name: str, call: Call, lowered: Lowered) -> Column:
    if name == "IN":
        return _in(call.arguments, lowered)
    if is_user_function(name):
        return _by_user(call, lowered)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(call, lowered)
    if any(argument.dtype == DataType.NULL for argument in call.arguments):
        return null(call.dtype)  # all others are strict
    if name in COMPARISONS:
        left, right = call.arguments
        return compare(name, left, lowered[0], right, lowered[1])
    lower = _STRICT.get(name)
    if lower is None and name in FUNCTIONS:
        lower = _by_python  # Spark's own differs in a corner, or there is none
    if lower is None:
        raise InternalError(f"no scalar function {name!r} on Spark")
    types = [argument.dtype for argument in call.arguments]
    return lower(call, lowered, types)


def _case(call: Call, lowered: Lowered) -> Column:
    values = [
        as_type(column, argument.dtype, call.dtype)
        for argument, column in zip(call.arguments, lowered, strict=True)
    ]
    result = values[-1]
    branches = list(zip(lowered[:-1:2], values[1::2], strict=True))
    for condition, value in reversed(branches):
        result = fn.when(condition.cast("boolean"), value).otherwise(result)
    return result


def _coalesce(call: Call, lowered: Lowered) -> Column:
    pairs = zip(call.arguments, lowered, strict=True)
    return fn.coalesce(*[as_type(column, a.dtype, call.dtype) for a, column in pairs])


def _is_long(needle: Expression, candidates: Sequence[Expression]) -> bool:
    """Whether a list is one of so many constants that a column for each would take seconds."""
    return len(candidates) > _LONG_LIST and all(
        isinstance(c, Literal) and (c.value is None or _are_alike(c.dtype, needle.dtype))
        for c in candidates
    )


def _are_alike(one: DataType, other: DataType) -> bool:
    """Whether Python's equality of two types is that of the language: of numbers it is exact."""
    numbers = (DataType.INTEGER, DataType.DOUBLE)
    return one == other or (one in numbers and other in numbers)


def _membership(candidates: Sequence[Expression]) -> Callable[[Value], bool | None]:
    given = [c.value for c in candidates if isinstance(c, Literal)]
    values = frozenset(value for value in given if value is not None)
    otherwise = None if None in given else False

    def is_in(value: Value) -> bool | None:
        return True if value in values else otherwise

    return is_in


def _in(arguments: tuple[Expression, ...], lowered: Lowered) -> Column:
    needle, *candidates = arguments
    if needle.dtype == DataType.NULL:
        return null(DataType.BOOLEAN)
    if all(candidate.dtype in (needle.dtype, DataType.NULL) for candidate in candidates):
        kind = SPARK_TYPES[needle.dtype]
        return fn.when(
            lowered[0].isNotNull(), lowered[0].isin(*[c.cast(kind) for c in lowered[1:]])
        )
    tests = [
        null(DataType.BOOLEAN)
        if candidate.dtype == DataType.NULL
        else compare("=", needle, lowered[0], candidate, column)
        for candidate, column in zip(candidates, lowered[1:], strict=True)
    ]
    return reduce(or_, tests)


def _booleans(lowered: Lowered) -> Lowered:
    return [column.cast("boolean") for column in lowered]  # a bare NULL has another Spark type


_SPECIAL: dict[str, Callable[[Call, Lowered], Column]] = {
    "AND": lambda _call, lowered: reduce(and_, _booleans(lowered)),
    "OR": lambda _call, lowered: reduce(or_, _booleans(lowered)),
    "CASE": _case,
    "COALESCE": _coalesce,
    "CAST": lambda call, lowered: cast(lowered[0], call.arguments[0].dtype, call.dtype),
    "IS NULL": lambda _call, lowered: lowered[0].isNull(),
    "IS NOT NULL": lambda _call, lowered: lowered[0].isNotNull(),
}
"""Functions that look at NULL themselves."""

Types = list[DataType]
Strict = Callable[[Call, Lowered, Types], Column]


def _arithmetic(call: Call, lowered: Lowered, types: Types) -> Column:
    result = arithmetic(call.function, lowered[0], types[0], lowered[1], types[1])
    return result.cast(SPARK_TYPES[call.dtype])


def _by_python(call: Call, lowered: Lowered, _types: Types) -> Column:
    return call_python(FUNCTIONS[call.function], call.dtype, lowered)


def _by_user(call: Call, lowered: Lowered) -> Column:
    function = INSTALLED.function(call.function, call.dtype)
    by_python = call_python_on_list if is_called_on_null(call.function) else call_python
    return by_python(function, call.dtype, lowered)


def _round(call: Call, lowered: Lowered, types: Types) -> Column:
    if types[0] in INTEGRAL and len(lowered) == 1:
        return lowered[0].cast("double")
    return fn.rint(lowered[0]) if len(lowered) == 1 else _by_python(call, lowered, types)


def _extreme(choose: Callable[..., Column]) -> Strict:
    def lower(call: Call, lowered: Lowered, types: Types) -> Column:
        same = [as_type(c, t, call.dtype) for c, t in zip(lowered, types, strict=True)]
        if len(same) == 1:
            return same[0]
        return fn.when(reduce(and_, [c.isNotNull() for c in same]), choose(*same))

    return lower


def _whole(rounding: Callable[[Column], Column]) -> Strict:
    return lambda _call, lowered, types: whole(lowered[0], types[0], rounding)


def _concatenate(_call: Call, lowered: Lowered, types: Types) -> Column:
    parts = [
        cast(column, dtype, DataType.TEXT) for column, dtype in zip(lowered, types, strict=True)
    ]
    return spark_text.unless_too_long(fn.concat(*parts), reduce(add, map(fn.length, parts)))


def _like(call: Call, lowered: Lowered, types: Types) -> Column:
    match call.arguments:
        case (_, Literal(value=str(pattern))) if spark_text.is_for_java(pattern):
            return spark_text.like(lowered[0], pattern)
        case _:
            return _by_python(call, lowered, types)  # Spark's own goes back at every %


_STRICT: dict[str, Strict] = {
    **dict.fromkeys("+-*/%", _arithmetic),
    **dict.fromkeys(("POWER", "DISTANCE"), _by_python),
    "||": _concatenate,
    "NOT": lambda _call, lowered, _types: ~lowered[0],
    "NEGATE": lambda _call, lowered, types: negate(lowered[0], types[0]),
    "ABS": lambda _call, lowered, types: absolute(lowered[0], types[0]),
    "ROUND": _round,
    "FLOOR": _whole(fn.floor),
    "CEIL": _whole(fn.ceil),
    "SQRT": lambda _call, lowered, _types: square_root(lowered[0]),
    "LEAST": _extreme(fn.least),
    "GREATEST": _extreme(fn.greatest),
    "LIKE": _like,
    "LOWER": lambda _call, lowered, _types: fn.lower(lowered[0]),
    "UPPER": lambda _call, lowered, _types: fn.upper(lowered[0]),
    "LENGTH": lambda _call, lowered, _types: fn.length(lowered[0]).cast("bigint"),
    "TRIM": lambda _call, lowered, _types: spark_text.trim(lowered[0]),
    "SUBSTRING": lambda _call, lowered, _types: spark_text.substring(*lowered),
    "POSITION": lambda _call, lowered, _types: spark_text.position(lowered[0], lowered[1]),
    "REPLACE": lambda call, lowered, _types: spark_text.replace(
        lowered[0], call.arguments[1], lowered[1], lowered[2]
    ),
}
"""Functions that are NULL when an argument is."""
SUPPORTED = frozenset({*_SPECIAL, *_STRICT, *COMPARISONS, *FUNCTIONS, "IN"})
"""Every function that can be lowered."""
