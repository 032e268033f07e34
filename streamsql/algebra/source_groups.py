"""Groups of a stored table's rows that its database may compute as we do.

A database counts the rows that we would only if it judges every condition exactly as we do: not one
row more, as is enough where rows are judged again. So all of the conditions must be of the kinds
below, over columns that it compares exactly; which ones do depends on their types there.
"""

from dataclasses import dataclass

from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    substituted,
)
from streamsql.algebra.operators import Aggregate, Filter, Plan, Project, Scan, SourceKind
from streamsql.data.types import DataType

GROUPED = (DataType.INTEGER, DataType.TEXT, DataType.BOOLEAN)
"""Types whose equality may mean the same in a database."""
_ORDERED = ("=", "<>", "<", "<=", ">", ">=")
_NUMBERS = (
    AggregateFunction.SUM,
    AggregateFunction.AVG,
    AggregateFunction.MIN,
    AggregateFunction.MAX,
)


@dataclass(frozen=True, slots=True)
class SourceGroups:
    """GROUP BY over the rows of a stored table that fulfil conditions.

    Attributes:
        scan: Of the table.
        conditions: All of which a row fulfils that counts; over the scan's columns, as all below.
        group: Columns, by position.
        calls: Aggregates of columns.
    """

    scan: Scan
    conditions: tuple[Expression, ...]
    group: tuple[int, ...]
    calls: tuple[AggregateCall, ...]

    @property
    def columns(self) -> frozenset[int]:
        """Positions of the columns that the database has to compare as we do."""
        read: list[Expression] = [*self.conditions]
        read += [argument for call in self.calls for argument in call.arguments]
        return frozenset(self.group).union(*map(columns_of, read))


def source_groups(plan: Aggregate) -> SourceGroups | None:
    """Return what a database would compute for an aggregate; None: we do, over rows."""
    steps: list[Filter | Project] = []
    below: Plan = plan.input
    while isinstance(below, Filter | Project):
        steps.append(below)
        below = below.input
    if not isinstance(below, Scan) or below.kind != SourceKind.TABLE or below.history is not None:
        return None
    fields = below.columns.fields
    output: list[Expression] = [Column(p, f.name, f.dtype) for p, f in enumerate(fields)]
    conditions: list[Expression] = []
    for step in reversed(steps):
        parts = conjuncts(step.predicate) if isinstance(step, Filter) else step.expressions
        made = [found for part in parts if (found := substituted(part, output)) is not None]
        if len(made) < len(parts):
            return None
        if isinstance(step, Filter):
            conditions += made
        else:
            output = made
    group = [output[position] for position in plan.group]
    calls = [_over(call, output) for call in plan.aggregates]
    keys = [key.position for key in group if isinstance(key, Column) and key.dtype in GROUPED]
    known = [call for call in calls if call is not None]
    if len(keys) < len(group) or len(known) < len(calls) or not (keys or known):
        return None
    if not all(map(_is_exact, conditions)):
        return None
    return SourceGroups(below, tuple(conditions), tuple(keys), tuple(known))


def _over(call: AggregateCall, output: list[Expression]) -> AggregateCall | None:
    """Return an aggregate over the columns of the table, if a database computes it as we do."""
    if call.function == AggregateFunction.COUNT_ALL:
        return call
    if call.function != AggregateFunction.COUNT and call.function not in _NUMBERS:
        return None
    argument = substituted(call.arguments[0], output)
    kinds = GROUPED if call.function == AggregateFunction.COUNT else (DataType.INTEGER,)
    if not isinstance(argument, Column) or argument.dtype not in kinds:
        return None
    return AggregateCall(call.function, (argument,), call.name, distinct=call.distinct)


def _is_exact(condition: Expression) -> bool:
    match condition:
        case Call(function="AND" | "OR", arguments=parts):
            return all(map(_is_exact, parts))
        case Call(function="IS NULL" | "IS NOT NULL", arguments=(Column(dtype=dtype),)):
            return dtype in GROUPED
        case Call(function="IN", arguments=(Column(dtype=dtype), *listed)):
            return dtype in _COMPARED and all(
                one.dtype == dtype and _is_plain(one) for one in listed
            )
        case Call(function=sign, arguments=(left, right)) if sign in _ORDERED:
            sides = (left, right)
            same = left.dtype == right.dtype
            kind = left.dtype == DataType.INTEGER or (left.dtype == DataType.TEXT and sign == "=")
            plain = all(isinstance(side, Column) or _is_plain(side) for side in sides)
            return same and kind and plain and any(isinstance(side, Column) for side in sides)
        case Column(dtype=DataType.BOOLEAN):
            return True
        case _:
            return False


_COMPARED = (DataType.INTEGER, DataType.TEXT)


def _is_plain(side: Expression) -> bool:
    """It is a constant that a database can hold: none has the character 0."""
    match side:
        case Literal(value=str() as text):
            return "\0" not in text
        case Literal(value=value):
            return value is not None
        case _:
            return False
