"""Calls of scalar functions whose body is an expression: the body over the arguments."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, Literal, conjunction
from streamsql.algebra.null_rejection import is_null
from streamsql.binder.expressions.conditions import filtered
from streamsql.binder.expressions.function_bodies import (
    Body,
    Closure,
    as_declared,
    bound_body,
    check_body,
    check_size,
    put_into,
)
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.types import DataType


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A body over its parameters.

    Attributes:
        guarded: Parameters whose NULL makes the result NULL where the body alone would not.
    """

    value: Expression
    guarded: tuple[int, ...]


_KEPT: dict[Closure, BoundFunction] = {}


def bind_function(body: Body, binder: NodeBinder) -> BoundFunction:
    """Bind the body of a scalar function.

    Args:
        body: Of the function.
        binder: Any one; gives a binder over the parameters.

    Raises:
        QueryError: It does not bind; the place is in the body.
    """
    check_body(body)
    bound = binder.over(body.environment, body.scope).bind(body.tree)
    value = as_declared(body, bound)
    check_size(value, body.definition, body.environment, body.tree)
    strict = not body.definition.on_null
    guarded = [n for n in body.parameters if strict and not is_null(value, {n})]
    return BoundFunction(value, tuple(guarded))


def expanded(
    binder: NodeBinder,
    definition: FunctionDefinition,
    arguments: Sequence[Expression],
    node: exp.Expr,
) -> Expression:
    """Return what a call stands for.

    Raises:
        QueryError: It is too large, or the body does not bind any more; the place is the call.
    """
    environment = binder.environment
    bind = partial(bind_function, binder=binder)
    body = bound_body(definition, environment, node, _KEPT, bind)
    guards = [arguments[n] for n in body.guarded]
    if any(isinstance(guard, Literal) and guard.value is None for guard in guards):
        return Literal(None, definition.result)
    tests: list[Expression] = [
        Call("IS NOT NULL", (guard,), DataType.BOOLEAN)
        for guard in dict.fromkeys(guards)
        if not isinstance(guard, Literal)
    ]
    value = put_into(body.value, arguments, definition, environment, node)
    made = filtered(conjunction(tests), value)
    check_size(made, definition, environment, node)
    return made
