"""Aggregate functions as data: how an aggregate of some rows comes of aggregates of parts of them.

A part is any set of the rows: those of one gateway, or of a finer group. x and y are the arguments.

| function | category | statistics of a part | merged by | the whole |
|---|---|---|---|---|
| COUNT(*), COUNT(x) | distributive | n = COUNT | SUM | n, 0 for none |
| SUM(x) of INTEGER | distributive | h = SUM(x / 2^32), l = SUM(x % 2^32) | SUM | h * 2^32 + l |
| SUM(x) of small INTEGER | distributive | the same | SUM | the same |
| AVG(x) of INTEGER | algebraic | n = COUNT(x), and h, l | SUM | (h * 2^32 + l) / n, rounded once |
| MIN, MAX, BOOL_AND, BOOL_OR | distributive | the same | the same | the same |
| ARG_MIN(x, y), ARG_MAX(x, y) | algebraic | the same, and MIN(y), MAX(y) | over both | the same |
| SUM(x) of DOUBLE | distributive | e = EXACT_SUM(x) | EXACT_SUM | e, rounded once |
| AVG(x) of DOUBLE | algebraic | n = COUNT(x), and e | both | e / n, rounded once |
| variances, deviations | algebraic | n, e, q = EXACT_SQUARES(x) | all | rounded once |
| USER, MERGED BY f | distributive | the same | f, or the same | the same |
| USER | algebraic | states, which are no values of rows | | |
| all else, f(DISTINCT x) | holistic | none of a fixed size | | |

All merge exactly whatever comes and goes: a part whose rows change takes its old statistics back
and gives new ones, and every merging function is maintained under that. MIN and MAX, too: they are
not inverted, but computed of the parts that are left. A SUM itself is a statistic only of small
numbers, as of `CASE WHEN x > 3 THEN 1 ELSE 0 END`: of others it is NULL in a part beyond 64 bits
where that of all rows need not be.

Exact sums are long texts that change with every value: what they save travels again (decision 115).
So they are statistics at one site only, of groups that others there read.

What CREATE AGGREGATE … MERGED BY f says of a function of users is taken as true: the result is f
of the results of any parts, without those that are NULL. A part without a row that counts, and so
the whole of nothing, is NULL: that is checked when the aggregate is created, and is what f gives of
no results.

Functions of sets count no copies, so they are computed of the distinct values as of all.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET

from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.expressions import Call, Column, Expression, Literal, map_columns
from streamsql.algebra.scalar_functions.scalar_numbers import WORD
from streamsql.data.types import DataType

F = AggregateFunction
_INTEGER, _DOUBLE = DataType.INTEGER, DataType.DOUBLE

SET_FUNCTIONS = frozenset({F.MIN, F.MAX, F.BOOL_AND, F.BOOL_OR, F.ARG_MIN, F.ARG_MAX})
"""Functions that do not count copies of a value."""


class Category(enum.StrEnum):
    """Classes of Gray's data cube.

    DISTRIBUTIVE: of the same function of parts. ALGEBRAIC: of a fixed number of statistics of
    parts. HOLISTIC: of no bounded number of statistics.
    """

    DISTRIBUTIVE = "distributive"
    ALGEBRAIC = "algebraic"
    HOLISTIC = "holistic"


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number that is kept of every part.

    Attributes:
        function: Which aggregate of the rows of a part.
        arguments: Over the arguments of the call: position 0 is the first of them.
        merge: The aggregate that makes one statistic of those of parts.
        merged: The statistics of the law that it reads, by number.
        by_user: Of USER: the call; its implementation is that of the statistic.
    """

    function: AggregateFunction
    arguments: tuple[Expression, ...]
    merge: AggregateFunction
    merged: tuple[int, ...]
    by_user: AggregateCall | None = None

    def of_part(self, arguments: tuple[Expression, ...]) -> AggregateCall:
        """Return the aggregate of the rows of a part, without a name."""
        return self._call(self.function, arguments, "")

    def of_parts(self, columns: tuple[Expression, ...], name: str) -> AggregateCall:
        """Return the aggregate of the statistics of parts."""
        return self._call(self.merge, columns, name)

    def _call(
        self, function: AggregateFunction, arguments: tuple[Expression, ...], name: str
    ) -> AggregateCall:
        if function == F.USER and self.by_user is not None:
            return msgspec.structs.replace(self.by_user, arguments=arguments, name=name)
        return AggregateCall(function, arguments, name)


