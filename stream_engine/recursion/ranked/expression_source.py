"""Expressions as Python source, for loops that call no closure per row.

Means the same as `streamsql.algebra.scalar`. Only positions and names chosen here get into the
source: constants and functions are bound to names. What is not strict (CASE, COALESCE, OR, …) is
called as a closure over the columns that it reads.
"""

from collections.abc import Callable
from typing import Any

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    map_columns,
)
from streamsql.algebra.scalar import FUNCTIONS, compile_expression, in_range

_ARITHMETIC = {"+", "-", "*"}
_COMPARISONS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_NOT_STRICT = {"AND", "OR", "CASE", "COALESCE", "IN", "CAST", "IS NULL", "IS NOT NULL"}
_LOWEST, _HIGHEST = -(2**63), 2**63


class ExpressionSource:
    """Writes expressions of one generated function.

    Args:
        place: Returns the source of a column of the wide row, such as "r0[1]".

    Attributes:
        names: What the source's free names are bound to.
    """

    def __init__(self, place: Callable[[int], str]) -> None:
        self.names: dict[str, Any] = {}
        self._place = place
        self._temporaries = 0

    def bind(self, prefix: str, value: Any) -> str:
        """Return a new name for a value."""
        name = f"{prefix}_{len(self.names)}"
        self.names[name] = value
        return name

    def temporary(self) -> str:
        """Return a new local name."""
        self._temporaries += 1
        return f"t{self._temporaries}"

    def value(self, expression: Expression) -> str:
        """Return source of a value; NULL is None."""
        match expression:
            case Column(position=position):
                return self._place(position)
            case Literal(value=value):
                return "None" if value is None else self.bind("constant", value)
            case Call(function=name) if name in _NOT_STRICT or name not in FUNCTIONS:
                return self._closure(expression)
            case Call(function=name, arguments=arguments):
                return self._strict(name, arguments)

    def predicate(self, expression: Expression) -> str:
        """Return source that is true only where a predicate is TRUE."""
        if isinstance(expression, Call) and expression.function in _COMPARISONS:
            tests, values = self._arguments(expression.arguments)
            left, right = values
            operator = _COMPARISONS[expression.function]
            return " and ".join(
                [*(f"{t} is not None" for t in tests), f"{left} {operator} {right}"]
            )
        return f"{self.value(expression)} is True"

    def _arguments(self, arguments: tuple[Expression, ...]) -> tuple[list[str], list[str]]:
        """Return what to test for NULL (evaluating it first), and the values' names after that."""
        tests: list[str] = []
        values: list[str] = []
        for argument in arguments:
            source = self.value(argument)
            if isinstance(argument, Column):
                tests.append(source)
            elif isinstance(argument, Call):
                name = self.temporary()
                tests.append(f"({name} := {source})")
                source = name
            elif argument.value is None:
                tests.append("None")
            values.append(source)
        return tests, values

    def _strict(self, name: str, arguments: tuple[Expression, ...]) -> str:
        tests, values = self._arguments(arguments)
        if name in _COMPARISONS:
            result = f"{values[0]} {_COMPARISONS[name]} {values[1]}"
        elif name in _ARITHMETIC:
            total = self.temporary()
            exact = self.bind("in_range", in_range)
            operation = f"{values[0]} {name} {values[1]}"
            result = (
                f"({total} if {_LOWEST} <= ({total} := {operation}) < {_HIGHEST}"
                f" else {exact}({total}))"
            )
        else:
            result = f"{self.bind('function', FUNCTIONS[name])}({', '.join(values)})"
        if not tests:
            return f"({result})"
        missing = " or ".join(f"{test} is None" for test in tests)
        return f"(None if {missing} else {result})"

    def _closure(self, expression: Expression) -> str:
        read = sorted(columns_of(expression))
        new_place = {position: number for number, position in enumerate(read)}
        narrow = map_columns(expression, lambda c: Column(new_place[c.position], c.name, c.dtype))
        name = self.bind("closure", compile_expression(narrow))
        return f"{name}({tuple_source([self._place(p) for p in read])})"


def tuple_source(parts: list[str]) -> str:
    """Return the source of a tuple.

    Examples:
        >>> tuple_source(["a"]), tuple_source([])
        ('(a,)', '()')
    """
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
