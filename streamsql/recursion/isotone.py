"""Steps of a recursion as functions of a value: isotone or not, and the signs of its change.

Expressions are those of a trace, so a step that reads the relation several times has a position
for the value of each reading; `a.cost + b.cost` is isotone in both.
"""

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.data.types import DataType
from streamsql.recursion.column_tracing import Trace, reads


def is_isotone(expression: Expression, value: int, group: frozenset[int], step: Trace) -> bool:
    """Whether an expression reads the value and never decreases when the value increases.

    Other parts read only group columns of the recursive relation.

    `expression` is one of the trace `step`; `value` and `group` are columns of the relation.
    """

    def isotone(part: Expression) -> bool:
        return is_isotone(part, value, group, step)

    def beside(part: Expression) -> bool:
        return step.columns_read(part) <= group

    match expression:
        case Column(position=position):
            return bool(reads(expression)) and step.column_of(position) == value
        case Call(function="CAST", arguments=(inner,), dtype=dtype):
            return dtype.is_numeric and isotone(inner)
        case Call(function="+" | "GREATEST" | "LEAST", arguments=(left, right)):
            both = isotone(left), isotone(right)
            return (both[0] or beside(left)) and (both[1] or beside(right)) and any(both)
        case Call(function="-", arguments=(left, right)):
            return isotone(left) and beside(right)
        case _:
            return False


def is_strict(value: int, group: frozenset[int], step: Trace) -> bool:
    """Whether a better value always becomes a strictly better one, in every reading that counts.

    A reading of which a step takes nothing but group columns need not hand its value on.
    """
    expression = step.columns[value]
    if _picks_one(expression):
        return False
    handed_on = {step.occurrence_of(p) for p in reads(expression) if step.column_of(p) == value}
    taken = {
        step.occurrence_of(p)
        for column in step.columns
        for p in reads(column)
        if step.column_of(p) not in group
    }
    return taken <= handed_on


def _picks_one(expression: Expression) -> bool:
    match expression:
        case Call(function="GREATEST" | "LEAST"):
            return True
        case Call(arguments=arguments):
            return any(_picks_one(argument) for argument in arguments)
        case _:
            return False


def may_better(expression: Expression, *, minimum: bool) -> bool:
    """Whether a step may turn a value into a better one, by LEAST, GREATEST or rounding.

    It does so once only, so the recursion ends; but the better value then rests on a worse one,
    perhaps of its own group: `LEAST(r.n, 0)` round a circle makes 0 of a 1 that 0 displaces.
    LEAST of several values made from one reading is what adds least to it, which is no better.

    The expression is isotone in the value.
    """
    match expression:
        case Call(function="LEAST" | "GREATEST" as function, arguments=arguments) if (
            function == ("LEAST" if minimum else "GREATEST")
            and len({frozenset(reads(part)) for part in arguments}) > 1
        ):
            return True
        case Call(function="CAST", arguments=(inner,), dtype=DataType.INTEGER) if reads(inner):
            return inner.dtype != DataType.INTEGER or may_better(inner, minimum=minimum)
        case Call(arguments=arguments):
            return any(may_better(part, minimum=minimum) for part in arguments if reads(part))
        case _:
            return False


def directions(expression: Expression) -> frozenset[int]:
    """Return the signs of what a step may add to a value; data that is added counts as positive.

    (Zeros among the data do no harm unless another column grows: see `aggregate_selection`.)

    Where several values of the relation are added up, each counts as data for the others.

    Args:
        expression: Isotone in the value.

    Examples:
        >>> from streamsql.data.types import DataType
        >>> cost = Column(0, "cost", DataType.INTEGER)
        >>> one = Literal(1, DataType.INTEGER)
        >>> sorted(directions(Call("-", (cost, one), DataType.INTEGER)))
        [-1]
        >>> sorted(directions(Call("LEAST", (cost, cost), DataType.INTEGER)))
        [0]
    """
    match expression:
        case Call(function="CAST", arguments=(inner,)):
            return directions(inner)
        case Call(function="+", arguments=(left, right)):
            parts = [directions(part) for part in (left, right) if reads(part)]
            added = [_sign(part) for part in (left, right) if not reads(part)]
            return _together([*parts, *(frozenset((sign,)) for sign in added or [1])])
        case Call(function="-", arguments=(left, right)):
            return _together([directions(left), frozenset((-_sign(right),))])
        case Call(function="GREATEST" | "LEAST", arguments=arguments):
            return frozenset().union(*(directions(part) for part in arguments if reads(part)))
        case _:
            return frozenset((0,))


def _together(parts: list[frozenset[int]]) -> frozenset[int]:
    """Return the signs of a sum whose parts have these signs; 0 only when all may be 0."""
    signs = frozenset().union(*parts) - {0}
    return signs | {0} if all(0 in part for part in parts) else signs


def _sign(added: Expression) -> int:
    """Return the sign of something added that reads nothing of the relation."""
    if not isinstance(added, Literal):
        return 1
    value = added.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return (value > 0) - (value < 0)
