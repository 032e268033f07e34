"""Scalar expressions: frozen, typed, positional.

A column is a position in the input row, so engines need no names at run time; the name is kept for
EXPLAIN. Operators are calls too (`=`, `AND`, `+`), with the function names of `scalar.FUNCTIONS`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Union

import msgspec

from streamsql.data.types import MICROSECONDS, DataType, Value, timestamp_text


class Column(msgspec.Struct, frozen=True, tag="column"):
    """The value at a position of the input row."""

    position: int
    name: str
    dtype: DataType


class Literal(msgspec.Struct, frozen=True, tag="literal"):
    """A constant."""

    value: bool | int | float | str | None
    dtype: DataType


class Call(msgspec.Struct, frozen=True, tag="call"):
    """A function or operator applied to arguments.

    CASE is `Call("CASE", (condition, value, …, otherwise))`; CAST takes its target from `dtype`.
    """

    function: str
    arguments: tuple["Expression", ...]
    dtype: DataType


Expression = Union[Column, Literal, Call]  # noqa: UP007  (msgspec resolves the forward reference)

TRUE = Literal(True, DataType.BOOLEAN)


def conjunction(predicates: list[Expression]) -> Expression | None:
    """Join predicates by AND; None when there are none."""
    result: Expression | None = None
    for predicate in predicates:
        result = predicate if result is None else Call("AND", (result, predicate), DataType.BOOLEAN)
    return result


def conjuncts(predicate: Expression | None) -> list[Expression]:
    """Split a predicate at its top-level ANDs."""
    match predicate:
        case None:
            return []
        case Call(function="AND", arguments=arguments):
            return [part for argument in arguments for part in conjuncts(argument)]
        case _:
            return [predicate]


def disjuncts(predicate: Expression) -> list[Expression]:
    """Split a predicate at its top-level ORs."""
    found, waiting = list[Expression](), [predicate]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == "OR":
            waiting.extend(part.arguments[::-1])
        else:
            found.append(part)
    return found


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and everything below it."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, Call):
            waiting.extend(part.arguments[::-1])


# A query of five joins asks 800 times for the columns of 70 expressions: a fifth of normalization.
@lru_cache(maxsize=16_384)
def columns_of(expression: Expression) -> frozenset[int]:
    """Return the positions an expression reads."""
    return frozenset(part.position for part in walk(expression) if isinstance(part, Column))


def map_columns(expression: Expression, change: Callable[[Column], Expression]) -> Expression:
    """Return the expression with every column replaced."""
    # No `match`: registering a query of five joins comes here 10,000 times; it takes half the time.
    if isinstance(expression, Call):
        arguments = [map_columns(each, change) for each in expression.arguments]
        return Call(expression.function, tuple(arguments), expression.dtype)
    return change(expression) if isinstance(expression, Column) else expression


MAX_SIZE = 1_000
"""Most nodes of an expression into which others are put: sums of sums double with every level."""


def substituted(expression: Expression, replacements: Sequence[Expression]) -> Expression | None:
    """Return the expression with column i replaced by the i-th expression.

    None if it would have more than 1,000 nodes, unless only columns are replaced by others.
    """
    if isinstance(expression, Column):
        put = replacements[expression.position]
        if not isinstance(put, Call):
            return put  # most are columns of columns
    nodes = list(walk(expression))
    read = {node.position for node in nodes if isinstance(node, Column)}
    sizes = {position: sum(1 for _ in walk(replacements[position])) for position in read}
    size = sum(sizes[node.position] if isinstance(node, Column) else 1 for node in nodes)
    if size > max(MAX_SIZE, len(nodes)):
        return None
    return map_columns(expression, lambda column: replacements[column.position])


def shifted(expression: Expression, offset: int) -> Expression:
    """Return the expression reading positions moved by an offset, as below a join."""
    return map_columns(expression, lambda c: Column(c.position + offset, c.name, c.dtype))


_INFIX = {"=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "AND", "OR", "LIKE"}


def expression_text(expression: Expression) -> str:
    """Return stable text, as EXPLAIN prints it.

    Examples:
        >>> a = Column(0, "a", DataType.INTEGER)
        >>> expression_text(Call(">", (a, Literal(3, DataType.INTEGER)), DataType.BOOLEAN))
        'a > 3'
    """
    match expression:
        case Column(name=name):
            return name
        case Literal(value=value, dtype=dtype):
            return literal_text(value, dtype)
        case Call(function=name, arguments=(left, right)) if name in _INFIX:
            return f"{_inner(left)} {name} {_inner(right)}"
        case Call(function="NOT", arguments=(inner,)):
            return f"NOT {_inner(inner)}"
        case Call(function="IS NULL" | "IS NOT NULL" as name, arguments=(inner,)):
            return f"{_inner(inner)} {name}"
        case Call(function="CAST", arguments=(inner,), dtype=dtype):
            return f"CAST({expression_text(inner)} AS {dtype})"
        case Call(function="IN", arguments=(inner, *rest)):
            return f"{_inner(inner)} IN ({', '.join(map(expression_text, rest))})"
        case Call(function=name, arguments=arguments):
            return f"{name}({', '.join(map(expression_text, arguments))})"


def _inner(expression: Expression) -> str:
    text = expression_text(expression)
    infix = isinstance(expression, Call) and expression.function in _INFIX
    return f"({text})" if infix else text


def literal_text(value: Value, dtype: DataType) -> str:
    """Return a constant as StreamSQL text.

    Examples:
        >>> literal_text(90_000_000, DataType.INTERVAL), literal_text(0, DataType.TIMESTAMP)
        ("INTERVAL '90 s'", "TIMESTAMP '1970-01-01T00:00:00Z'")
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if dtype == DataType.INTERVAL:
        whole = value % MICROSECONDS == 0
        return f"INTERVAL '{int(value) // MICROSECONDS} s'" if whole else f"INTERVAL '{value} us'"
    if dtype == DataType.TIMESTAMP:
        return f"TIMESTAMP '{timestamp_text(int(value))}'"
    return repr(value)
