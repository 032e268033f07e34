"""Expressions compiled to Python functions.

An expression becomes Python source, so that a loop over rows calls no closure per node. Only
positions and names chosen here get into the source: constants and functions are bound to names.
Three-valued logic as in SQL: NULL in, NULL out, except AND, OR, IS NULL, COALESCE and CASE; what
functions do is in `function_table`.
"""

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    map_columns,
)
from streamsql.algebra.scalar_functions.function_table import FUNCTIONS, cast
from streamsql.algebra.scalar_functions.like_patterns import like_test
from streamsql.algebra.scalar_functions.scalar_numbers import in_range
from streamsql.algebra.scalar_functions.scalar_time import FIXED
from streamsql.algebra.user_functions import INSTALLED, is_called_on_null, is_user_function
from streamsql.data.delta import Delta
from streamsql.data.types import DataType, Row
from streamsql.errors import InternalError

__all__ = [
    "FUNCTIONS",
    "Compiled",
    "ExpressionSource",
    "cast",
    "compile_expression",
    "compile_filter",
    "compile_opened",
    "compile_predicate",
    "compile_row",
    "in_range",
    "key_of",
    "tuple_source",
]

Compiled = Callable[[Row], Any]

_ARITHMETIC = {"+", "-", "*"}
_COMPARISONS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_LOWEST, _HIGHEST = -(2**63), 2**63
_DEEPEST = 20
"""Nested calls in one function; Python refuses source that is nested some hundred times."""
_LONGEST = 101
"""Arguments of one CASE (an odd number) or COALESCE: to Python each is nested in the one before."""


def compile_expression(expression: Expression) -> Compiled:
    """Return a function from row to value.

    Raises:
        InternalError: The function is unknown here, although the binder let it pass.
        DeploymentError: A function of the user is not installed here.
    """
    source = ExpressionSource(_place)
    return _compiled(source, source.value(expression))


def compile_opened(expression: Expression, place: int) -> Callable[[Row, Any], Any]:
    """Return a function from row, and the value of the column `place`, to value."""
    source = ExpressionSource(lambda position: "value" if position == place else _place(position))
    return _compiled(source, source.value(expression), "row, value")


def compile_predicate(expression: Expression) -> Callable[[Row], bool]:
    """Return a function that is true only where the predicate is TRUE (not NULL)."""
    source = ExpressionSource(_place)
    return _compiled(source, source.predicate(expression))


def compile_filter(expression: Expression) -> Callable[[Delta], Delta]:
    """Return a function that keeps the rows of a change for which a predicate is TRUE.

    The predicate stands inside the loop: a call for every row would cost as much as many predicates
    do.
    """
    source = ExpressionSource(_place)
    kept = source.predicate(expression)
    text = f"{{row: weight for row, weight in delta.items() if {kept}}}"
    return _compiled(source, text, "delta")


def compile_row(expressions: tuple[Expression, ...]) -> Callable[[Row], Row]:
    """Return a function from input row to the row of all the expressions."""
    source = ExpressionSource(_place)
    return _compiled(source, tuple_source([source.value(e) for e in expressions]))


def _place(position: int) -> str:
    return f"row[{position}]"


def _compiled(source: "ExpressionSource", text: str, parameter: str = "row") -> Callable[..., Any]:
    code = _code(parameter, text)
    function: Callable[..., Any] = eval(code, dict(source.names))  # noqa: S307  (our own text)
    return function


@lru_cache(maxsize=4_096)
def _code(parameter: str, text: str) -> CodeType:
    """Return the code of a function of a row or a change; the same text is compiled once."""
    return compile(f"lambda {parameter}: {text}", "<expression>", "eval")


def key_of(positions: tuple[int, ...]) -> Callable[[Row], Row]:
    """Return a function that picks columns."""
    if len(positions) == 1:
        (only,) = positions
        return lambda row: (row[only],)
    return lambda row: tuple([row[p] for p in positions])


