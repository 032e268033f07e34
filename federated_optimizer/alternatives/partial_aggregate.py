"""Aggregates in two phases: a row a group from every gateway, put together at the base.

| aggregate | part of a gateway | whole |
|---|---|---|
| COUNT(*), COUNT(x) | n = COUNT | SUM(n), 0 for none |
| SUM(x) of INTEGER | h = SUM(x / 2^32), l = SUM(x % 2^32) | SUM(h) * 2^32 + SUM(l) |
| AVG(x) of INTEGER | h, l, n = COUNT(x) | the same / SUM(n), rounded once |
| MIN, MAX, BOOL_AND, BOOL_OR | the same | the same |
| ARG_MIN(x, by), ARG_MAX(x, by) | the same, and MIN(by) or MAX(by) | the same over both |

Parts of some gateways are merged into one: counts are added, all else is aggregated likewise.

A part is a relation: when the last row of a group goes at a gateway, so does its part.
Where no aggregate counts copies of a row, distinct rows of every gateway are parts of all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.parted import Parted
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Plan,
    Project,
)
from streamsql.algebra.scalar_numbers import WORD
from streamsql.data.types import DataType

F = AggregateFunction

_AS_THEY_ARE = frozenset({F.MIN, F.MAX, F.BOOL_AND, F.BOOL_OR})
"""Aggregates whose parts are aggregated likewise."""

_OF_SETS = frozenset({*_AS_THEY_ARE, F.ARG_MIN, F.ARG_MAX})
"""Aggregates that do not count copies."""

_INTEGER, _DOUBLE = DataType.INTEGER, DataType.DOUBLE


def parted_aggregate(plan: Aggregate, below: Plan) -> Parted | Refused:
    """Return an aggregate in two phases, or why it is not computed so."""
    phases = phases_of(plan)
    group = tuple(range(len(plan.group)))
    if isinstance(phases, Phases):
        part = Aggregate(below, plan.group, tuple(phases.parts))
        words = "a part of every gateway before the whole"
        return Parted(part, phases.merged, phases.whole, group, group, words)
    if plan.aggregates and all(_is_of_set(call) for call in plan.aggregates):

        def whole(parts: Plan) -> Plan:
            return Aggregate(parts, plan.group, plan.aggregates)

        words = "distinct rows of every gateway before the whole"
        return Parted(Distinct(below), Distinct, whole, plan.group, group, words)
    return phases


def phases_of(plan: Aggregate) -> "Phases | Refused":
    """Return the two phases of an aggregate, or why it has none."""
    reasons = [reason for call in plan.aggregates if (reason := _refused(call))]
    return Refused(reasons[0]) if reasons else Phases(plan)


def _is_of_set(call: AggregateCall) -> bool:
    return call.distinct or call.function in _OF_SETS


def _refused(call: AggregateCall) -> str:
    function = call.function
    if call.distinct and function not in _OF_SETS:
        return f"{function}(DISTINCT …) needs the values themselves, not a number of each gateway"
    if function in {*_OF_SETS, F.COUNT_ALL, F.COUNT}:
        return ""
    if function not in (F.SUM, F.AVG):
        return f"{function} has no parts of a fixed size"
    if call.arguments[0].dtype != _INTEGER:
        return (
            f"{function} of {call.arguments[0].dtype} is rounded once, of all values: "
            "a sum of rounded parts would differ"
        )
    return ""


@dataclass(slots=True)
class Phases:
    """The two phases of an aggregate.

    Attributes:
        parts: Calls of the first phase.
    """

    plan: Aggregate
    parts: list[AggregateCall]
    _calls: list[AggregateCall]
    _results: list[Expression]

    def __init__(self, plan: Aggregate) -> None:
        self.plan = plan
        self.parts, self._calls, self._results = [], [], []
        for call in plan.aggregates:
            self._results.append(self._combined(call))

    def whole(self, parts: Plan) -> Plan:
        """Return the second phase over what all gateways have sent."""
        width = len(self.plan.group)
        over = Aggregate(parts, tuple(range(width)), tuple(self._calls))
        kept = tuple(Column(p, f.name, f.dtype) for p, f in enumerate(over.schema.fields[:width]))
        names = self.plan.schema.names
        return Project(over, (*kept, *self._results), names)

    def merged(self, parts: Plan) -> Plan:
        """Return parts of some gateways as one part of all their rows.

        A count of a part is a number to be added; of all else a part is aggregated likewise.
        """
        width = len(self.plan.group)
        columns = [Column(width + n, p.name, p.dtype) for n, p in enumerate(self.parts)]
        by = {
            (p.function, p.arguments): column for p, column in zip(self.parts, columns, strict=True)
        }

        def call(part: AggregateCall, column: Column) -> AggregateCall:
            match part.function:
                case F.COUNT_ALL | F.COUNT | F.SUM:
                    return AggregateCall(F.SUM, (column,), part.name)
                case F.ARG_MIN | F.ARG_MAX:
                    best = F.MIN if part.function == F.ARG_MIN else F.MAX
                    other = by[best, tuple(part.arguments[1:])]
                    return AggregateCall(part.function, (column, other), part.name)
                case _:
                    return AggregateCall(part.function, (column,), part.name)

        calls = tuple(map(call, self.parts, columns))
        return Aggregate(parts, tuple(range(width)), calls)

    def _part(self, function: AggregateFunction, arguments: Sequence[Expression]) -> Column:
        """Return the column of the parts that a call of the first phase gives."""
        same = [(part.function, part.arguments) for part in self.parts]
        wanted = (function, tuple(arguments))
        if wanted not in same:
            self.parts.append(AggregateCall(*wanted, f"part{len(same) + 1}"))
            same.append(wanted)
        number = same.index(wanted)
        call = self.parts[number]
        return Column(len(self.plan.group) + number, call.name, call.dtype)

    def _over(self, function: AggregateFunction, *arguments: Expression) -> Column:
        """Return the column of the whole that a call of the second phase gives."""
        call = AggregateCall(function, arguments, f"whole{len(self._calls) + 1}")
        self._calls.append(call)
        return Column(len(self.plan.group) + len(self._calls) - 1, call.name, call.dtype)

    def _combined(self, call: AggregateCall) -> Expression:
        match call.function:
            case F.COUNT_ALL | F.COUNT:
                count = self._over(F.SUM, self._part(call.function, call.arguments))
                return Call("COALESCE", (count, Literal(0, _INTEGER)), _INTEGER)
            case F.SUM:
                return Call("SUM_OF_WORDS", self._words(call), _INTEGER)
            case F.AVG:
                count = self._over(F.SUM, self._part(F.COUNT, call.arguments))
                return Call("MEAN_OF_WORDS", (*self._words(call), count), _DOUBLE)
            case F.ARG_MIN | F.ARG_MAX:
                best = F.MIN if call.function == F.ARG_MIN else F.MAX
                value = self._part(call.function, call.arguments)
                return self._over(call.function, value, self._part(best, call.arguments[1:]))
            case _:
                return self._over(call.function, self._part(call.function, call.arguments))

    def _words(self, call: AggregateCall) -> tuple[Expression, Expression]:
        """Return the sums of the high and of the low words of all values."""
        (value,) = call.arguments
        word = Literal(WORD, _INTEGER)
        high, low = (
            self._over(F.SUM, self._part(F.SUM, (Call(operator, (value, word), _INTEGER),)))
            for operator in ("/", "%")
        )
        return high, low