@dataclass(frozen=True, slots=True)
class Law:
    """An aggregate in terms of statistics of parts.

    Attributes:
        statistics: In order.
        whole: The result, over the merged statistics: position n is the n-th of them.
    """

    statistics: tuple[Statistic, ...]
    whole: Expression

    @property
    def read(self) -> tuple[int, ...]:
        """The numbers of the statistics that the result reads, in order of the statistics."""
        found = {c.position for c in _columns(self.whole)}
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class NoLaw:
    """Why an aggregate does not come of statistics of parts, in words."""

    reason: str


def _columns(expression: Expression) -> list[Column]:
    found: list[Column] = []

    def noted(column: Column) -> Column:
        found.append(column)
        return column

    map_columns(expression, noted)
    return found


def _column(position: int, dtype: DataType = _INTEGER) -> Column:
    return Column(position, f"statistic {position}", dtype)


def _counted(function: AggregateFunction, arguments: tuple[Expression, ...]) -> Law:
    count = Statistic(function, arguments, F.SUM, (0,))
    return Law((count,), Call("COALESCE", (_column(0), Literal(0, _INTEGER)), _INTEGER))


def _words(first: int) -> tuple[Statistic, Statistic]:
    """Return the sums of both words of x as the statistics of a number and the next one."""
    x, word = _column(0), Literal(WORD, _INTEGER)
    high, low = (
        Statistic(F.SUM, (Call(operator, (x, word), _INTEGER),), F.SUM, (first + place,))
        for place, operator in enumerate(("/", "%"))
    )
    return high, low


def _itself(function: AggregateFunction) -> Law:
    return Law((Statistic(function, (_column(0),), function, (0,)),), _column(0))


def _argument_of(function: AggregateFunction, best: AggregateFunction) -> Law:
    x, y = _column(0), _column(1)
    value = Statistic(function, (x, y), function, (0, 1))
    return Law((value, Statistic(best, (y,), best, (1,))), _column(0))


_SUM = Law(_words(0), Call("SUM_OF_WORDS", (_column(0), _column(1)), _INTEGER))
_COUNT_OF_MEAN = Statistic(F.COUNT, (_column(0),), F.SUM, (0,))
_AVG = Law(
    (_COUNT_OF_MEAN, *_words(1)),
    Call("MEAN_OF_WORDS", (_column(1), _column(2), _column(0)), _DOUBLE),
)
_EXACT = Statistic(F.EXACT_SUM, (_column(0),), F.EXACT_SUM, (0,))
_EXACT_SUM = Law((_EXACT,), Call("SUM_OF_EXACT", (_column(0),), _DOUBLE))
_EXACT_AVG = Law(
    (_COUNT_OF_MEAN, Statistic(F.EXACT_SUM, (_column(0),), F.EXACT_SUM, (1,))),
    Call("MEAN_OF_EXACT", (_column(1), _column(0)), _DOUBLE),
)


def _spread(name: str, *, sample: bool) -> Law:
    counted = Statistic(F.COUNT, (_column(0),), F.SUM, (2,))
    squares = Statistic(F.EXACT_SQUARES, (_column(0),), F.EXACT_SUM, (1,))
    arguments = (_column(0), _column(1), _column(2), Literal(sample, DataType.BOOLEAN))
    return Law((_EXACT, squares, counted), Call(f"{name}_OF_EXACT", arguments, _DOUBLE))