class ExpressionSource:
    """Writes expressions of one generated function.

    Args:
        place: Returns the source of a column of the row, such as "row[1]".

    Attributes:
        names: What the source's free names are bound to.
    """

    def __init__(self, place: Callable[[int], str]) -> None:
        self.names: dict[str, Any] = {}
        self._place = place
        self._temporaries = 0
        self._depth = 0

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
            case Call():
                if self._depth >= _DEEPEST:
                    return self._closure(expression)
                self._depth += 1
                source = self._call(expression)
                self._depth -= 1
                return source

    def predicate(self, expression: Expression) -> str:
        """Return source that is true only where a predicate is TRUE.

        It is in parentheses wherever it needs any.
        """
        match expression:
            case Call() if self._depth >= _DEEPEST:
                return f"({self._closure(expression)} is True)"
            case Call(function=("AND" | "OR") as name):
                self._depth += 1
                parts = [self.predicate(part) for part in _flat(expression, name)]
                self._depth -= 1
                return f"({f' {name.lower()} '.join(parts)})"
            case Call(function=name, arguments=arguments) if name in _COMPARISONS:
                self._depth += 1
                tests, (left, right) = self._arguments(arguments)
                self._depth -= 1
                present = [f"{test} is not None" for test in tests]
                return f"({' and '.join([*present, f'{left} {_COMPARISONS[name]} {right}'])})"
            case Call(function="IS NULL" | "IS NOT NULL"):
                return self.value(expression)
            case _:
                return f"({self.value(expression)} is True)"

    def _call(self, call: Call) -> str:
        match call:
            case Call(function=("AND" | "OR") as name):
                return self._logical(_flat(call, name), name)
            case Call(function="CASE" | "COALESCE", arguments=arguments) if (
                len(arguments) > _LONGEST
            ):
                head, rest = arguments[: _LONGEST - 1], arguments[_LONGEST - 1 :]
                last = self._closure(Call(call.function, rest, call.dtype))
                return (
                    self._case(head, last)
                    if call.function == "CASE"
                    else self._coalesce(head, last)
                )
            case Call(function="CASE", arguments=arguments):
                return self._case(arguments[:-1], self.value(arguments[-1]))
            case Call(function="COALESCE", arguments=arguments):
                return self._coalesce(arguments, "None")
            case Call(function="IN", arguments=(needle, *candidates)):
                return self._in(needle, candidates)
            case Call(function="CAST", arguments=(inner,), dtype=dtype):
                convert, target = self.bind("cast", cast), self.bind("type", dtype)
                return f"{convert}({self.value(inner)}, {target})"
            case Call(function="IS NULL", arguments=(inner,)):
                return f"({self.value(inner)} is None)"
            case Call(function="IS NOT NULL", arguments=(inner,)):
                return f"({self.value(inner)} is not None)"
            case Call(function=name, arguments=arguments, dtype=dtype):
                if is_called_on_null(name):
                    function = self.bind("function", _function(name, dtype))
                    return f"{function}({', '.join(map(self.value, arguments))})"
                return self._strict(name, arguments, dtype)

    def _logical(self, parts: list[Expression], name: str) -> str:
        """Return AND or OR: the deciding value if any part has it, else NULL if any part is."""
        decides = "False" if name == "AND" else "True"
        otherwise = "True" if name == "AND" else "False"
        names = [self.temporary() for _ in parts]
        values = map(self.value, parts)
        found = " or ".join(
            f"({t} := {value}) is {decides}" for t, value in zip(names, values, strict=True)
        )
        missing = " or ".join(f"{t} is None" for t in names)
        return f"({decides} if {found} else None if {missing} else {otherwise})"

    def _case(self, arguments: tuple[Expression, ...], otherwise: str) -> str:
        """Return CASE over conditions and values in turn."""
        branches = [
            f"{self.value(then)} if {self.predicate(condition)} else "
            for condition, then in zip(arguments[::2], arguments[1::2], strict=True)
        ]
        return f"({''.join(branches)}{otherwise})"

    def _coalesce(self, arguments: tuple[Expression, ...], otherwise: str) -> str:
        parts = []
        for argument in arguments:
            name = self.temporary()
            parts.append(f"{name} if ({name} := {self.value(argument)}) is not None else ")
        return f"({''.join(parts)}{otherwise})"

    def _in(self, needle: Expression, candidates: list[Expression]) -> str:
        name = self.temporary()
        if all(isinstance(c, Literal) and c.value is not None for c in candidates):
            values = frozenset([c.value for c in candidates if isinstance(c, Literal)])
            found = f"{name} in {self.bind('values', values)}"
            return f"(None if ({name} := {self.value(needle)}) is None else {found})"
        begin = f"({name} := {self.value(needle)}) is None"
        others = [self.temporary() for _ in candidates]
        sources = list(map(self.value, candidates))
        equal = " or ".join(
            f"(({o} := {source}) is not None and {o} == {name})"
            for o, source in zip(others, sources, strict=True)
        )
        missing = " or ".join(f"{o} is None" for o in others)
        return f"(None if {begin} else True if {equal} else None if {missing} else False)"

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

    def _strict(self, name: str, arguments: tuple[Expression, ...], dtype: DataType) -> str:
        tests, values = self._arguments(arguments)
        if name in _COMPARISONS and len(values) == 2:
            result = f"{values[0]} {_COMPARISONS[name]} {values[1]}"
        elif name in _ARITHMETIC and len(values) == 2:
            total = self.temporary()
            exact = self.bind("in_range", in_range)
            operation = f"{values[0]} {name} {values[1]}"
            result = (
                f"{total} if {_LOWEST} <= ({total} := {operation}) < {_HIGHEST}"
                f" else {exact}({total})"
            )
        elif (divisor := _positive(name, arguments)) is not None:
            result = _divided(name, values[0], self.bind("constant", divisor))
        elif (unit := _truncation(name, arguments)) is not None:
            start, size = self.temporary(), self.bind("constant", unit)
            begin = f"({start} := {values[1]} // {size} * {size})"
            result = f"{start} if {begin} >= {_LOWEST} else None"
        elif (test := _pattern_test(name, arguments)) is not None:
            result = f"{self.bind('like', test)}({values[0]})"
        elif name == "NOT":
            result = f"not {values[0]}"
        else:
            function = self.bind("function", _function(name, dtype))
            result = f"{function}({', '.join(values)})"
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


