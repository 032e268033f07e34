"""Calls of aggregates whose body is an expression: plain aggregates, and the expression over them.

The plan has MAX and MIN where a query calls `spread`, so gateways compute parts of them, and other
queries read them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import msgspec
from sqlglot import exp

from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.expressions import Call, Column, Expression, Literal, conjunction
from streamsql.algebra.leaves import Values
from streamsql.algebra.null_rejection import is_null, is_rejected
from streamsql.algebra.operators import Plan
from streamsql.algebra.user_functions import is_called_on_null
from streamsql.binder.aggregation.aggregate_types import IDEMPOTENT, combined
from streamsql.binder.expressions.aggregate_calls import Written
from streamsql.binder.expressions.coercion import converted
from streamsql.binder.expressions.conditions import filtered
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.expressions.function_bodies import (
    Body,
    Closure,
    as_declared,
    bound_body,
    check_aggregated,
    check_body,
    put_into,
)
from streamsql.binder.expressions.function_calls import checked_arguments
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.binder.names.environment import Environment, Scope
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.types import DataType

F = AggregateFunction
_ONE = Literal(1, DataType.INTEGER)


class Collecting(Protocol):
    """Collects the aggregates of expressions that are bound with its hook."""

    calls: list[AggregateCall]

    def hook(self, node: exp.Expr) -> Expression | None:
        """Return the expression that stands for an aggregate, or None for another node."""


Begin = Callable[[Environment, Plan, Scope], Collecting]


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """A body over its parameters.

    Attributes:
        value: Over the results of `calls`, in their order.
        calls: Over the parameters; each skips the rows that the aggregate skips.
    """

    value: Expression
    calls: tuple[AggregateCall, ...]


_KEPT: dict[Closure, BoundAggregate] = {}


def bind_aggregate(body: Body, begin: Begin) -> BoundAggregate:
    """Bind the body of an aggregate.

    Args:
        body: Of the aggregate.
        begin: Makes what collects its aggregates.

    Raises:
        QueryError: It does not bind; the place is in the body.
    """
    check_body(body)
    definition, scope = body.definition, body.scope
    collecting = begin(body.environment, Values((), definition.parameters), scope)
    bound = ExpressionBinder(body.environment, scope, collecting.hook).bind(body.tree)
    check_aggregated(body, bound, collecting.calls)
    width = len(body.parameters)
    results: list[Expression] = [Literal(None, DataType.NULL)] * width
    results += [Column(n, call.name, call.dtype) for n, call in enumerate(collecting.calls)]
    value = put_into(bound, results, definition, body.environment, body.tree)
    calls = collecting.calls
    if not definition.on_null:
        calls = [_of_whole_rows(body, call) for call in calls]
    return BoundAggregate(as_declared(body, value), tuple(calls))


def _of_whole_rows(body: Body, call: AggregateCall) -> AggregateCall:
    """Return a call that skips rows in which a parameter is NULL."""
    fields = body.definition.parameters.fields
    values = [Column(n, field.name, field.dtype) for n, field in enumerate(fields)]
    missing = [value for value in values if not _skips(call, value.position)]
    if not missing:
        return call
    if call.function == F.COUNT_ALL:
        call = AggregateCall(F.COUNT, (_ONE,), call.name)
    condition, counted = _split(call.arguments[-1])
    if call.function == F.COUNT and not call.distinct and _is_constant(counted):
        # As COUNT(x) is written by others.
        counted, missing = missing[0], missing[1:]
        call = _with(call, 0, filtered(condition, counted))
    tests: list[Expression] = [Call("IS NOT NULL", (v,), DataType.BOOLEAN) for v in missing]
    return narrowed(call, conjunction(tests), body.environment, body.tree)


def _skips(call: AggregateCall, parameter: int) -> bool:
    """Return whether NULL in a parameter, by its number, keeps a row out of a call."""
    if call.function == F.USER:
        strict = not is_called_on_null(call.implementation)
        return strict and any(_is_empty(value, parameter) for value in call.arguments)
    return call.function != F.COUNT_ALL and _is_empty(call.arguments[-1], parameter)


def _is_empty(value: Expression, parameter: int) -> bool:
    condition, inner = _split(value)
    rejected = condition is not None and is_rejected(condition, {parameter})
    return rejected or is_null(inner, {parameter})


def _split(value: Expression) -> tuple[Expression | None, Expression]:
    """Return the condition and the value of what `filtered` has made."""
    match value:
        case Call(function="CASE", arguments=(condition, inner, Literal(value=None))):
            return condition, inner
        case _:
            return None, value


def _is_constant(value: Expression) -> bool:
    return isinstance(value, Literal) and value.value is not None


def _with(call: AggregateCall, place: int, value: Expression) -> AggregateCall:
    arguments = (*call.arguments[:place], value, *call.arguments[place + 1 :])
    return msgspec.structs.replace(call, arguments=arguments)


def narrowed(
    call: AggregateCall, condition: Expression | None, environment: Environment, node: exp.Expr
) -> AggregateCall:
    """Return a call over the rows where a condition holds.

    Raises:
        UnsupportedError: It takes NULLs, so no rows can be hidden from it.
    """
    if condition is None:
        return call
    if call.function == F.COUNT_ALL:
        return AggregateCall(F.COUNT, (filtered(condition, _ONE),), call.name)
    if call.function == F.USER and is_called_on_null(call.implementation):
        raise environment.unsupported(
            node,
            f"{call.name} accepts NULLs, so FILTER cannot skip rows",
            hint="filter in WHERE, or in a query in FROM; in a body write CALLED ON NULL INPUT",
            code="unsupported_aggregate",
        )
    place = 0 if call.function == F.USER else len(call.arguments) - 1
    before, value = _split(call.arguments[place])
    both = conjunction([condition, *(() if before is None else (before,))])
    return _with(call, place, filtered(both, value))


def expanded_aggregate(
    call: Written, definition: FunctionDefinition, binder: NodeBinder, begin: Begin
) -> BoundAggregate:
    """Return what a call stands for: aggregates over the arguments, and the value over these.

    Args:
        call: As written.
        definition: Of the aggregate, which has a body.
        binder: Of what stands inside an aggregate.
        begin: As of `bind_aggregate`.

    Raises:
        QueryError: An argument does not fit, it is too large, DISTINCT cannot be kept, or the body
            does not bind any more.
    """
    environment, node = binder.environment, call.node
    condition = conjunction([binder.predicate(c, "FILTER (WHERE …)") for c in call.conditions])
    bound = tuple(binder.bind(argument) for argument in call.arguments)
    arguments = checked_arguments(definition, bound, node, environment)
    bind = partial(bind_aggregate, begin=begin)
    body = bound_body(definition, environment, node, _KEPT, bind)
    parts, results = [], list[Expression]()
    for number, known in enumerate(body.calls):
        part = _distinct(known, definition, environment, node) if call.distinct else known
        put = [put_into(a, arguments, definition, environment, node) for a in part.arguments]
        made = uncast(msgspec.structs.replace(part, arguments=tuple(put)))
        parts.append(narrowed(made, condition, environment, node))
        results.append(converted(Column(number, made.name, made.dtype), known.dtype))
    return BoundAggregate(
        put_into(body.value, results, definition, environment, node), tuple(parts)
    )


def uncast(call: AggregateCall) -> AggregateCall:
    """Return MIN, MAX or COUNT of INTEGERs that were made DOUBLEs as that of the INTEGERs.

    Larger INTEGERs do not become smaller DOUBLEs, and none becomes NULL. So they are shared with
    those of others, who need no conversion.
    """
    if call.function not in (F.MIN, F.MAX, F.COUNT) or call.distinct:
        return call
    condition, value = _split(call.arguments[0])
    match value:
        case Call(function="CAST", arguments=(inner,)) if _is_widened(inner, value):
            return _with(call, 0, filtered(condition, inner))
        case _:
            return call


def _is_widened(before: Expression, after: Expression) -> bool:
    return before.dtype == DataType.INTEGER and after.dtype == DataType.DOUBLE


def _distinct(
    call: AggregateCall, definition: FunctionDefinition, environment: Environment, node: exp.Expr
) -> AggregateCall:
    """Return a call that takes each combination of arguments once."""
    if call.distinct or call.function in IDEMPOTENT:
        return call
    fields = definition.parameters.fields
    whole = tuple(Column(n, field.name, field.dtype) for n, field in enumerate(fields))
    value = call.arguments[-1] if call.arguments else _ONE
    condition, inner = _split(value)
    if len(whole) == 1 and call.arguments and inner == whole[0]:
        return msgspec.structs.replace(call, distinct=True)
    if call.function in (F.COUNT, F.COUNT_ALL) and not definition.on_null:
        # Rows that count are those with a value: count their combinations.
        tests = [condition, *_presence(inner)]
        one = whole[0] if len(whole) == 1 else combined(whole)
        made = filtered(conjunction([test for test in tests if test is not None]), one)
        return AggregateCall(F.COUNT, (made,), call.name, distinct=True)
    raise environment.unsupported(
        node,
        f"{definition.name} cannot take DISTINCT: its {call.function} is not over "
        f"{'its parameter' if len(whole) == 1 else 'one parameter'} alone",
        hint=f"{definition.name} over SELECT DISTINCT … in FROM",
        code="unsupported_aggregate",
    )


def _presence(value: Expression) -> list[Expression]:
    return [] if _is_constant(value) else [Call("IS NOT NULL", (value,), DataType.BOOLEAN)]