_SMALL_SUM = _itself(F.SUM)
_SMALL_AVG = Law(
    (_COUNT_OF_MEAN, Statistic(F.SUM, (_column(0),), F.SUM, (1,))),
    Call("MEAN_OF_WORDS", (Literal(0, _INTEGER), _column(1), _column(0)), _DOUBLE),
)
LAWS = {
    F.COUNT_ALL: _counted(F.COUNT_ALL, ()),
    F.COUNT: _counted(F.COUNT, (_column(0),)),
    F.SUM: _SUM,
    F.AVG: _AVG,
    F.MIN: _itself(F.MIN),
    F.MAX: _itself(F.MAX),
    F.BOOL_AND: _itself(F.BOOL_AND),
    F.BOOL_OR: _itself(F.BOOL_OR),
    F.ARG_MIN: _argument_of(F.ARG_MIN, F.MIN),
    F.ARG_MAX: _argument_of(F.ARG_MAX, F.MAX),
}
"""Laws by function; those of SUM and AVG hold of INTEGER."""

_AT_ONE_SITE = {
    F.SUM: _EXACT_SUM,
    F.AVG: _EXACT_AVG,
    F.EXACT_SUM: Law((_EXACT,), _column(0)),
    F.EXACT_SQUARES: Law(
        (Statistic(F.EXACT_SQUARES, (_column(0),), F.EXACT_SUM, (0,)),), _column(0)
    ),
    F.VAR_SAMP: _spread("VARIANCE", sample=True),
    F.VAR_POP: _spread("VARIANCE", sample=False),
    F.STDDEV_SAMP: _spread("DEVIATION", sample=True),
    F.STDDEV_POP: _spread("DEVIATION", sample=False),
}
"""Further laws, whose statistics are exact sums."""

CATEGORIES = {
    F.COUNT_ALL: Category.DISTRIBUTIVE,
    F.COUNT: Category.DISTRIBUTIVE,
    F.SUM: Category.DISTRIBUTIVE,
    F.AVG: Category.ALGEBRAIC,
    F.MIN: Category.DISTRIBUTIVE,
    F.MAX: Category.DISTRIBUTIVE,
    F.ARG_MIN: Category.ALGEBRAIC,
    F.ARG_MAX: Category.ALGEBRAIC,
    F.VAR_SAMP: Category.ALGEBRAIC,
    F.VAR_POP: Category.ALGEBRAIC,
    F.STDDEV_SAMP: Category.ALGEBRAIC,
    F.STDDEV_POP: Category.ALGEBRAIC,
    F.PERCENTILE_CONT: Category.HOLISTIC,
    F.PERCENTILE_DISC: Category.HOLISTIC,
    F.MODE: Category.HOLISTIC,
    F.ARRAY_AGG: Category.HOLISTIC,
    F.STRING_AGG: Category.HOLISTIC,
    F.EXACT_SUM: Category.DISTRIBUTIVE,
    F.EXACT_SQUARES: Category.ALGEBRAIC,
    F.BOOL_AND: Category.DISTRIBUTIVE,
    F.BOOL_OR: Category.DISTRIBUTIVE,
    F.USER: Category.ALGEBRAIC,
}
"""Categories of real numbers; whether a function merges exactly in 64 bits is said by `law_of`."""


def is_of_set(call: AggregateCall) -> bool:
    """Return whether a call counts no copies of its arguments."""
    return call.distinct or call.function in SET_FUNCTIONS


def category_of(call: AggregateCall) -> Category:
    """Return the category of a call; of distinct values every function that counts is holistic."""
    if call.distinct and call.function not in SET_FUNCTIONS:
        return Category.HOLISTIC
    if call.merged_by is not UNSET:
        return Category.DISTRIBUTIVE
    return CATEGORIES[call.function]