def _function(name: str, dtype: DataType) -> Callable[..., Any]:
    """Return a function of the language or of the user; most are called without NULLs.

    Raises:
        InternalError: There is none of that name.
        DeploymentError: A function of the user is not installed here.
    """
    if is_user_function(name):
        return INSTALLED.function(name, dtype)
    if name not in FUNCTIONS:
        raise InternalError(f"no scalar function {name!r}")
    return FUNCTIONS[name]


def _positive(name: str, arguments: tuple[Expression, ...]) -> int | None:
    """Return the divisor of a division of integers by a constant greater than 0, else None."""
    match arguments:
        case (first, Literal(value=int(divisor), dtype=DataType.INTEGER)) if (
            name in ("/", "%") and first.dtype == DataType.INTEGER and divisor > 0
        ):
            return divisor
        case _:
            return None


def _divided(operator: str, value: str, divisor: str) -> str:
    """Return the source of a quotient or rest; SQL's go towards 0, Python's downwards."""
    python = "//" if operator == "/" else "%"
    return f"{value} {python} {divisor} if {value} >= 0 else -(-{value} {python} {divisor})"


def _pattern_test(
    name: str, arguments: tuple[Expression, ...]
) -> Callable[[str], bool | None] | None:
    """Return the test of LIKE with constants.

    Bound once: among ten thousand filters with a pattern each, none found its test in the cache of
    `like`, and a change took twice as long.
    """
    match arguments:
        case (_, Literal(value=str(pattern))) if name == "LIKE":
            return like_test(pattern)
        case (_, Literal(value=str(pattern)), Literal(value=str(escape))) if name == "LIKE ESCAPE":
            return like_test(pattern, escape)
        case _:
            return None


def _truncation(name: str, arguments: tuple[Expression, ...]) -> int | None:
    """Return the microseconds between two starts of what DATE_TRUNC cuts at, if they are equal."""
    match arguments:
        case (Literal(value=str(part)), _) if name == "DATE_TRUNC":
            return FIXED.get(part)
        case _:
            return None


def _flat(expression: Expression, name: str) -> list[Expression]:
    """Return the parts of nested ANDs, or ORs, from left to right."""
    parts: list[Expression] = []
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == name:
            waiting.extend(reversed(part.arguments))
        else:
            parts.append(part)
    return parts


def tuple_source(parts: list[str]) -> str:
    """Return the source of a tuple.

    Examples:
        >>> tuple_source(["a"]), tuple_source([])
        ('(a,)', '()')
    """
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
