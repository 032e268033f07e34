"""Rule: push aggregate selection into recursion.

    Aggregate[g] MIN(c), ARG_MIN(x, c) over Fixpoint
    ->  the same over Fixpoint that keeps, per g, only its rows of least c (all ties)

Sound when, in every step branch (r is the recursive relation):

1. predicates and the new values of g read nothing of r but g: whether a row leads on, and to which
   group, does not depend on what is dropped;
2. the new c is r.c + e or r.c - e, or GREATEST/LEAST(r.c, e), where e reads nothing of r but g: so
   a smaller c never becomes a larger one (isotone), and no best row rests on a worse one;
3. c does not get better by itself for ever: for MIN no branch adds a negative constant or
   subtracts, for MAX none adds; costs read from data are taken to be non-negative, and the row
   limit of the fixpoint ends it when that is wrong;
4. columns of g come from a finite set;
5. other columns are read by ARG_MIN(x, c) only; with GREATEST/LEAST, where best rows may rest on
   worse ones of the same final c, ARG_MIN is not allowed and no other column may grow.

Between aggregate and fixpoint only projections, DISTINCT and filters on g may stand. A column that
a filter fixes to a constant counts as a column of g.
"""

from dataclasses import dataclass, field

import msgspec

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateFunction,
    AggregateSelection,
    Best,
    Distinct,
    Filter,
    Fixpoint,
    Plan,
    Project,
    with_inputs,
)
from streamsql.binder.growth import growths, step_traces
from streamsql.binder.tracing import Trace, reads, trace

_MIN = (AggregateFunction.MIN, AggregateFunction.ARG_MIN)
_MAX = (AggregateFunction.MAX, AggregateFunction.ARG_MAX)
_ARG = (AggregateFunction.ARG_MIN, AggregateFunction.ARG_MAX)


class _NotPushableError(Exception):
    """A condition of the rule does not hold; the text says which."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """A plan after the rule.

    Attributes:
        reasons: Why it did not apply, by fixpoint name.
    """

    plan: Plan
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What an aggregate asks of a fixpoint."""

    group: frozenset[int]
    value: int
    minimum: bool
    picks: bool


def push_selections(plan: Plan) -> Pushed:
    """Apply the rule wherever it holds, and say why where it does not."""
    reasons: dict[str, str] = {}
    return Pushed(_push(plan, reasons), reasons)


def _push(plan: Plan, reasons: dict[str, str]) -> Plan:
    if isinstance(plan, Aggregate):
        fixpoint = _fixpoint_below(plan.input)
        if fixpoint is not None and fixpoint.selection is None:
            try:
                selection = _selection(plan, fixpoint)
            except _NotPushableError as reason:
                reasons.setdefault(fixpoint.name, str(reason))
            else:
                plan = msgspec.structs.replace(plan, input=_replaced(plan.input, selection))
    inputs = tuple(_push(child, reasons) for child in plan.inputs)
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)


def _fixpoint_below(plan: Plan) -> Fixpoint | None:
    match plan:
        case Fixpoint():
            return plan
        case Project(input=child) | Filter(input=child) | Distinct(input=child):
            return _fixpoint_below(child)
        case _:
            return None


def _replaced(plan: Plan, selection: AggregateSelection) -> Plan:
    if isinstance(plan, Fixpoint):
        return msgspec.structs.replace(plan, selection=selection)
    (child,) = plan.inputs
    return with_inputs(plan, (_replaced(child, selection),))


def _without_distinct(plan: Plan) -> Plan:
    match plan:
        case Distinct(input=child):
            return _without_distinct(child)
        case Project(input=child) | Filter(input=child):
            return with_inputs(plan, (_without_distinct(child),))
        case _:
            return plan


def _selection(aggregate: Aggregate, fixpoint: Fixpoint) -> AggregateSelection:
    wanted = _wanted(aggregate, fixpoint)
    names = fixpoint.columns.names
    growing = {growth.column for growth in growths(fixpoint)}
    for column in sorted(wanted.group & growing):
        raise _NotPushableError(f"the grouped column {names[column]} grows itself")
    steps = step_traces(fixpoint)
    strict = all(_is_strict(step.columns[wanted.value]) for step in steps)
    carried = growing - {wanted.value}
    if not strict and (wanted.picks or carried):
        raise _NotPushableError(
            f"equal values of {names[wanted.value]} can come from worse rows, so "
            f"{'ARG_MIN and ARG_MAX' if wanted.picks else names[min(carried)]} would depend on "
            "rows that are dropped"
        )
    for number, step in enumerate(steps, start=1):
        _check_step(number, step, wanted, names)
        _check_progress(number, step, wanted, names, carried)
    return AggregateSelection(tuple(sorted(wanted.group)), (Best(wanted.value, wanted.minimum),))