def law_of(call: AggregateCall, *, at_one_site: bool = False) -> Law | NoLaw:
    """Return how a call comes of statistics of parts, or why it does not.

    Args:
        call: Any.
        at_one_site: Whether the statistics stay at a site, so that they may be long.
    """
    function = call.function
    if call.distinct and function not in SET_FUNCTIONS:
        return NoLaw(
            f"{function}(DISTINCT …) needs the values themselves, not a number of each part"
        )
    if call.merged_by is not UNSET:
        return _merged_by(call, call.merged_by)
    law = LAWS.get(function)
    exact = _AT_ONE_SITE.get(function) if at_one_site else None
    if exact is not None and (law is None or call.arguments[0].dtype == _DOUBLE):
        return exact
    if law is None:
        return NoLaw(_why_none(call))
    if function in (F.SUM, F.AVG) and call.arguments[0].dtype != _INTEGER:
        return NoLaw(
            f"{function} of {call.arguments[0].dtype} is rounded once, of all values: "
            "a sum of rounded parts would differ"
        )
    if function in (F.SUM, F.AVG) and is_small(call.arguments[0]):
        return _SMALL_SUM if function == F.SUM else _SMALL_AVG
    return law


def _merged_by(call: AggregateCall, merge: AggregateFunction) -> Law:
    """Return the law that a user has declared."""
    arguments = tuple(_column(n, a.dtype) for n, a in enumerate(call.arguments))
    itself = Statistic(F.USER, arguments, merge, (0,), call)
    return Law((itself,), _column(0, call.dtype))


def _why_none(call: AggregateCall) -> str:
    match call.function:
        case F.USER:
            return (
                f"{call.implementation} merges states, and rows have results: "
                "its definition has no MERGED BY"
            )
        case F.VAR_SAMP | F.VAR_POP | F.STDDEV_SAMP | F.STDDEV_POP | F.EXACT_SUM | F.EXACT_SQUARES:
            return f"{call.function} needs exact sums, which are long texts"
        case function:
            return f"{function} has no parts of a fixed size"


def is_small(expression: Expression) -> bool:
    """Return whether an INTEGER is at most 2^32 from 0, so that below 2^31 of them fit 64 bits."""
    if expression.dtype != _INTEGER:
        return False
    match expression:
        case Literal(value=value):
            return value is None or (isinstance(value, int) and abs(value) <= WORD)
        case Call(function="CASE", arguments=arguments):
            return all(map(is_small, (*arguments[1::2], arguments[-1])))
        case Call(function="COALESCE", arguments=arguments):
            return all(map(is_small, arguments))
        case Call(function="%", arguments=(_, Literal(value=int(divisor)))):
            return 0 < abs(divisor) <= WORD
        case Call(function="/", arguments=(_, Literal(value=int(divisor)))):
            return abs(divisor) >= WORD
        case Call(function="CAST", arguments=(inner,)):
            return inner.dtype == DataType.BOOLEAN
        case _:
            return False


def statistic_calls(law: Law, call: AggregateCall) -> tuple[AggregateCall, ...]:
    """Return the aggregates of a part that a law needs of a call, without names."""

    def actual(column: Column) -> Expression:
        return call.arguments[column.position]

    return tuple(
        s.of_part(tuple(map_columns(a, actual) for a in s.arguments)) for s in law.statistics
    )


def merging_call(law: Law, number: int, columns: Sequence[Expression], name: str) -> AggregateCall:
    """Return the aggregate over parts that merges a statistic.

    Args:
        law: Of a call.
        number: Of the statistic.
        columns: The statistics of a part, in order.
        name: Of the result.
    """
    statistic = law.statistics[number]
    return statistic.of_parts(tuple(columns[n] for n in statistic.merged), name)


def whole_of(law: Law, merged: Mapping[int, Expression]) -> Expression:
    """Return the result of a law over its merged statistics, by number."""
    return map_columns(law.whole, lambda column: merged[column.position])