def _wanted(aggregate: Aggregate, fixpoint: Fixpoint) -> _Wanted:
    above = trace(_without_distinct(aggregate.input), lambda plan: plan == fixpoint)
    names = fixpoint.columns.names
    group = set()
    for position in aggregate.group:
        grouped = above.columns[position]
        if not isinstance(grouped, Column):
            raise _NotPushableError("it groups by a computed value")
        group.add(grouped.position)
    for predicate in above.predicates:
        group |= _fixed(predicate)
    for predicate in above.predicates:
        for column in sorted(reads(predicate) - group):
            raise _NotPushableError(f"a filter reads {names[column]}, which is not in GROUP BY")
    value, minimum, picks = _value(aggregate, above)
    if value in group:
        raise _NotPushableError(f"{names[value]} is both grouped and aggregated")
    return _Wanted(frozenset(group), value, minimum, picks)


def _fixed(predicate: Expression) -> set[int]:
    match predicate:
        case Call(function="=", arguments=(Column(position=position), Literal())):
            return {position}
        case Call(function="=", arguments=(Literal(), Column(position=position))):
            return {position}
        case _:
            return set()


def _value(aggregate: Aggregate, above: Trace) -> tuple[int, bool, bool]:
    """Return the aggregated column, whether its least is wanted, and whether rows are picked."""
    functions = {call.function for call in aggregate.aggregates}
    if not functions or not (functions <= set(_MIN) or functions <= set(_MAX)):
        other = next((f for f in functions if f not in _MIN + _MAX), None)
        raise _NotPushableError(
            f"{other.value} needs all rows" if other else "MIN and MAX are not both kept"
        )
    values: set[int] = set()
    for call in aggregate.aggregates:
        argument = call.arguments[1] if call.function in _ARG else call.arguments[0]
        if not isinstance(argument, Column) or not isinstance(
            above.columns[argument.position], Column
        ):
            raise _NotPushableError("it aggregates a computed value")
        traced = above.columns[argument.position]
        values |= reads(traced)
    if len(values) != 1:
        raise _NotPushableError("it aggregates more than one column")
    return values.pop(), functions <= set(_MIN), bool(functions & set(_ARG))


def _check_step(number: int, step: Trace, wanted: _Wanted, names: tuple[str, ...]) -> None:
    for predicate in step.predicates:
        for column in sorted(reads(predicate) - wanted.group):
            raise _NotPushableError(
                f"step {number} tests {names[column]}, which is not in GROUP BY"
            )
    for grouped in sorted(wanted.group):
        for column in sorted(reads(step.columns[grouped]) - wanted.group):
            raise _NotPushableError(
                f"step {number} computes {names[grouped]} from {names[column]}, which is not in "
                "GROUP BY"
            )
    if not _is_isotone(step.columns[wanted.value], wanted):
        raise _NotPushableError(
            f"step {number} computes {names[wanted.value]} in a way that may turn a better value "
            "into a worse one"
        )


def _is_isotone(expression: Expression, wanted: _Wanted) -> bool:
    """Whether an expression never decreases when the aggregated column increases."""

    def beside(other: Expression) -> bool:
        return reads(other) <= wanted.group

    match expression:
        case Column(position=position):
            return position == wanted.value
        case Call(function="CAST", arguments=(inner,), dtype=dtype):
            return dtype.is_numeric and _is_isotone(inner, wanted)
        case Call(function="+" | "GREATEST" | "LEAST", arguments=(left, right)):
            return (_is_isotone(left, wanted) and beside(right)) or (
                _is_isotone(right, wanted) and beside(left)
            )
        case Call(function="-", arguments=(left, right)):
            return _is_isotone(left, wanted) and beside(right)
        case _:
            return False


def _is_strict(expression: Expression) -> bool:
    match expression:
        case Call(function="GREATEST" | "LEAST"):
            return False
        case Call(arguments=arguments):
            return all(_is_strict(argument) for argument in arguments)
        case _:
            return True


def _check_progress(
    number: int, step: Trace, wanted: _Wanted, names: tuple[str, ...], carried: set[int]
) -> None:
    """Check that repeating a step does not make the value better for ever."""
    name = names[wanted.value]
    direction = _direction(step.columns[wanted.value])
    if direction == 0 and carried:
        raise _NotPushableError(
            f"step {number} leaves {name} as it is while {names[min(carried)]} grows"
        )
    if direction != 0 and (direction > 0) != wanted.minimum:
        word, change = ("MIN", "smaller") if wanted.minimum else ("MAX", "larger")
        raise _NotPushableError(
            f"step {number} can make {name} {change} each time, and {word} would follow it"
        )


def _direction(expression: Expression) -> int:
    """Return the sign of what a step adds; data that is added counts as positive."""
    match expression:
        case Call(function="CAST", arguments=(inner,)):
            return _direction(inner)
        case Call(function="+", arguments=(Literal(value=value), right)):
            return _direction(right) or _sign(value)
        case Call(function="+", arguments=(left, Literal(value=value))):
            return _direction(left) or _sign(value)
        case Call(function="-", arguments=(left, Literal(value=value))):
            return _direction(left) or -_sign(value)
        case Call(function="+"):
            return 1
        case Call(function="-"):
            return -1
        case _:
            return 0


def _sign(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return (value > 0) - (value < 0)
